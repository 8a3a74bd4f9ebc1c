"""Weighted mixtures of laws that need not share a chain: joint laws, and their laws of one output."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .distribution import Distribution, Law, Reading
from .numerics import logit_of_mixture

__all__ = ["Mixture", "MixtureLaw"]


class Mixture(Distribution):
    """Weighted mixture of distributions over the same outputs; each keeps a chain (an order) of its own."""

    def __init__(self, parts: Sequence[Distribution], log_weights: Tensor) -> None:
        self.parts, self.log_weights = list(parts), log_weights
        self.n_rows, self.n_outputs = parts[0].n_rows, parts[0].n_outputs

    def log_prob(self, y: Tensor) -> Tensor:
        each = torch.stack([part.log_prob(y) for part in self.parts], -1)
        return torch.logsumexp(each + self.log_weights, -1)

    def log_prob_grid(self, axes: Sequence[Tensor]) -> Tensor:
        """Each part walks its own chain."""
        each = torch.stack([part.log_prob_grid(axes) for part in self.parts], -1)
        return torch.logsumexp(each + self.log_weights, -1)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        shares = self.log_weights.exp().expand(size, -1)
        part = torch.multinomial(shares, self.n_rows, replacement=True, generator=generator)
        draws = torch.stack([law.sample(size, generator) for law in self.parts])
        return draws.gather(0, part[None, ..., None].expand(1, *draws.shape[1:]))[0]

    def log_box(self, low: Tensor, high: Tensor, points: Tensor) -> Tensor:
        each = torch.stack([part.log_box(low, high, points) for part in self.parts], -1)
        return torch.logsumexp(each + self.log_weights, -1)

    def rows(self, index: slice) -> Distribution:
        return Mixture([part.rows(index) for part in self.parts], self.log_weights)

    def marginal(self, output: int, n_paths: int) -> Law:
        each = max(1, n_paths // len(self.parts))
        return MixtureLaw([part.marginal(output, each) for part in self.parts], self.log_weights)

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        each = [part.paths(2 * max(1, size // (2 * len(self.parts)))) for part in self.parts]
        log_weights = [(w + own).chunk(2) for w, (_, own) in zip(self.log_weights, each, strict=True)]
        draws = [drawn.chunk(2) for drawn, _ in each]
        first, second = (torch.cat([half[i] for i in (0, 1) for half in each]) for each in (draws, log_weights))
        return first, second


class MixtureLaw(Law):
    """The law of one output under a mixture of distributions, from its law under each."""

    def __init__(self, laws: Sequence[Law], log_weights: Tensor) -> None:
        self.laws, self.log_weights = list(laws), log_weights
        self.n_paths = max(law.n_paths for law in laws)

    def read(self, y: Tensor) -> Reading:
        logits, log_densities = zip(*(law.read(y) for law in self.laws), strict=True)
        log_weights = self.log_weights.view(-1, *[1] * y.ndim)
        joint = torch.logsumexp(log_weights + torch.stack(log_densities), 0)
        return Reading(logit_of_mixture(log_weights, torch.stack(logits)), joint)

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        lows, highs = zip(*(law.bracket(logit) for law in self.laws), strict=True)
        return torch.stack(lows).amin(0), torch.stack(highs).amax(0)
