"""The paper, reproduced: one page of tables and pictures from records alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..arrays import Array
from ..datasets import toy
from .comparison import printed_for, ranks, side_by_side
from .figures import Column, Curve, density_columns, reliability_panels
from .markdown import listed, table_text
from .picture import unpacked
from .protocol import Protocol
from .questions import PICTURED, PLACES
from .record import Record
from .report import Report, make_report, make_table
from .table import Table

__all__ = ["PARTS", "Part", "write_paper"]

PARTS = ("uci", "toy", "ablation", "delta")
PAGE = "README.md"
CALIBRATED = ("ogive", "paper", "ddn")
CLOSE = 1.25  # times the printed error
INTRODUCTION = """\
# The paper, reproduced

Song et al., "A CDF-First Framework for Free-Form Density Estimation": every table and figure, measured here, beside
what is printed there. `ogive bench paper` writes this page from the records in `benchmarks/records`;
`ogive bench paper --run` measures what has no record yet. `ogive` is this library's default, `paper` its
configuration after the paper. Figures are means over splits ± their standard errors; a number in brackets says on how
many splits, where they are fewer than planned. A dash is a gap; its reason stands below the table, or below the one
before."""


@dataclass(frozen=True)
class Part:
    """A protocol, its records by key, and their report."""

    protocol: Protocol
    records: Mapping[str, Record]

    @cached_property
    def report(self) -> Report:
        """What the records tell."""
        return make_report(self.protocol, self.records)

    def table(self, name: str) -> Table:
        """The table of a quantity, be it all gaps."""
        return make_table(self.protocol, self.records, name)

    def pictured(self, method: str, task: str) -> tuple[Array | None, str]:
        """A method's densities on the pictured split, or None and why there are none."""
        runs = {(run.method, run.task): run for run in self.protocol.runs() if run.split == PICTURED}
        if (method, task) not in runs:
            return None, "not in the protocol"
        record = self.records.get(runs[method, task].key)
        if record is None:
            return None, "not measured yet"
        if picture := record.metrics.get("picture"):
            return unpacked(picture), ""
        return None, record.failure or record.reasons.get("picture", "measured before records held pictures")


