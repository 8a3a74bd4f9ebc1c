"""Tasks: rows to learn from and rows to be judged on, for each kind of task and each repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays import Array
from ..datasets import splits, toy, uci
from ..errors import DataError
from ..metrics import recording_step

__all__ = ["KINDS", "Kind", "Split"]

TOY_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Split:
    """One repeat of a task.

    Attributes
    ----------
    X, y : arrays (n, p) and (n, d)
        To learn from.
    X_test, y_test : arrays
        To be judged on.
    y_all : array
        y of all rows, in the same units: for what a method or a metric is allowed to know of them (see `methods`).
    step : array (d,) or None
        Recording step of the outputs, where they were recorded.
    truth : Toy or None
        The exact law, where it is known.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    y_all: Array
    step: Any = None
    truth: Any = None


@dataclass(frozen=True)
class Kind:
    """A kind of task: the names there are, and the split of one by name, number of the repeat, and rows."""

    names: Sequence[str]
    split: Callable[[str, int, int | None], Split]


def table_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """70 % of a table's rows to learn from and 30 % to be judged on, each output divided by its standard deviation.

    The deviation is that over the whole table: a choice of units, the same for every method. `rows` takes the first
    rows only. The name of a toy stands for a table of as many rows drawn from it, for trials without data.
    """
    X, y = _table(name, rows)
    scale = y.std(0)
    train, test = splits.permutation_split(len(X), repeat)
    scaled = y / scale
    return Split(X[train], scaled[train], X[test], scaled[test], scaled, step=recording_step(y) / scale)


def toy_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """2,000 rows of a toy to learn from, then 2,000 to be judged on, from one generator seeded with the repeat."""
    truth, rng = toy.get(name), np.random.default_rng(repeat)
    X, y = truth.sample(rows or TOY_ROWS, rng)
    X_test, y_test = truth.sample(rows or TOY_ROWS, rng)
    return Split(X, y, X_test, y_test, np.concatenate([y, y_test]), truth=truth)


@lru_cache(maxsize=8)
def _table(name: str, rows: int | None) -> tuple[Array, Array]:
    if name in toy.TOYS:
        return toy.get(name).sample(rows or TOY_ROWS, np.random.default_rng(0))
    try:
        table = uci.load(name)
    except (FileNotFoundError, ImportError, ValueError) as error:
        raise DataError(str(error)) from error
    return table.X[:rows], table.y[:rows]


KINDS = {
    "uci": Kind((*uci.NAMES, *toy.TOYS), table_split),
    "toy": Kind(tuple(toy.TOYS), toy_split),
}
