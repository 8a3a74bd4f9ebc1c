"""Quantiles of single members, and the walk along their chains that draws are made of.

A member's conditional quantile needs no link: O is known where the logit is, and Newton's steps from the root of the
hard minimum of maxima reach it. The few points next to a kink that these leave behind are solved in brackets, those of
all members together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..numerics import bracketed_newton
from .factors import MemberFactor
from .jet import Jet
from .linear import Chosen

__all__ = ["walk"]

ROUGH = 1e-3  # of O, before Newton takes the last step and leaves about its square
LINES_AT_ONCE = 1 << 18
NEWTON_STEPS = 4  # leave about one point in fifty behind


def walk(factors: Sequence[MemberFactor], logits: Sequence[Tensor]) -> list[Tensor]:
    """Scaled outputs (1, k, N) of single members whose conditional logits along the chains are `logits` (1, k, N)."""
    found: list[list[Tensor]] = []
    for wanted in zip(*(logit.split(1, 1) for logit in logits), strict=True):
        if found:
            factors = [factor.then(point) for factor, point in zip(factors, found[-1], strict=True)]
        found.append(_quantiles(factors, wanted))
    return [torch.cat(points, 1) for points in zip(*found, strict=True)]


def _quantiles(factors: Sequence[MemberFactor], logits: Sequence[Tensor]) -> list[Tensor]:
    """Points (1, 1, N) of laws of one output, each under one member."""
    searches = [_Search(factor, factor.target(logit)) for factor, logit in zip(factors, logits, strict=True)]
    behind = [search for search in searches if len(search.behind)]
    if behind:
        _solve_in_brackets(behind)
    if factors[0].network.link.bounded:  # rounding may lead out of the support
        return [search.point.clamp(*search.factor.ends) for search in searches]
    return [search.point for search in searches]


class _Search:
    """Points (1, 1, N) after a few of Newton's steps towards O = `target`, and the places of those left `behind`."""

    def __init__(self, factor: MemberFactor, target: Tensor) -> None:
        self.factor, self.target = factor, target
        step = _columns([factor])
        found = [self._newton(slice(start, start + step)) for start in range(0, max(1, target.shape[-1]), step)]
        self.point, settled = (torch.cat(parts, -1) for parts in zip(*found, strict=True))
        self.behind = (~settled).flatten().nonzero()[:, 0]

    def _newton(self, laws: slice) -> tuple[Tensor, Tensor]:
        stack, at, tolerance = self.factor.network.stack, self.factor.at, _tolerance(self.factor)
        target, biases = self.target[..., laws], [bias[..., laws] for bias in self.factor.biases]
        point, settled = stack.start(target, biases, at), torch.zeros_like(target, dtype=torch.bool)
        for _ in range(NEWTON_STEPS):
            value, log_slope = stack(point, biases, at)
            excess = value - target
            newton = point - excess * torch.exp(-log_slope)
            point = torch.where(settled, point, newton)  # a point that has settled waits, whoever is beside it
            settled = settled | (excess.abs() <= tolerance)
        return point, settled & point.isfinite()


def _solve_in_brackets(searches: Sequence[_Search]) -> None:
    """Put right the points left behind, of which every search has at least one."""
    first = searches[0].factor
    stack = first.network.stack
    members = torch.tensor([search.factor.members.start for search in searches], device=first.features.device)
    at: Chosen = (members, first.at[1])
    reached = [search.point.clone() for search in searches]
    for piece in torch.arange(max(len(search.behind) for search in searches)).split(_columns([first] * len(searches))):
        places = [search.behind[piece % len(search.behind)] for search in searches]  # as many of each, some twice
        pairs = list(zip(searches, places, strict=True))
        target = torch.cat([search.target[..., here] for search, here in pairs])
        biases = [
            torch.cat([search.factor.biases[k][..., here] for search, here in pairs]) for k in range(len(first.biases))
        ]

        def rising(point: Tensor, biases: list[Tensor] = biases) -> Jet:
            return Jet(*stack(point, biases, at))

        bracket = stack.bracket(target, biases, at)
        start = torch.cat([point[..., here] for point, (_, here) in zip(reached, pairs, strict=True)])
        holds = stack.only is not None
        roots = bracketed_newton(rising, target, *bracket, tolerance=_tolerance(first), start=start, holds=holds)
        for (search, here), root in zip(pairs, roots, strict=True):
            search.point[..., here] = root


def _columns(factors: Sequence[MemberFactor]) -> int:
    """So many laws of each factor that their lines stay within the cache."""
    return max(1, LINES_AT_ONCE // sum(bias.shape[1] for factor in factors for bias in factor.biases))


def _tolerance(factor: MemberFactor) -> float:
    """Next to an end of the support a small step of O is a large one of the logit: there, to the last digit."""
    epsilon = torch.finfo(factor.features.dtype).eps
    return float(epsilon**0.5) if factor.network.link.bounded else ROUGH
