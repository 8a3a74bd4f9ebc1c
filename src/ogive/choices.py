"""What a user's short parameters mean for d outputs and m members."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import Array
from .errors import DataError

__all__ = ["Pairs", "Support", "check_parameters", "in_turn", "orders_of", "regime_of", "support_of"]

FEWEST_WITH_PILOTS = 4
Pairs = tuple[tuple[float | None, float | None], ...]
Support = str | Sequence[tuple[float | None, float | None]] | None


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse values of constructor parameters that no fit could use."""
    for name in ("n_members", "groups", "units", "batch_size", "max_epochs", "patience"):
        if given[name] is not None and not given[name] >= 1:
            raise DataError(f"{name} must be at least 1; got {given[name]}. Leave it at its default.")
    if not 0.0 < given["validation_fraction"] < 1.0:
        raise DataError(f"validation_fraction must lie between 0 and 1; got {given['validation_fraction']}. Use 0.1.")
    if given["derivative"] not in ("exact", "finite-difference"):
        raise DataError(f"derivative must be 'exact' or 'finite-difference'; got {given['derivative']!r}. Use 'exact'.")
    for name, is_fine in (("dropout", lambda v: 0.0 <= v < 1.0), ("noise", lambda v: v in (0, 1))):
        value = given[name]
        if not _is_auto(value) and (isinstance(value, str) or not all(is_fine(v) for v in np.ravel(value))):
            wanted = "rates in [0, 1)" if name == "dropout" else "True or False"
            raise DataError(f"{name} must be 'auto' or {wanted}; got {value!r}. Use 'auto'.")


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


def support_of(support: Support, targets: Array) -> Pairs:
    """(low, high) of each output, checked against the training rows."""
    d = int(targets.shape[1])
    if support is None:
        return ((None, None),) * d
    if isinstance(support, str):
        if support == "range":
            ranges: Pairs = tuple((float(column.min()), float(column.max())) for column in targets.T)
            return ranges
        if support != "positive":
            raise DataError(f"support must be None, 'positive', 'range' or pairs; got {support!r}. Use None.")
        support = [(0.0, None)] * d
    pairs: Pairs = tuple((_end(low), _end(high)) for low, high in support)
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


def regime_of(
    noise: Any, dropout: Any, n_members: int, *, pilots: bool
) -> tuple[tuple[bool, ...], tuple[float, ...] | None]:
    """Noise and dropout of each member; a dropout of None leaves both to pilots, where these are possible."""
    if _is_auto(noise) and _is_auto(dropout) and pilots and n_members >= FEWEST_WITH_PILOTS:
        return (), None
    rates = in_turn(0.1 if _is_auto(dropout) else dropout, n_members, float)
    return in_turn(False if _is_auto(noise) else noise, n_members, bool), rates


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _end(value: float | None) -> float | None:
    return None if value is None else float(value)


def in_turn(values: Any, n_members: int, kind: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A value for each member: one for all, or several going round."""
    several = list(values) if np.ndim(values) else [values]
    return tuple(kind(v) for v in itertools.islice(itertools.cycle(several), n_members))
