"""Tables of speed: the lines of a plan with their bars, every subject's times and memory, and how works grow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .markdown import grid
from .provenance import told
from .record import Record, plain
from .speed_clock import Spread
from .speed_plan import Line, SpeedPlan, Work
from .speed_run import newest

__all__ = ["Growth", "Shown", "SpeedReport", "make_speed_report", "short", "speed_text"]

Case = int | str
COLUMNS = ("ours", "NSF", "GMM", "NGBoost")


@dataclass(frozen=True)
class Shown:
    """A line on one case: figures by column, what is judged, and whether it meets the bars (None: there is none)."""

    line: Line
    case: Case
    figures: Mapping[str, Spread]
    judged: Spread
    must: bool | None
    aim: bool | None

    @property
    def verdict(self) -> str:
        """In a word."""
        if self.aim:
            return "aim"
        return {True: "must", False: "no", None: "-"}[self.must]


@dataclass(frozen=True)
class Growth:
    """Times of a work by its size, and the exponent fitted to them."""

    work: str
    case: Case
    sizes: Sequence[float]
    seconds: Sequence[Spread]
    exponent: float

    @property
    def fitted(self) -> list[float]:
        """Seconds by the fitted power, through the centre of the measured points."""
        logs = [math.log(own.median) - self.exponent * math.log(size) for size, own in self._points()]
        scale = math.exp(sum(logs) / len(logs))
        return [scale * size**self.exponent for size in self.sizes]

    def _points(self) -> list[tuple[float, Spread]]:
        return list(zip(self.sizes, self.seconds, strict=True))


@dataclass(frozen=True)
class SpeedReport:
    """All that a plan's records tell."""

    title: str
    lines: Sequence[Shown]
    times: Sequence[Sequence[str]]
    growth: Sequence[Growth]
    gaps: Sequence[str]
    facts: Sequence[str]

    def as_dict(self) -> Any:
        """Everything, as JSON can hold it."""
        lines = [
            {
                "work": shown.line.work,
                "title": shown.line.title,
                "on": shown.case,
                "quantity": shown.line.quantity,
                "figures": {name: figure._asdict() for name, figure in shown.figures.items()},
                "compared": shown.line.compared,
                "judged": shown.judged._asdict(),
                "must": shown.line.must,
                "aim": shown.line.aim,
                "verdict": shown.verdict,
            }
            for shown in self.lines
        ]
        growth = [
            {"work": one.work, "on": one.case, "sizes": one.sizes, "seconds": [s._asdict() for s in one.seconds]}
            | {"exponent": one.exponent}
            for one in self.growth
        ]
        return plain({"title": self.title, "lines": lines, "growth": growth, "gaps": self.gaps, "facts": self.facts})


def make_speed_report(plan: SpeedPlan, records: Mapping[str, Record]) -> SpeedReport:
    """What the newest record of each work and case tells, given all records by key."""
    known = newest(records)
    having = [(work, case, known.get((work.name, str(case)))) for work, case in plan.cases()]
    measured = [(work, case, record) for work, case, record in having if record and record.failure is None]
    lines, gaps = [], _gaps(having)
    for line in plan.lines:
        for work, case, record in measured:
            if work.name == line.work and (judged := _judged(line, work, record)) is not None:
                bars = (line.meets(judged.median, bar, case) for bar in (line.must, line.aim))
                lines.append(Shown(line, case, _columns(line, record), judged, *bars))
    times = [
        row for work, case, record in measured if "sizes" not in work.settings for row in _times(work, case, record)
    ]
    growth = [_growth(work, case, record) for work, case, record in measured if "exponent" in record.metrics]
    return SpeedReport(plan.title, lines, times, growth, gaps, _facts(len(having), [r for *_, r in measured]))


# Figures of a record


def _seconds(one: Mapping[str, Any]) -> Spread:
    return Spread(**one["seconds"])


def _number(name: str) -> Callable[[Mapping[str, Any]], Spread | None]:
    return lambda one: Spread(one[name], one[name], one[name]) if one.get(name) is not None else None


READ: Mapping[str, Callable[[Mapping[str, Any]], Spread | None]] = {
    "seconds": _seconds,
    "each": lambda one: _seconds(one).times(1.0 / one["amount"]),
    "rate": lambda one: _seconds(one).times(1.0 / one["amount"]).inverse(),
    "nll": _number("nll"),
    "peak": _number("peak"),
    "exponent": lambda one: None,
}
SHOW: Mapping[str, Callable[[float], str]] = {
    "seconds": lambda value: f"{short(value)}s",
    "each": lambda value: f"{short(value)}s",
    "rate": lambda value: f"{short(value)}/s",
    "nll": lambda value: f"{value:.3f}",
    "peak": lambda value: f"{short(value)}B",
    "exponent": lambda value: f"{value:.2f}",
}


def _columns(line: Line, record: Record) -> dict[str, Spread]:
    """Figures of the line's quantity by column; the line's own subject stands for us."""
    names = {"ours": line.subject, **{name: name for name in COLUMNS[1:]}}
    subjects = record.metrics["subjects"]
    found = {column: READ[line.quantity](subjects[name]) for column, name in names.items() if name in subjects}
    return {column: figure for column, figure in found.items() if figure is not None}