def write_paper(folder: Path, parts: Mapping[str, Part]) -> str:
    """Write the page and its pictures into a folder; the page.

    `parts` has an entry for each name in `PARTS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sections = [SECTIONS[name](parts[name], folder) for name in PARTS]
    sections += [_calibration(parts["uci"], folder), _sources(parts.values())]
    page = "\n\n".join([INTRODUCTION, *(text for section in sections for text in section if text)]) + "\n"
    (folder / PAGE).write_text(page, encoding="utf-8")
    return page


def _uci(part: Part, folder: Path) -> list[str]:
    others = [text for table in part.report.tables if "_against_" in table.name for text in _titled(table)]
    return ["## UCI tables", *_titled(side_by_side(part.protocol, part.table("nll"))), *others]


def _toy(part: Part, folder: Path) -> list[str]:
    sse = part.table("sse")
    tables = [side_by_side(part.protocol, sse), ranks(part.protocol, sse), part.table("nll_above_entropy")]
    texts = [text for table in tables for text in _titled(table)]
    pictures = [text for task in part.protocol.tasks for text in _densities(part, task, folder)]
    return ["## Toy tasks", *texts, listed(_shares(part.protocol, sse)), *pictures]


def _ablation(part: Part, folder: Path) -> list[str]:
    sse = part.table("sse")
    pictures = [text for task in part.protocol.tasks for text in _densities(part, task, folder)]
    order = [line for task in part.protocol.tasks for line in _order(part.protocol, sse, task)]
    return ["## Ablation", *_titled(side_by_side(part.protocol, sse)), listed(order), *pictures]


def _delta(part: Part, folder: Path) -> list[str]:
    tables = [side_by_side(part.protocol, part.table(name)) for name in ("sse", "sse_seven")]
    tables += [part.table(name) for name in ("difference_error", "difference_error_float32")]
    pictures = [text for task in part.protocol.tasks for text in _densities(part, task, folder)]
    return ["## The step of the finite difference", *(text for t in tables for text in _titled(t)), *pictures]


SECTIONS: Mapping[str, Callable[[Part, Path], list[str]]] = {
    "uci": _uci,
    "toy": _toy,
    "ablation": _ablation,
    "delta": _delta,
}


def _calibration(part: Part, folder: Path) -> list[str]:
    """ECE and reliability of the tasks for which some is printed, or of the first two."""
    printed = {task for bar in part.protocol.bars if bar.metric == "ece" for task in bar.values}
    chosen = [task for task in part.protocol.tasks if task in printed] or part.protocol.tasks[:2]
    methods = [method.name for method in part.protocol.methods if method.name in CALIBRATED]
    few = Part(part.protocol.narrowed([*chosen, *methods]), part.records)
    table = few.table("ece")
    panels = {
        task: [
            Curve(row.name, row.cells[task].numbers["share"], row.cells[task].numbers["distinct"])
            for row in table.rows
            if task in row.cells and not row.source
        ]
        for task in chosen
    }
    reliability_panels(folder / "reliability.png", panels)
    picture = "![Reliability: observed frequency against predicted probability](reliability.png)"
    return ["## Calibration", *_titled(side_by_side(few.protocol, table)), picture]


def _densities(part: Part, task: str, folder: Path) -> list[str]:
    """A picture of every method's density beside the truth, and what it shows."""
    kind, truth = part.protocol.kind, toy.get(task)
    places = PLACES[kind]
    exact = truth.pdf_grid(list(places), toy.SSE_AXIS, toy.SSE_AXIS)
    columns, gaps = [Column("truth", exact)], defaultdict(list)
    for method in (method.name for method in part.protocol.methods):
        picture, reason = part.pictured(method, task)
        columns.append(Column(method, picture))
        if reason:
            gaps[reason].append(method)
    name = f"{kind}_{task}.png"
    density_columns(folder / name, columns, places, toy.SSE_AXIS, 1.5 * float(exact.max()))
    caption = f"Densities on {task}, split {PICTURED}: the truth and every method, a row for each x."
    without = [f"{', '.join(methods)}: {reason}" for reason, methods in gaps.items()]
    return [f"![{caption}]({name})", caption, listed(without, "No density:\n\n")]


def _shares(protocol: Protocol, table: Table) -> list[str]:
    """How the paper's own configuration stands to the printed figures."""
    printed = printed_for(protocol, "paper", table.name)
    cells = next((row.cells for row in table.rows if row.name == "paper" and not row.source), {})
    shares = {task: cells[task].numbers["mean"] / value for task, value in printed.items() if task in cells}
    if not shares:
        return []
    far = [task for task, share in shares.items() if not share <= CLOSE]
    said = f"more than 25 % above it on {', '.join(far)}" if far else "at most 25 % above it everywhere"
    each = ", ".join(f"{task} {share:.2f}" for task, share in shares.items())
    return [f"paper, as a share of the printed figure: {each}; {said}."]


def _order(protocol: Protocol, table: Table, task: str) -> list[str]:
    """The methods from best to worst, as measured and as printed."""
    measured = {row.name: row.cells[task].numbers["mean"] for row in table.rows if task in row.cells and not row.source}
    printed = {name: printed_for(protocol, name, table.name).get(task) for name in measured}
    known = {name: value for name, value in printed.items() if value is not None}
    if len(known) < len(protocol.methods):
        return []
    ours, theirs = sorted(known, key=measured.__getitem__), sorted(known, key=known.__getitem__)
    verdict = "the printed order" if ours == theirs else f"printed: {', '.join(theirs)}"
    return [f"From best to worst: {', '.join(ours)}; {verdict}."]


def _titled(table: Table) -> list[str]:
    return [f"### {table.title}", table_text(table)]


def _sources(parts: Iterable[Part]) -> list[str]:
    """Where every figure can be checked and measured again."""
    texts = ["## Records"]
    for part in parts:
        name = part.protocol.name
        texts += [f"### {part.protocol.title}", listed(_of(name, part.report.facts))]
    return texts


def _of(name: str, facts: Sequence[str]) -> list[str]:
    return [f"`benchmarks/records/{name}`, a line for each run; protocol `benchmarks/{name}.toml`", *facts]
