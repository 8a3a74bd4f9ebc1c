"""A table of figures by method and task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Row", "Table"]


@dataclass(frozen=True)
class Cell:
    """A figure as it is shown, and the numbers behind it."""

    text: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """Figures by task; `source` says whose they are, and is empty for those measured here."""

    name: str
    cells: Mapping[str, Cell]
    source: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of one quantity, why some of their cells are empty, and what else is to be said."""

    name: str
    title: str
    tasks: Sequence[str]
    rows: Sequence[Row]
    gaps: Sequence[str] = ()
    notes: Sequence[str] = ()
