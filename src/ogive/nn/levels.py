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

from ..numerics import bracketed_newton
from .jet import Jet

__all__ = ["Table", "jet_of_mixture", "quantiles_from_table"]

# Of the logit: the step that Newton takes from there leaves about its square. Rougher answers would tell which rows
# shared the nodes.
CLOSE = 3e-7
STEPS = 2  # before what is left is solved in brackets
Read = Callable[[Tensor], Jet]


def jet_of_mixture(log_weights: Tensor, logit: Tensor, log_slope: Tensor) -> Jet:
    """Logit of the mixture sum_m w_m s(z_m), and the log of its slope, in plain numbers: for logits within the floats.

    With F the mixture's CDF its slope is sum_m w_m s(z_m) s(-z_m) z_m' / F (1 - F). All are (m, ...).
    """
    below, above = torch.sigmoid(logit), torch.sigmoid(-logit)
    weight = log_weights.exp()
    log_cdf, log_sf = ((weight * part).sum(0).log_() for part in (below, above))
    density = below.mul_(above).mul_(weight).mul_(log_slope.exp()).sum(0)
    return Jet(log_cdf - log_sf, density.log_() - log_cdf - log_sf)


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


def quantiles_from_table(quick: Read, careful: Read, target: Tensor, table: Table) -> Tensor:
    """Points (q, n) where the logit of n laws, rising in t, is `target` (q, n).

    Logits and log-slopes are read at points (k, n): first in the `quick` way, which may fail far out.
    """
    low, high, point = table.bracket(target)
    found, left = point, torch.arange(len(target), device=target.device)[:, None].expand_as(target)
    for _ in range(STEPS):
        point, excess = _newton(quick, found.gather(0, left), target.gather(0, left))
        found = found.scatter(0, left, point)
        open_ = ~(excess.abs() <= CLOSE)
        open_ |= (point < low.gather(0, left)) | (point > high.gather(0, left))
        most = int(open_.sum(0).max())
        if most == 0:
            return found
        first = open_.to(torch.uint8).argsort(stable=True, dim=0, descending=True)[:most]
        left = left.gather(0, first)

    ends = low.gather(0, left), high.gather(0, left)
    start, wanted = found.gather(0, left), target.gather(0, left)
    roots = bracketed_newton(careful, wanted, *ends, tolerance=CLOSE, start=start)
    return found.scatter(0, left, roots)


def _newton(read: Read, point: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logit, log_slope = read(point)
    excess = logit - target
    return point - excess * (-log_slope).exp(), excess