def _judged(line: Line, work: Work, record: Record) -> Spread | None:
    """What the bars are about; None where it was not measured."""
    if line.quantity == "exponent":
        return _number("exponent")(record.metrics)
    subjects, ratios = record.metrics["subjects"], record.metrics.get("ratios", {})
    if line.subject not in subjects:
        return None
    own = READ[line.quantity](subjects[line.subject])
    if not line.compared or own is None:
        return own
    if line.quantity == "nll":
        other = READ["nll"](subjects.get(work.against, {}))
        return None if other is None else Spread(*(own.median - other.median,) * 3)
    found = Spread(**ratios[line.subject]) if line.subject in ratios else None
    return found.inverse() if found is not None and line.quantity == "rate" else found


def _times(work: Work, case: Case, record: Record) -> list[list[str]]:
    """One row for each subject of a record."""
    rows, ratios = [], record.metrics.get("ratios", {})
    for name, one in record.metrics["subjects"].items():
        seconds, peak = _seconds(one), one.get("peak")
        rate = READ["rate"](one)
        by = f"{Spread(**ratios[name]).median:.3g}" if name in ratios else "-"
        quartiles = f"{SHOW['seconds'](seconds.low)} to {SHOW['seconds'](seconds.high)}"
        figures = [SHOW["seconds"](seconds.median), quartiles, str(len(one["times"]))]
        own = [SHOW["rate"](rate.median) if rate else "-", by, SHOW["peak"](peak) if peak is not None else "-"]
        rows.append([work.name, str(case), name, *figures, *own])
    return rows


def _growth(work: Work, case: Case, record: Record) -> Growth:
    subjects = record.metrics["subjects"]
    seconds = [_seconds(one) for one in subjects.values()]
    return Growth(work.name, case, [float(size) for size in subjects], seconds, record.metrics["exponent"])


def _gaps(having: Sequence[tuple[Work, Case, Record | None]]) -> list[str]:
    gaps = []
    for work, case, record in having:
        if record is None:
            gaps.append(f"{work.name} on {case}: not measured yet")
        elif record.failure is not None:
            gaps.append(f"{work.name} on {case}: {record.failure}")
        else:
            gaps += [f"{work.name} on {case}, {name}: {reason}" for name, reason in record.reasons.items()]
    return gaps


def _facts(wanted: int, records: Sequence[Record]) -> list[str]:
    """How much was measured, when, with what, and where."""
    days = sorted({record.measured_at[:10] for record in records})
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    facts = [f"Records: {len(records)} of {wanted}{when}."]
    return facts + told((record.versions for record in records), (record.machine for record in records))


# Text


def speed_text(report: SpeedReport) -> str:
    """The whole report as Markdown."""
    lines = [_line(shown) for shown in report.lines]
    header = ["work", "on", *COLUMNS, "judged", "quartiles", "must", "aim", "met"]
    growth = [[one.work, str(one.case), _sizes(one.sizes), f"{one.exponent:.2f}"] for one in report.growth]
    columns = ["work", "on", "who", "median", "quartiles", "rounds", "rate", "time by reference", "peak memory"]
    parts = [
        f"# {report.title}",
        grid(header, lines, n_names=2) if lines else "",
        "## Times and memory\n\n" + grid(columns, report.times, n_names=3) if report.times else "",
        "## Growth\n\n" + grid(["work", "on", "sizes", "exponent"], growth, n_names=3) if growth else "",
        "Gaps:\n\n" + "\n".join(f"- {gap}" for gap in report.gaps) if report.gaps else "",
        "\n".join(f"- {fact}" for fact in report.facts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(shown: Shown) -> list[str]:
    line, show = shown.line, SHOW[shown.line.quantity]
    figures = [show(shown.figures[name].median) if name in shown.figures else "-" for name in COLUMNS]
    judge = _ratio if line.compared and line.quantity != "nll" else show
    bounds = f"{judge(shown.judged.low)} to {judge(shown.judged.high)}"
    spread = bounds if shown.judged.low != shown.judged.high else "-"
    sign = ">=" if line.at_least else "<="
    barred = not line.barred or shown.case in line.barred
    bars = [f"{sign} {judge(bar)}" if bar is not None and barred else "-" for bar in (line.must, line.aim)]
    return [line.title, str(shown.case), *figures, judge(shown.judged.median), spread, *bars, shown.verdict]


def _ratio(value: float) -> str:
    return f"{value:.3g} x"


def _sizes(sizes: Sequence[float]) -> str:
    return ", ".join(f"{size:g}" for size in sizes)


def short(value: float) -> str:
    """Three digits and the prefix of the thousands: 781 k, 3.8 m."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g} "
    place = math.floor(math.log10(abs(float(f"{value:.3g}"))) / 3.0)
    place = max(-3, min(4, place))
    prefix = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T"}[place]
    digits = f"{value / 1000.0**place:.3g}"
    return f"{float(digits):g} {prefix}"
