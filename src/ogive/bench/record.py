"""A record: what one run gave, as one line of JSON. Records are added at the end of a file and never changed.

A line is written at once and brought to the disk before the next run starts, so a kill at any moment costs the runs
under way and no other. A line that a kill tore is no record: reading passes over it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import FileFormatError
from .protocol import Run

__all__ = ["Record", "append", "plain", "read_records"]


@dataclass(frozen=True)
class Record:
    """What one run gave.

    Attributes
    ----------
    run : Run
    measured_at : str
        Time of the end, UTC.
    seed : int
        Of the method.
    size : mapping
        "train", "test" and "all" rows; "features", "outputs".
    seconds : mapping
        "fit" and "score".
    metrics : mapping
        Each a number or nested lists of them, or None where `reasons` says why.
    reasons : mapping
        Why a metric is None.
    failure : str or None
        Type and message of the error that left the run without any metric.
    parameters, warnings, versions, machine
        Of the estimator, of the fit and the scoring, of the software, of the computer.
    """

    run: Run
    measured_at: str
    seed: int
    size: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    failure: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = field(default_factory=list)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    machine: Mapping[str, str | int] = field(default_factory=dict)

    def as_line(self) -> str:
        """One line of JSON with the run's fields and key in front."""
        own = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "run"}
        return json.dumps(plain({"key": self.run.key, **asdict(self.run), **own}), allow_nan=False) + "\n"

    @classmethod
    def from_line(cls, line: str | bytes) -> Record:
        """The record of a line that `as_line` wrote."""
        facts = json.loads(line)
        try:
            run = Run(**{part.name: facts[part.name] for part in fields(Run)})
            own = {part.name: facts[part.name] for part in fields(cls) if part.name != "run"}
        except (KeyError, TypeError) as error:
            raise FileFormatError(
                f"a record must be an object with every field of a record; got {type(error).__name__}: {error}. "
                "Take the line out and measure its run again."
            ) from error
        return cls(run, **own | {"metrics": {name: _numbers(value) for name, value in own["metrics"].items()}})


def append(folder: Path, record: Record) -> None:
    """Add a record to the file of its protocol and method."""
    path = folder / record.run.protocol / f"{record.run.method}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file:
        torn = False
        if file.tell():
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
        file.write(b"\n" * torn + record.as_line().encode())
        os.fsync(file.fileno())


def read_records(folder: Path, protocol: str) -> dict[str, Record]:
    """Records of a protocol by the key of their run; of several the last."""
    found = {}
    for path in sorted((folder / protocol).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                record = Record.from_line(line)
            except (json.JSONDecodeError, UnicodeDecodeError):
                continue
            found[record.run.key] = record
    return found


def plain(value: Any) -> Any:
    """A value as JSON can hold it; infinity and NaN become words."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if isinstance(value, str | int | None) else repr(value)


def _numbers(value: Any) -> Any:
    """The inverse of `plain` for numbers."""
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    return float(value) if isinstance(value, str) else value
