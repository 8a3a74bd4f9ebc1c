"""ogive bench speed: ours beside the peers, from committed records or measured now."""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError
from .options import JsonOption, check_folder

if TYPE_CHECKING:
    from ..bench.speed_tables import Growth

__all__ = ["speed"]

START, END = "<!-- ogive bench speed: begin -->", "<!-- ogive bench speed: end -->"
PICTURE = 5.2, 3.6

RunOption = Annotated[bool, typer.Option("--run", help="Measure now, in this process, and record it.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="With --run, leave out what was measured with these very versions.")
]
OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="WORK,WORK", help="These works.")]
ProtocolOption = Annotated[
    Path | None,
    typer.Option("--protocol", metavar="FILE", help="Another plan.", show_default="benchmarks/speed/speed.toml"),
]
RecordsOption = Annotated[
    Path | None,
    typer.Option("--records", metavar="FOLDER", help="Read and add records there.", show_default="benchmarks/records"),
]
PageOption = Annotated[
    Path | None,
    typer.Option("--page", metavar="FILE", help="Put the tables between this page's markers, pictures beside it."),
]
FileOption = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write the tables there.")]
QuickOption = Annotated[
    bool,
    typer.Option("--quick", help="A trial of the whole way in seconds: tiny sizes, records in a temporary folder."),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]


def speed(
    run: RunOption = False,
    resume: ResumeOption = False,
    only: OnlyOption = None,
    protocol: ProtocolOption = None,
    records: RecordsOption = None,
    page: PageOption = None,
    quick: QuickOption = False,
    out: FileOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Times, rates and memory of ours beside the peers', as ratios, with their bars."""
    from ..bench import benchmarks_folder, read_records
    from ..bench.speed_plan import read_plan
    from ..bench.speed_run import carry_out_speed
    from ..bench.speed_tables import make_speed_report, speed_text

    check_folder(out)
    parts = None if page is None else _around_tables(page)
    benchmarks = benchmarks_folder() if protocol is None or records is None else Path()
    names = [part.strip() for text in only or [] for part in text.split(",")]
    plan = read_plan(protocol or benchmarks / "speed" / "speed.toml", quick=quick).narrowed(names)
    with ExitStack() as kept:
        folder = records or benchmarks / "records"
        if quick and records is None:
            folder = Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="ogive-bench-")))
        if run or quick:
            carry_out_speed(plan, folder, resume=resume, quiet=quiet)
        report = make_speed_report(plan, read_records(folder, plan.name))
    if page is not None and parts is not None:
        pictures = _draw(report.growth, page.parent / page.stem)
        page.write_text(_filled(parts, speed_text(report), pictures, page), encoding="utf-8")
    text = json.dumps(report.as_dict(), indent=2) + "\n" if as_json else speed_text(report)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    print(text, end="")


def _around_tables(page: Path) -> tuple[str, str]:
    """What stands before and after the tables of a page."""
    text = page.read_text(encoding="utf-8")
    if text.count(START) != 1 or text.count(END) != 1 or text.index(END) < text.index(START):
        raise DataError(f"--page must hold the lines '{START}' and '{END}' once; got '{page}'. Put them there.")
    return text[: text.index(START)], text[text.index(END) + len(END) :]


def _filled(parts: tuple[str, str], tables: str, pictures: list[Path], page: Path) -> str:
    """The page with new tables, whose headings move one level down."""
    body = re.sub(r"^#", "##", tables, flags=re.M)
    shown = [f"![{path.stem.replace('-', ' ')}]({path.relative_to(page.parent).as_posix()})" for path in pictures]
    return parts[0] + "\n\n".join([START, body.strip(), *shown, END]) + parts[1]


def _draw(growth: Any, folder: Path) -> list[Path]:
    """One picture for each growing work."""
    from ..plotting import save

    paths: list[Path] = []
    for one in growth:
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(folder / f"{one.work}.png")
        save(_growth_axes(one), paths[-1])
    return paths


def _growth_axes(one: Growth) -> Any:
    """Times by size on logarithmic axes, between quartiles, and the fitted power."""
    from ..plotting import BLUE, INK, RED, new_axes

    ax = new_axes(*PICTURE)
    medians = [seconds.median for seconds in one.seconds]
    reach = [[s.median - s.low for s in one.seconds], [s.high - s.median for s in one.seconds]]
    ax.set(xscale="log", yscale="log", xlabel=one.work.removeprefix("growing-"), ylabel="seconds")
    ax.errorbar(one.sizes, medians, yerr=reach, fmt="o", color=BLUE, capsize=3, label="median and quartiles")
    ax.plot(one.sizes, one.fitted, color=RED, linewidth=1.4, label=f"power {one.exponent:.2f}")
    ax.set_xticks(list(one.sizes), [f"{size:g}" for size in one.sizes])
    ax.minorticks_off()
    ax.tick_params(labelcolor=INK)
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return ax
