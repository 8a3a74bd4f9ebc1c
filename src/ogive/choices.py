"""What a user's short parameters mean for d outputs and m members."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .errors import DataError

__all__ = [
    "Pairs",
    "Support",
    "check_parameters",
    "Regime",
    "in_turn",
    "orders_of",
    "regimes_of",
    "support_of",
    "threads_of",
]

Pairs = tuple[tuple[float | None, float | None], ...]
Support = str | Sequence[tuple[float | None, float | None]] | None


class Regime(NamedTuple):
    """What holds a member back from learning its rows by heart, and whether it has ramps over its features."""

    dropout: float
    noise: bool
    ramps: bool


# Which of these suits a table, only its held-back rows can tell; between them they suit all we have seen.
REGIMES = (Regime(0.1, False, False), Regime(0.1, False, True), Regime(0.0, True, True), Regime(0.0, False, False))


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse values of constructor parameters that no fit could use."""
    for names, wanted, fits, remedy in REQUIREMENTS:
        for name in names.split():
            if not _holds(fits, given[name]):
                raise DataError(f"{name} must be {wanted}; got {given[name]!r}. {remedy}")


def _holds(fits: Callable[[Any], Any], value: Any) -> bool:
    try:
        return bool(fits(value))
    except (TypeError, ValueError):
        return False


def _is_whole(value: Any, least: float = 1) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _auto_or(fits: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Whether a value is "auto", or fits, or is a sequence of which every one fits."""

    def check(value: Any) -> bool:
        several = np.ravel(value).tolist()
        return _is_auto(value) or bool(several and all(not isinstance(one, str) and fits(one) for one in several))

    return check


# Names, what they must be, whether a value is that, and what to do.
REQUIREMENTS: tuple[tuple[str, str, Callable[[Any], Any], str], ...] = (
    ("n_members groups units batch_size", "a whole number of at least 1", _is_whole, "Leave it at its default."),
    (
        "max_epochs patience",
        "None or a whole number of at least 1",
        lambda v: v is None or _is_whole(v),
        "Leave it at its default.",
    ),
    (
        "hidden",
        "None or a tuple of widths of at least 1",
        lambda v: v is None or (len(v) > 0 and all(_is_whole(one) for one in v)),
        "Use None.",
    ),
    ("learning_rate delta", "a positive number", lambda v: _is_number(v) and v > 0, "Leave it at its default."),
    ("weight_decay", "a number of at least 0", lambda v: _is_number(v) and v >= 0, "Use 0.0 for none."),
    ("validation_fraction", "between 0 and 1", lambda v: 0.0 < v < 1.0, "Use 0.1."),
    ("derivative", "'exact' or 'finite-difference'", lambda v: v in ("exact", "finite-difference"), "Use 'exact'."),
    ("noise", "'auto' or True or False", _auto_or(lambda v: v in (0, 1)), "Use 'auto'."),
    ("dropout", "'auto' or rates in [0, 1)", _auto_or(lambda v: 0.0 <= v < 1.0), "Use 'auto'."),
    ("architecture", "None or a mapping", lambda v: v is None or isinstance(v, Mapping), "Use None."),
    ("device", "the name of a device", lambda v: isinstance(v, str), "Use 'auto'."),
    ("n_jobs", "None or a whole number but 0", lambda v: v is None or (_is_whole(v, -math.inf) and v), "Use None."),
    ("verbose", "0 or 1", lambda v: _is_whole(v, 0), "Use 0."),
)


def orders_of(order: str | tuple[int, ...], n_members: int, d: int) -> tuple[tuple[int, ...], ...]:
    """Each member's order of outputs."""
    given = tuple(range(d))
    if order == "given":
        return (given,) * n_members
    if order == "cycle":
        return tuple(given[k % d :] + given[: k % d] for k in range(n_members))
    if not _is_permutation(order, given):
        raise DataError(f"order must be 'given', 'cycle' or a permutation of {given}; got {order!r}. Use 'given'.")
    return (tuple(int(i) for i in order),) * n_members


def support_of(support: Support, targets: Array) -> Pairs:
    """(low, high) of each output, checked against the training rows."""
    d = int(targets.shape[1])
    if support is None:
        return ((None, None),) * d
    if isinstance(support, str) and support == "range":
        return tuple(_range_of(column) for column in targets.T)
    pairs = _pairs([(0.0, None)] * d if isinstance(support, str) and support == "positive" else support)
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


def regimes_of(noise: Any, dropout: Any, order: Sequence[Sequence[int]]) -> tuple[Regime, ...]:
    """The regime of each member; what the user gives, for all members or in turn, takes the place of ours.

    Members with different orders of outputs share a regime before the next one has its turn.
    """
    period, n_members = len(set(order)), len(order)
    ours = [REGIMES[k // period % len(REGIMES)] for k in range(n_members)]
    rates = [one.dropout for one in ours] if _is_auto(dropout) else in_turn(dropout, n_members, float)
    noisy = [one.noise for one in ours] if _is_auto(noise) else in_turn(noise, n_members, bool)
    return tuple(Regime(rates[k], noisy[k], ours[k].ramps) for k in range(n_members))


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _is_permutation(order: Any, given: tuple[int, ...]) -> bool:
    try:
        return not isinstance(order, str) and sorted(order) == list(given)
    except (TypeError, ValueError):
        return False


def _pairs(support: Any) -> Pairs:
    try:
        if isinstance(support, str):
            raise TypeError
        return tuple((_end(low, -np.inf), _end(high, np.inf)) for low, high in support)
    except (TypeError, ValueError) as error:
        raise DataError(f"support must be None, 'positive', 'range' or pairs; got {support!r}. Use None.") from error


def _end(value: Any, open_end: float) -> float | None:
    """One end of a support; an infinite one is open."""
    if value is None or value == open_end:
        return None
    if np.isnan(value):
        raise ValueError
    return float(value)


def _range_of(column: Array) -> tuple[float, float]:
    """Least and greatest value; a column without a range gets room around it."""
    low, high = float(column.min()), float(column.max())
    if 0.5 * low < 0.5 * high:  # a range whose half is a float too
        return low, high
    room, most = max(1.0, 1e-6 * abs(low)), float(np.finfo(np.float64).max)
    return max(low - room, -most), min(high + room, most)


def in_turn(values: Any, n_members: int, kind: Callable[[Any], Any]) -> tuple[Any, ...]:
    """A value for each member: one for all, or several going round."""
    several = list(values) if np.ndim(values) else [values]
    return tuple(kind(v) for v in itertools.islice(itertools.cycle(several), n_members))


def threads_of(n_jobs: int | None) -> int | None:
    """Threads to train with, None for torch's own number; -1 means all cores, -2 all but one."""
    if n_jobs is None or n_jobs > 0:
        return n_jobs
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
