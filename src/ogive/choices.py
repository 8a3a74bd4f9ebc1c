"""What a user's short parameters mean for d outputs and m members."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .arrays import Array
from .errors import DataError

__all__ = ["Support", "in_turn", "orders_of", "support_of"]

Support = str | Sequence[tuple[float | None, float | None]] | None


def orders_of(order: str | tuple[int, ...], n_members: int, d: int) -> tuple[tuple[int, ...], ...]:
    """Each member's order of outputs."""
    given = tuple(range(d))
    if order == "given":
        return (given,) * n_members
    if order == "cycle":
        return tuple(given[k % d :] + given[: k % d] for k in range(n_members))
    if isinstance(order, str) or sorted(order) != list(given):
        raise DataError(f"order must be 'given', 'cycle' or a permutation of {given}; got {order!r}. Use 'given'.")
    return (tuple(int(i) for i in order),) * n_members


def support_of(support: Support, targets: Array) -> tuple[tuple[float | None, float | None], ...]:
    """(low, high) of each output, checked against the training rows."""
    d = targets.shape[1]
    if support is None:
        return ((None, None),) * d
    if isinstance(support, str):
        if support == "range":
            return tuple((float(column.min()), float(column.max())) for column in targets.T)
        if support != "positive":
            raise DataError(f"support must be None, 'positive', 'range' or pairs; got {support!r}. Use None.")
        support = [(0.0, None)] * d
    pairs = tuple((None if a is None else float(a), None if b is None else float(b)) for a, b in support)
    if len(pairs) != d:
        raise DataError(f"support must have one (low, high) pair per output ({d}); got {len(pairs)}. Add the others.")
    for (low, high), column in zip(pairs, targets.T, strict=True):
        least, most = -np.inf if low is None else low, np.inf if high is None else high
        if least >= most:
            raise DataError(f"support must have low < high; got ({low}, {high}). Swap them.")
        outside = int(((column < least) | (column > most)).sum())
        if outside:
            raise DataError(f"y must lie in its support; got {outside} rows outside ({low}, {high}). Widen it.")
    return pairs


def in_turn(values: Any, n_members: int, kind: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A value for each member: one for all, or several going round."""
    several = list(values) if np.ndim(values) else [values]
    return tuple(kind(v) for v in itertools.islice(itertools.cycle(several), n_members))
