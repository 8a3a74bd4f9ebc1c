"""A protocol: the tasks, splits and methods of a benchmark, read from TOML, and the runs that follow from it."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..errors import DataError, FileFormatError
from . import methods, tasks

__all__ = ["Bar", "Method", "Protocol", "Run", "benchmarks_folder", "read_protocol"]

# A protocol's name is also that of a folder, a method's that of a file.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


@dataclass(frozen=True)
class Run:
    """One thing to measure: a method with its settings, fitted and scored on one split of one task."""

    protocol: str
    kind: str
    task: str
    split: int
    method: str
    base: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None

    @property
    def key(self) -> str:
        """Digest of all that decides what is measured: of every field but the protocol's name."""
        facts = {name: value for name, value in asdict(self).items() if name != "protocol"}
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.method} on {self.task} {self.split}"


@dataclass(frozen=True)
class Method:
    """A way to estimate: a method of the registry with settings of its own, on all tasks and splits or on some."""

    name: str
    base: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[str, ...] | None = None
    splits: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Bar:
    """Figures from elsewhere, to be printed beside those measured; `methods` names those they are for."""

    name: str
    metric: str
    source: str
    values: Mapping[str, float]
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class Protocol:
    """What is measured.

    Parameters
    ----------
    name, title : str
    kind : a name in `tasks.KINDS`
        What a task's name stands for, and what is asked of a fitted method (see `tasks` and `measure`).
    tasks : names of the tasks
    splits : numbers of the repeats; each is the seed of its split and of the method
    methods : Method
    bars : Bar
    rows : int, optional
        Rows of a task, in place of all or of the usual number.
    reference : str, optional
        The method that the others are compared with, split by split.
    """

    name: str
    title: str
    kind: str
    tasks: tuple[str, ...]
    splits: tuple[int, ...]
    methods: tuple[Method, ...]
    bars: tuple[Bar, ...] = ()
    rows: int | None = None
    reference: str | None = None

    def runs(self) -> list[Run]:
        """The plan: every run, whole splits one after the other, so that a part of it compares all methods."""
        return [
            Run(self.name, self.kind, task, split, method.name, method.base, method.settings, self.rows)
            for split in self.splits
            for task in self.tasks
            for method in self.methods
            if task in (method.tasks or self.tasks) and split in (method.splits or self.splits)
        ]

    def narrowed(self, names: Iterable[str] = (), splits: Iterable[int] = ()) -> Protocol:
        """The part of these tasks, methods and splits; a kind of which nothing is named stays whole."""
        names, splits = set(names), set(splits)
        known = {*self.tasks, *(method.name for method in self.methods)}
        if unknown := sorted(names - known):
            raise DataError(
                f"--only must name tasks ({', '.join(self.tasks)}) or methods "
                f"({', '.join(method.name for method in self.methods)}); got '{unknown[0]}'. Choose among them."
            )
        if missing := sorted(splits - set(self.splits)):
            raise DataError(
                f"--splits must lie in {min(self.splits)}..{max(self.splits)}; got {missing[0]}. "
                "Choose among the protocol's."
            )
        return replace(
            self,
            tasks=tuple(task for task in self.tasks if task in names) or self.tasks,
            methods=tuple(method for method in self.methods if method.name in names) or self.methods,
            splits=tuple(split for split in self.splits if split in splits) or self.splits,
        )


def benchmarks_folder() -> Path:
    """The folder of protocols and records: of the source tree this package is in, or of the current folder."""
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (root / "benchmarks").is_dir():
            return root / "benchmarks"
    raise DataError(
        "ogive bench must find the folder 'benchmarks' of the project's source; got none in the current folder. "
        "Run it there, or pass --protocol and --records."
    )


def read_protocol(path: Path, *, quick: bool = False) -> Protocol:
    """A protocol from its file; `quick` puts the entries of the table [quick] in place of the others."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"'{path}' must be a TOML file; got {error}. Correct it.") from error
    small = found.pop("quick", None)
    if quick:
        if not isinstance(small, dict):
            raise FileFormatError(f"'{path}' must have a table [quick]; got none. Add one, or leave --quick out.")
        found |= small
    try:
        return _protocol(found)
    except (AttributeError, TypeError, ValueError) as error:
        raise FileFormatError(f"'{path}' must describe a protocol; got {error}. Correct it.") from error


def _protocol(found: dict[str, Any]) -> Protocol:
    entries = _checked(found, Protocol)
    _known("kind", [entries["kind"]], tasks.KINDS)
    _known("task", entries["tasks"], tasks.KINDS[entries["kind"]].names)
    listed = tuple(_method({"name": entry} if isinstance(entry, str) else entry) for entry in entries["methods"])
    splits = _splits(entries["splits"])
    names = [entries["name"], *(method.name for method in listed)]
    if odd := [name for name in names if not NAME.fullmatch(name) or names[1:].count(name) > 1]:
        raise ValueError(f"the name {odd[0]!r}, not lower-case letters, digits and .-_, or twice")
    if not (entries["tasks"] and splits and listed):
        raise ValueError("no tasks, no splits or no methods")
    for method in listed:
        _known("method", [method.base], methods.METHODS)
        _known("task", method.tasks or (), entries["tasks"])
        _known("split", method.splits or (), splits)
    if entries.get("reference") is not None:
        _known("reference", [entries["reference"]], [method.name for method in listed])
    read = {"tasks": tuple(entries["tasks"]), "splits": splits, "methods": listed}
    return Protocol(**(entries | read | {"bars": tuple(_bar(bar) for bar in entries.get("bars", ()))}))


def _method(entry: dict[str, Any]) -> Method:
    found = _checked({"base": entry.get("name"), **entry}, Method)
    several: dict[str, Callable[[Any], Any]] = {"tasks": tuple, "splits": _splits}
    return Method(**found | {name: read(found[name]) for name, read in several.items() if name in found})


def _bar(entry: dict[str, Any]) -> Bar:
    found = _checked(entry, Bar)
    _known("task", found["values"], {name for kind in tasks.KINDS.values() for name in kind.names})
    values = {task: float(value) for task, value in found["values"].items()}
    return Bar(**found | {"values": values, "methods": tuple(found.get("methods", ()))})


def _checked(entry: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """The entry, if its keys are fields of `kind` and none without a default is missing."""
    parts = {part.name: part for part in fields(kind)}
    _known("key", entry, parts)
    for name, part in parts.items():
        if name not in entry and part.default is MISSING and part.default_factory is MISSING:
            raise ValueError(f"no {name!r} in {kind.__name__.lower()} {entry.get('name', '')!r}")
    return entry


def _splits(given: int | Sequence[int]) -> tuple[int, ...]:
    """3 stands for 0, 1 and 2."""
    return tuple(range(given)) if isinstance(given, int) else tuple(int(split) for split in given)


def _known(what: str, given: Iterable[Any], known: Iterable[Any]) -> None:
    for name in given:
        if name not in known:
            raise ValueError(f"{what} {name!r}, not one of {', '.join(map(str, known))}")
