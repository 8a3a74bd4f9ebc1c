"""ogive bench: figures from committed records, and the runs behind them.

A command is a function registered on `app`; one that reads a protocol of the folder `benchmarks` is a line at the end.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError
from .options import JsonOption, check_folder
from .speed import speed

__all__ = ["app"]

app = typer.Typer(
    name="bench",
    help="Benchmarks: tables from the records that come with the source, and new measurements.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

RunOption = Annotated[bool, typer.Option("--run", help="First measure what has no record yet, and record it.")]
JobsOption = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes that measure.")]
OnlyOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="TASK,METHOD", help="These tasks and methods; all of a kind that is not named."),
]
MeasuredOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="PART,TASK,METHOD", help="With --run, measure these alone; the page is of all."),
]
SplitsOption = Annotated[str | None, typer.Option("--splits", metavar="0,1,2", help="These splits.")]
LimitOption = Annotated[int | None, typer.Option("--limit", min=1, help="Measure at most so many runs.")]
RetryOption = Annotated[bool, typer.Option("--retry", help="With --run, measure failed runs again.")]
ProtocolOption = Annotated[
    Path | None,
    typer.Option("--protocol", metavar="FILE", help="Another protocol.", show_default="the command's"),
]
RecordsOption = Annotated[
    Path | None,
    typer.Option("--records", metavar="FOLDER", help="Read and add records there.", show_default="benchmarks/records"),
]
FileOption = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the tables there.")]
PagesOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FOLDER", help="Write the page there.", show_default="docs/paper"),
]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="A trial of the whole way in seconds: little data, records in a temporary folder."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_protocols()


@app.command("list")
def list_protocols(records: RecordsOption = None, as_json: JsonOption = False) -> None:
    """List the protocols: how many runs each has, and how many of them were measured."""
    from ..bench import benchmarks_folder, read_protocol, read_records
    from ..bench.markdown import grid

    folder = benchmarks_folder()
    found = []
    for path in sorted(folder.glob("*.toml")):
        protocol = read_protocol(path)
        known = read_records(records or folder / "records", protocol.name)
        plan = protocol.runs()
        failures = [known[run.key].failure is not None for run in plan if run.key in known]
        facts = {"protocol": protocol.name, "runs": len(plan), "measured": len(failures), "failed": sum(failures)}
        names = {"tasks": protocol.tasks, "methods": [method.name for method in protocol.methods]}
        found.append({**facts, "title": protocol.title, **names})
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        columns = ["protocol", "title", "runs", "measured", "failed"]
        print(grid(columns, [[str(facts[name]) for name in columns] for facts in found], n_names=2))


@app.command()
def paper(
    run: RunOption = False,
    jobs: JobsOption = 1,
    only: MeasuredOption = None,
    splits: SplitsOption = None,
    limit: LimitOption = None,
    retry: RetryOption = False,
    records: RecordsOption = None,
    quick: QuickOption = False,
    out: PagesOption = None,
    quiet: QuietOption = False,
) -> None:
    """Every table and figure of the paper, measured here, beside what is printed there: a page with pictures."""
    from ..bench import benchmarks_folder, carry_out, read_protocol, read_records
    from ..bench.paper import PARTS, Part, write_paper
    from ..bench.selection import selected
    from ..plotting import new_axes

    if (only or splits or limit or retry) and not (run or quick):
        raise DataError(
            "--only, --splits, --limit and --retry must come with --run; got none. Add it: the page is always whole."
        )
    new_axes(1.0, 1.0)  # without matplotlib it ends here, and not after the measuring
    source = benchmarks_folder()
    protocols = {name: read_protocol(source / f"{name}.toml", quick=quick) for name in PARTS}
    plans = selected(protocols, _names(only), _numbers(splits))
    with ExitStack() as kept:
        trial = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="ogive-bench-"))) if quick else None
        folder = records or trial or source / "records"
        measured = 0
        for plan in plans.values() if run or quick else ():
            left = None if limit is None else limit - measured
            measured += carry_out(plan, folder, jobs=jobs, limit=left, retry=retry, quiet=quiet)
        parts = {name: Part(one, read_records(folder, one.name)) for name, one in protocols.items()}
        page = write_paper(out or (trial / "paper" if trial else source.parent / "docs" / "paper"), parts)
    print(page, end="")


def _of_protocol(name: str) -> Callable[..., None]:
    """The command that shows a protocol's tables, and carries it out."""

    def show(
        run: RunOption = False,
        jobs: JobsOption = 1,
        only: OnlyOption = None,
        splits: SplitsOption = None,
        limit: LimitOption = None,
        retry: RetryOption = False,
        protocol: ProtocolOption = None,
        records: RecordsOption = None,
        quick: QuickOption = False,
        out: FileOption = None,
        as_json: JsonOption = False,
        quiet: QuietOption = False,
    ) -> None:
        from ..bench import benchmarks_folder, carry_out, make_report, read_protocol, read_records, report_text

        check_folder(out)
        path = protocol or benchmarks_folder() / f"{name}.toml"
        wanted = read_protocol(path, quick=quick).narrowed(_names(only), _numbers(splits))
        with ExitStack() as kept:
            folder = records or path.parent / "records"
            if quick and records is None:
                folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="ogive-bench-")))
            if run or quick:
                carry_out(wanted.runs(), folder, jobs=jobs, limit=limit, retry=retry, quiet=quiet)
            report = make_report(wanted, read_records(folder, wanted.name))
        text = json.dumps(report.as_dict(), indent=2) + "\n" if as_json else report_text(report)
        if out is not None:
            out.write_text(text, encoding="utf-8")
        print(text, end="")

    return show


def _names(texts: list[str] | None) -> list[str]:
    """Names from "a,b", given once or several times."""
    return [part.strip() for text in texts or [] for part in text.split(",")]


def _numbers(text: str | None) -> list[int]:
    """Splits from "0,1,2"."""
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise DataError(f"--splits must be whole numbers; got '{text}'. Write for example 0,1,2.") from error


for name, about in {
    "uci": "Tables of the seven UCI sets: scores, calibration and times of every method.",
    "nested": "Tables of the UCI sets' training parts, for the choice of defaults: no test row is touched.",
    "toy": "Tables of the toy tasks, whose densities are known.",
    "ablation": "The paper's method without its parts, on the ring.",
    "delta": "The step of the paper's finite difference, on the ring.",
}.items():
    app.command(name, help=about)(_of_protocol(name))
app.command()(speed)
