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

TOY_ROWS, ABLATION_ROWS = 2000, 500
NESTED_SEED = 1000


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
    size : int
        Rows of the table that the split is of.
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
    size: int
    step: Any = None
    truth: Any = None


@dataclass(frozen=True)
class Kind:
    """A kind of task.

    Attributes
    ----------
    names : of its tasks
    split : callable (name, number of the repeat, rows) -> Split
    judged : callable (size, number of the repeat) -> array of int
        Which rows of a table of that size are judged on: for what is pooled over repeats.
    """

    names: Sequence[str]
    split: Callable[[str, int, int | None], Split]
    judged: Callable[[int, int], Any]


def table_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """70 % of a table's rows to learn from and 30 % to be judged on, each output divided by its standard deviation.

    The deviation is that over the whole table: a choice of units, the same for every method. `rows` takes the first
    rows only. The name of a toy stands for a table of as many rows drawn from it, for trials without data.
    """
    X, y = _table(name, rows)
    scale = y.std(0)
    train, test = splits.permutation_split(len(X), repeat)
    scaled = y / scale
    return Split(X[train], scaled[train], X[test], scaled[test], scaled, len(X), step=recording_step(y) / scale)


def nested_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """80 % of what `table_split` learns from to learn from and 20 % of it to be judged on, for the choice of defaults.

    No test row of the table is seen; the units and the recording step are those of the whole table.
    """
    outer = table_split(name, repeat, rows)
    train, test = splits.permutation_split(len(outer.X), NESTED_SEED + repeat, train_fraction=0.8)
    X, y = outer.X, outer.y
    return Split(X[train], y[train], X[test], y[test], y, outer.size, step=outer.step)


def table_judged(size: int, repeat: int) -> Any:
    """The test rows of `table_split`."""
    return splits.permutation_split(size, repeat)[1]


def nested_judged(size: int, repeat: int) -> Any:
    """The rows that `nested_split` judges on, as rows of the whole table."""
    outer = splits.permutation_split(size, repeat)[0]
    return outer[splits.permutation_split(len(outer), NESTED_SEED + repeat, train_fraction=0.8)[1]]


def toy_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """2,000 rows of a toy to learn from, then 2,000 to be judged on, from one generator seeded with the repeat."""
    truth, rng = toy.get(name), np.random.default_rng(repeat)
    X, y = truth.sample(rows or TOY_ROWS, rng)
    X_test, y_test = truth.sample(rows or TOY_ROWS, rng)
    return Split(X, y, X_test, y_test, np.concatenate([y, y_test]), 2 * len(X), truth=truth)


def ablation_split(name: str, repeat: int, rows: int | None = None) -> Split:
    """As `toy_split`, with 500 rows each: the paper's ablation has 1,000, half of them to learn from."""
    return toy_split(name, repeat, rows or ABLATION_ROWS)


def toy_judged(size: int, repeat: int) -> Any:
    """The second half; no two repeats share a row."""
    return np.arange(size // 2, size) + repeat * size


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
    "uci": Kind((*uci.NAMES, *toy.TOYS), table_split, table_judged),
    "toy": Kind(tuple(toy.TOYS), toy_split, toy_judged),
    "ablation": Kind(tuple(toy.TOYS), ablation_split, toy_judged),
    "delta": Kind(tuple(toy.TOYS), toy_split, toy_judged),
    "nested": Kind((*uci.NAMES, *toy.TOYS), nested_split, nested_judged),
}
