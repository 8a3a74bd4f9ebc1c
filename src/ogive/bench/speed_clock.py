r"""How works are timed: in rounds in which every subject has its turn.

Noise of the machine comes in stretches. In rounds it meets all subjects alike, and a ratio is taken within each round
before the median over rounds is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Spread", "exponent", "in_rounds", "ratio", "spread"]

MOST_LOOPS = 10_000


class Spread(NamedTuple):
    """A median between the quartiles."""

    median: float
    low: float
    high: float

    def times(self, factor: float) -> Spread:
        """The same in another unit."""
        return Spread(factor * self.median, factor * self.low, factor * self.high)

    def inverse(self) -> Spread:
        """Of the reciprocals."""
        return Spread(1.0 / self.median, 1.0 / self.high, 1.0 / self.low)


def in_rounds(calls: Mapping[str, Callable[[], Any]], repeats: int, shortest: float) -> dict[str, list[float]]:
    """Seconds of one call of each, by round, of calls that are warm.

    Where one call would take less than `shortest` seconds, a turn is made of several.
    """
    loops = {name: _enough(_timed(call, 1), shortest) if shortest > 0.0 else 1 for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(_timed(call, loops[name]))
    return times


def _timed(call: Callable[[], Any], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops


def _enough(seconds: float, shortest: float) -> int:
    return max(1, min(MOST_LOOPS, math.ceil(shortest / max(seconds, 1e-9))))


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles, interpolated between ranks."""
    low, median, high = np.percentile(values, [25, 50, 75])
    return Spread(float(median), float(low), float(high))


def ratio(times: Sequence[float], reference: Sequence[float]) -> Spread:
    """Spread of the ratios of two subjects' times in the same rounds."""
    return spread([own / other for own, other in zip(times, reference, strict=True)])


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    r"""The k of seconds :math:`\approx c\, \text{size}^k`, by least squares in logarithms."""
    x, y = np.log(np.asarray(sizes, dtype=np.float64)), np.log(np.asarray(seconds, dtype=np.float64))
    centred = x - x.mean()
    return float((centred * y).sum() / np.square(centred).sum())
