"""Integrals under a one-dimensional law: mean, variance, entropy, CRPS.

The line is cut at quantiles that reach far into both tails, panels where much probability is spread over a long
stretch are cut again, and Gauss-Legendre nodes fill each panel. Integrals of the CDF and the survival function are
preferred to integrals of the density, which is the rougher of the three.
"""

from __future__ import annotations

import torch
from numpy.polynomial.legendre import leggauss
from torch import Tensor
from torch.nn.functional import logsigmoid

from .distribution import Law

__all__ = ["Quadrature"]

NODES = 4
PIECES = 4
WORST = 8
ROUNDS = 2
# Logits of the first cuts: every 0.75 in the body, then out to probabilities of 1e-14.
BODY = [0.75 * k for k in range(8)]
TAIL = [7.5, 9.5, 12.5, 17.0, 24.0, 32.0]


class Quadrature:
    """Nodes (k, n) and weights (k, n), and a law's readings there; `through` (n,) is made an edge of panels.

    Panels are cut again in `rounds`: one is enough for the CRPS, whose integrand lies between 0 and 1.
    """

    def __init__(
        self, law: Law, n_rows: int, like: Tensor, through: Tensor | None = None, rounds: int = ROUNDS
    ) -> None:
        edges, self.center = _edges(law, n_rows, like, rounds)
        if through is not None:
            edges = torch.cat([edges, through[None]]).sort(0).values
        self.low, self.high = edges[0], edges[-1]
        self.nodes, self.weights = _gauss(edges)
        logit, self.log_density = law.read(self.nodes)
        self.log_cdf, self.log_sf = logsigmoid(logit), logsigmoid(-logit)

    def mean(self) -> Tensor:
        """E y = c + int_c^inf S - int_-inf^c F (n,)."""
        signed = torch.where(self.nodes > self.center, self.log_sf.exp(), -self.log_cdf.exp())
        return self.center + (self.weights * signed).sum(0)

    def variance(self) -> Tensor:
        """E (y - c)^2 = 2 int_c^inf (y - c) S + 2 int_-inf^c (c - y) F, brought from c to the mean."""
        spread = self.high - self.low
        unit = torch.where(spread > 0, spread, 1.0)  # squares of large numbers leave the floats
        away = (self.nodes - self.center) / unit
        tail = torch.where(away > 0, self.log_sf, self.log_cdf).exp()
        about_center = 2.0 * ((self.weights / unit) * away.abs() * tail).sum(0)
        about_mean = about_center - ((self.mean() - self.center) / unit) ** 2
        return about_mean.clamp_min(0.0) * unit * unit  # rounding may take a variance of nought below it

    def entropy(self) -> Tensor:
        """-E log p (n,)."""
        silent = self.log_density.isinf()
        log_density = torch.where(silent, 0.0, self.log_density)
        return -self.expect(log_density)

    def crps(self, y: Tensor) -> Tensor:
        """int (F - 1[t >= y])^2 dt, exact beyond the panels, where F is zero or one."""
        squared = torch.where(self.nodes < y, 2.0 * self.log_cdf, 2.0 * self.log_sf).exp()
        return (self.weights * squared).sum(0)

    def expect(self, values: Tensor) -> Tensor:
        """E g(y) from g at the nodes (k, n)."""
        mass = self.weights * self.log_density.exp()
        return (mass * values).sum(0) / mass.sum(0)

    def densest(self) -> Tensor:
        """The node of greatest density (n,)."""
        return self.nodes.gather(0, self.log_density.argmax(0, keepdim=True))[0]


def _edges(law: Law, n_rows: int, like: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """Edges of the panels (k, n), the worst cut again in some rounds, and the one near the median."""
    above = torch.tensor(BODY[1:] + TAIL, dtype=like.dtype, device=like.device)
    levels = torch.cat([-above.flip(0), above.new_zeros(1), above])
    edges = law.icdf(levels[:, None].expand(-1, n_rows), tolerance=1e-2).cummax(0).values
    center = edges[len(above)]
    cdf = levels.sigmoid()[:, None].expand_as(edges)
    inner = torch.arange(1, PIECES, dtype=like.dtype, device=like.device)[:, None, None] / PIECES
    for _ in range(rounds):
        worst = (cdf.diff(dim=0) * edges.diff(dim=0)).topk(WORST, 0).indices
        left, right = edges.gather(0, worst), edges.gather(0, worst + 1)
        cuts = (left + inner * (right - left)).flatten(0, 1)
        edges = torch.cat([edges, cuts]).sort(0).values
        cdf = torch.cat([cdf, law.read(cuts).logit.sigmoid()]).sort(0).values
    return edges, center


def _gauss(edges: Tensor) -> tuple[Tensor, Tensor]:
    """Gauss-Legendre nodes and weights (k, n) of the panels between edges."""
    abscissa, share = (torch.from_numpy(part).to(edges)[:, None, None] for part in leggauss(NODES))
    half = 0.5 * edges.diff(dim=0)
    middle = edges[:-1] + half
    return (middle + half * abscissa).flatten(0, 1), (half * share).flatten(0, 1)
