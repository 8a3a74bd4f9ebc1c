"""Members that share one order of outputs, as one exact chain of conditional laws.

A mixture of chains over the same order is itself a chain: the weights of factor i are the members' weights times
the densities that each gave to the outputs before it. They travel as logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ..distribution import Distribution, Factor, Reading, Triangular
from ..numerics import logit_of_mixture
from .jet import Jet
from .linear import Chosen

Rising = Callable[[Tensor], Jet]

if TYPE_CHECKING:
    from .cdf import CDFNetwork

__all__ = ["Ensemble", "EnsembleFactor"]

LINES_AT_ONCE = 1 << 22


class Ensemble(Triangular):
    """p(y | x) of the chosen members for features (1, p, n), in the user's units."""

    def __init__(self, network: CDFNetwork, features: Tensor, members: slice) -> None:
        self.network, self.members = network, members
        self.features = features if features.ndim == 3 else features[None]
        self.order = tuple(network.order[members][0].tolist())
        self.n_rows, self.n_outputs = self.features.shape[-1], network.n_outputs
        self.log_weights = network.log_weights[members].log_softmax(0)

    def rows(self, index: slice) -> Distribution:
        return Ensemble(self.network, self.features[..., index], self.members)

    def first(self) -> Factor:
        nothing = self.features[:, :0]
        log_weights = self.log_weights[:, None].to(self.features.dtype)
        return EnsembleFactor(self, 0, self.features, nothing, log_weights.expand(-1, self.n_rows), ())

    def log_prob(self, y: Tensor) -> Tensor:
        leading, network = y.shape[:-2], self.network
        scaled = network.scale_y(y).to(self.features.dtype).flatten(0, -2)
        features = self.features.repeat(1, 1, leading.numel()) if leading else self.features
        reading = network.readings(features, network.chain(scaled, self.members), self.members)
        joint = torch.logsumexp(self.log_weights[:, None].to(scaled.dtype) + reading.log_density.sum(1), 0)
        return (joint + network.scale_y.log_jacobian.sum().to(joint.dtype)).view(*leading, self.n_rows)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        """Draws at the price of one member: each picks its member first, then walks that member's chain."""
        cells = size * self.n_rows
        member = torch.multinomial(self.log_weights.exp(), cells, replacement=True, generator=generator)
        level = torch.rand(cells, self.n_outputs, generator=generator, dtype=torch.float64)
        logits = level.logit(eps=1e-16).to(self.features.dtype)
        draws = torch.empty_like(logits)
        every = range(*self.members.indices(self.network.n_members))
        for k, place in enumerate(every):
            mine = (member == k).nonzero()[:, 0]
            alone = Ensemble(self.network, self.features, slice(place, place + 1))
            factor = alone.first().take(mine % self.n_rows)
            for i in self.order:
                y = factor.icdf(logits[mine, i])
                draws[mine, i] = y
                factor = factor.then(y) if i != self.order[-1] else factor
        return draws.view(size, self.n_rows, self.n_outputs)


class EnsembleFactor(Factor):
    """One link of the ensemble's chain; `leading` are the draws over which the outputs before it vary.

    The condition biases are computed once, when the factor is made; reading it at many points costs lines only.
    Rows and leading axes are flat inside: N = leading x n.
    """

    def __init__(
        self,
        law: Ensemble,
        place: int,
        features: Tensor,
        before: Tensor,
        log_weights: Tensor,
        leading: tuple[int, ...],
        biases: list[Tensor] | None = None,
    ) -> None:
        network = law.network
        self.law, self.place, self.features, self.before = law, place, features, before
        self.log_weights, self.leading = log_weights, leading
        self.at: Chosen = (law.members, slice(place, place + 1))
        if biases is None:
            biases = network.stack.biases(network.conditioner(features, before, self.at), self.at)
        self.biases = biases
        output = law.order[place]
        self.center, self.scale = network.scale_y.center[output], network.scale_y.scale[output]
        self.ends = network.ends(self.at, features.dtype)

    def take(self, index: Tensor) -> EnsembleFactor:
        """The factor of some flat rows, with repetition."""
        features, before = self.features[..., index], self.before[..., index]
        biases = [bias[..., index] for bias in self.biases]
        return EnsembleFactor(self.law, self.place, features, before, self.log_weights[..., index], (), biases)

    def read(self, y: Tensor) -> Reading:
        logit, log_density = self._members(y)
        log_weights = self.log_weights[:, None]
        mixed = logit_of_mixture(log_weights, logit) if len(logit) > 1 else logit[0]
        joint = torch.logsumexp(log_weights + log_density, 0) if len(logit) > 1 else log_density[0]
        return Reading(mixed.view_as(y), joint.view_as(y) - self.scale.log().to(joint.dtype))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        stack, link = self.law.network.stack, self.law.network.link
        flat = logit.reshape(1, -1, self.features.shape[-1]).expand(self.log_weights.shape[0], -1, -1)
        target = link.target(self._rising(self.biases), flat, self.ends)
        low, high = stack.bracket(target, self.biases, self.at)
        low, high = torch.maximum(low, self.ends[0]).amin(0), torch.minimum(high, self.ends[1]).amax(0)
        return self._unscaled(low).view_as(logit), self._unscaled(high).view_as(logit)

    def then(self, y: Tensor) -> Factor:
        log_density = self._members(y).log_density
        points = log_density.shape[1]
        log_weights = (self.log_weights[:, None] + log_density).flatten(1).log_softmax(0)
        features, before = (rows.repeat(1, 1, points) for rows in (self.features, self.before))
        before = torch.cat([before, self._scaled(y).reshape(1, 1, -1)], 1)
        return EnsembleFactor(self.law, self.place + 1, features, before, log_weights, tuple(y.shape[:-1]))

    def _scaled(self, y: Tensor) -> Tensor:
        return ((y.to(self.center.dtype) - self.center) / self.scale).to(self.features.dtype)

    def _unscaled(self, point: Tensor) -> Tensor:
        return (self.center + self.scale * point.to(self.center.dtype)).to(point.dtype)

    def _rising(self, biases: list[Tensor]) -> Rising:
        return lambda point: self.law.network.stack(point, biases, self.at)

    def _members(self, y: Tensor) -> Reading:
        """Each member's reading in scaled units, (m, q, N), in pieces that stay within the cache."""
        n_members, rows = self.log_weights.shape
        point = self._scaled(y).reshape(1, -1, rows).expand(n_members, -1, -1)
        lines = sum(bias[..., 0].numel() for bias in self.biases)
        points_at_once = max(1, LINES_AT_ONCE // lines)
        step = max(1, points_at_once // point.shape[1])
        depth = max(1, points_at_once // step)
        if step >= rows and depth >= point.shape[1]:
            return self._read_piece(point, slice(None))
        pieces = []
        for start in range(0, rows, step):
            here = slice(start, start + step)
            found = [self._read_piece(part, here) for part in point[..., here].split(depth, 1)]
            pieces.append([torch.cat(parts, 1) for parts in zip(*found, strict=True)])
        return Reading(*(torch.cat(parts, -1) for parts in zip(*pieces, strict=True)))

    def _read_piece(self, point: Tensor, rows: slice) -> Reading:
        biases = [bias[..., rows] for bias in self.biases]
        return self.law.network.link.read(self._rising(biases), point, self.ends)
