"""Many quantiles of each of many laws: a table of all laws at shared nodes gives brackets and starts, Newton the rest.

A shared node costs a small part of a point of a law's own (`grid.py`), and the cubic through two nodes with their
slopes is mostly within 1e-4 of the logit, so that one reading of every point is enough. Points that need another are
moved up among the levels of their law, where they are read together: no law is ever copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..distribution import Reading
from ..numerics import bracketed_newton

__all__ = ["Table", "quantiles_from_table"]

CLOSE = 1e-6  # of the logit: the step that Newton takes from there leaves about its square
STEPS = 2  # before what is left is solved in brackets
Read = Callable[[Tensor], Reading]


class Table(NamedTuple):
    """Laws read at nodes (k,) that rise: logits and log-slopes (k, n)."""

    nodes: Tensor
    logit: Tensor
    log_slope: Tensor

    def bracket(self, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Two neighbouring nodes around each point (q, n) where the logit is `target`, and a guess between them."""
        right = torch.searchsorted(self.logit.T.contiguous(), target.T.contiguous()).T.clamp(1, len(self.nodes) - 1)
        low, high = self.nodes[right - 1], self.nodes[right]
        z_low, z_high = self.logit.gather(0, right - 1), self.logit.gather(0, right)
        rise = z_high - z_low
        at_low, at_high = (rise * (-self.log_slope.gather(0, i)).exp() for i in (right - 1, right))
        x = (target - z_low) / rise
        rest = 1.0 - x
        guess = low + (high - low) * x * x * (3.0 - 2.0 * x) + x * rest * (rest * at_low - x * at_high)
        inside = (guess >= low) & (guess <= high)
        return low, high, torch.where(inside, guess, 0.5 * (low + high))


def quantiles_from_table(read: Read, target: Tensor, table: Table, tolerance: float) -> Tensor:
    """Points (q, n) where the logit of n laws, rising in t, is `target` (q, n); each law's `read` takes (k, n)."""
    low, high, point = table.bracket(target)
    tolerance = max(tolerance, CLOSE)
    found, left = point, torch.arange(len(target), device=target.device)[:, None].expand_as(target)
    for _ in range(STEPS):
        point, excess = _newton(read, found.gather(0, left), target.gather(0, left))
        found = found.scatter(0, left, point)
        open_ = ~(excess.abs() <= tolerance)
        open_ |= (point < low.gather(0, left)) | (point > high.gather(0, left))
        most = int(open_.sum(0).max())
        if most == 0:
            return found
        first = open_.to(torch.uint8).argsort(stable=True, dim=0, descending=True)[:most]
        left = left.gather(0, first)

    def rising(t: Tensor) -> tuple[Tensor, Tensor]:
        reading = read(t)
        return reading.logit, reading.log_slope

    ends = low.gather(0, left), high.gather(0, left)
    start, wanted = found.gather(0, left), target.gather(0, left)
    roots = bracketed_newton(rising, wanted, *ends, tolerance=tolerance, start=start)
    return found.scatter(0, left, roots)


def _newton(read: Read, point: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    reading = read(point)
    excess = reading.logit - target
    return point - excess * (-reading.log_slope).exp(), excess
