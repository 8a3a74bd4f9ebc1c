"""What `ogive bench speed` measures and what it is held to, read from TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import DataError, FileFormatError
from .protocol import Run
from .speed_works import WORKS

__all__ = ["Line", "SpeedPlan", "Work", "read_plan"]

KIND = "speed"
QUANTITIES = ("rate", "seconds", "each", "nll", "peak", "exponent")


@dataclass(frozen=True)
class Work:
    """Something that several subjects do in turn, timed on each of its cases.

    Attributes
    ----------
    name : a key of `speed_works.WORKS`
    cases : numbers of outputs, or names of tables
    repeats : int
        Rounds in which every subject has its turn.
    against : str
        The subject that the others are divided by.
    memory : names of the subjects whose peak memory is measured, each in a process of its own
    apart : bool
        Also time in that process, not in this one.
    warm_up : bool
        One call of each subject before the first round.
    shortest : float
        Seconds that a turn takes at least: a subject that is faster does its work several times. 0 tries none out.
    settings : sizes, as the function of that name takes them
    """

    name: str
    cases: tuple[int | str, ...]
    repeats: int
    against: str = ""
    memory: tuple[str, ...] = ()
    apart: bool = False
    warm_up: bool = True
    shortest: float = 0.05
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self, plan: str, case: int | str) -> Run:
        """The run of a record about one case; its key tells the settings and how they were timed."""
        timing = {"repeats": self.repeats, "warm_up": self.warm_up, "shortest": self.shortest, "apart": self.apart}
        return Run(plan, KIND, str(case), 0, self.name, self.name, {**self.settings, **timing})


@dataclass(frozen=True)
class Line:
    """A line of the table: one quantity of one work, and the bars it is held to.

    Attributes
    ----------
    work, title, subject : str
    quantity : "rate", "seconds", "each" (seconds by unit of work), "nll", "peak" (bytes) or "exponent"
    compared : bool
        Judge the ratio to the subject that the work is measured against (of an NLL the difference), not the figure.
    at_least : bool
        Larger is better.
    must, aim : float, optional
    barred : cases to which the bars apply; empty for all
    """

    work: str
    title: str
    quantity: str
    subject: str = "ours"
    compared: bool = False
    at_least: bool = False
    must: float | None = None
    aim: float | None = None
    barred: tuple[int | str, ...] = ()

    def meets(self, value: float, bar: float | None, case: int | str) -> bool | None:
        """Whether a figure meets a bar; None where there is none."""
        if bar is None or (self.barred and case not in self.barred):
            return None
        return value >= bar if self.at_least else value <= bar


@dataclass(frozen=True)
class SpeedPlan:
    """Works to be measured and lines to be shown of them."""

    name: str
    title: str
    works: tuple[Work, ...]
    lines: tuple[Line, ...]

    def cases(self) -> list[tuple[Work, int | str]]:
        """Every work on every of its cases."""
        return [(work, case) for work in self.works for case in work.cases]

    def narrowed(self, names: Iterable[str]) -> SpeedPlan:
        """The part of these works; all if none is named."""
        wanted, known = list(names), [work.name for work in self.works]
        for name in wanted:
            if name not in known:
                raise DataError(f"--only must name works ({', '.join(known)}); got '{name}'. Choose among them.")
        kept = tuple(work for work in self.works if not wanted or work.name in wanted)
        names_kept = {work.name for work in kept}
        return replace(self, works=kept, lines=tuple(line for line in self.lines if line.work in names_kept))


def read_plan(path: Path, *, quick: bool = False) -> SpeedPlan:
    """A plan from its file; `quick` puts the entries of the table [quick] in place of the others."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        small = found.pop("quick", None)
        if quick and small is None:
            raise ValueError("no table [quick]")
        return _plan(found | small if quick else found)
    except (KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"'{path}' must describe works and lines; got {said}. Correct it.") from error


def _plan(found: Mapping[str, Any]) -> SpeedPlan:
    works = tuple(Work(**_tuples(entry, "cases", "memory")) for entry in found["works"])
    names = [work.name for work in works]
    lines = tuple(Line(**_tuples(entry, "barred")) for entry in found["lines"])
    if strange := [name for name in names if name not in WORKS or names.count(name) > 1]:
        raise ValueError(f"work {strange[0]!r}, twice or not one of {', '.join(WORKS)}")
    if idle := [work.name for work in works if work.repeats < 1 or not work.cases]:
        raise ValueError(f"no repeats or no cases of {idle[0]!r}")
    if odd := [line for line in lines if line.quantity not in QUANTITIES or line.work not in WORKS]:
        raise ValueError(f"a line of {odd[0].work!r} and {odd[0].quantity!r}")
    return SpeedPlan(found["name"], found["title"], works, tuple(line for line in lines if line.work in names))


def _tuples(entry: Mapping[str, Any], *names: str) -> dict[str, Any]:
    several: dict[str, Sequence[Any]] = {name: tuple(entry[name]) for name in names if name in entry}
    return {**entry, **several}
