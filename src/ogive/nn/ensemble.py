"""Members that share one order of outputs, as one exact chain of conditional laws.

A mixture of chains over the same order is itself a chain: the weights of factor i are the members' weights times
the densities that each gave to the outputs before it. They travel as logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial

import torch
from torch import Tensor

from ..distribution import Distribution, Factor, Law, Reading, Triangular, random_logits
from ..numerics import logit_of_mixture, sobol_points
from .factors import FactorNetwork, MemberFactor, of_rising
from .grid import on_axis, readings_on_axis
from .jet import Jet
from .levels import Table, jet_of_mixture, quantiles_from_table
from .rounds import Rounds
from .walk import walk

__all__ = ["Ensemble", "EnsembleFactor", "PathLaw"]

NODES_AT_ONCE = 4096
DRAWS_AT_ONCE = 1 << 15
WORTH_A_TABLE = 16
NODES, LEVELS_OF_NODES = 256, 9
CELLS_AT_ONCE = 1 << 19  # a few megabytes of hidden features: a quarter faster than what leaves the cache


class Ensemble(Triangular):
    """p(y | x) of the chosen members for scaled features (1, p, n), in the user's units."""

    def __init__(self, network: FactorNetwork, features: Tensor, members: slice) -> None:
        self.network, self.members, self.features = network, members, features
        self.order = tuple(network.order[members][0].tolist())
        self.n_rows, self.n_outputs = features.shape[-1], network.n_outputs
        self.log_weights = network.log_weights[members].log_softmax(0).to(features.dtype)

    def rows(self, index: slice) -> Distribution:
        return Ensemble(self.network, self.features[..., index], self.members)

    def first(self) -> Factor:
        start = MemberFactor(self.network, self.members, self.features, self.features[:, :0])
        return EnsembleFactor(self, start, self.log_weights[:, None].expand(-1, self.n_rows))

    def log_prob(self, y: Tensor) -> Tensor:
        if y.ndim > 2:
            return super().log_prob(y)
        network = self.network
        chain = network.chain(network.scale_y(y).to(self.features.dtype), self.members)
        step = max(1, CELLS_AT_ONCE // (len(self.log_weights) * network.width))
        pieces = zip(self.features.split(step, 2), chain.split(step, 2), strict=True)
        density = [network.readings(*piece, self.members).log_density.sum(1) for piece in pieces]
        joint = torch.logsumexp(self.log_weights[:, None] + torch.cat(density, 1), 0)
        return joint + network.scale_y.log_jacobian.sum().to(joint.dtype)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        """Draws at the price of one member: each picks its member first, then walks that member's chain."""
        cells = torch.arange(size * self.n_rows)
        member = torch.multinomial(self.log_weights.exp(), len(cells), replacement=True, generator=generator)
        logits = random_logits((len(cells), self.n_outputs), generator).to(self.features.dtype)
        draws = torch.empty_like(logits)
        for mine in cells.view(size, self.n_rows).T.flatten().split(DRAWS_AT_ONCE):  # draws of a row come together
            draws[mine] = self._draws(member[mine], mine % self.n_rows, logits[mine])
        return self._unscaled(draws).view(size, self.n_rows, self.n_outputs)

    def _draws(self, member: Tensor, row: Tensor, logits: Tensor) -> Tensor:
        """Scaled draws (k, d) in chain order, of one member (k,) and row (k,) each, of conditional `logits` (k, d)."""
        every, factors = [], []
        for k, start in enumerate(self._starts()):
            mine = (member == k).nonzero()[:, 0]
            if len(mine):
                rounds = Rounds(row[mine])
                every.append(mine[rounds.order])
                factors.append(start(rounds.rows).laid_out(rounds.spread))
        chains = walk(factors, [logits[mine].T[None] for mine in every])
        draws = torch.empty_like(logits)
        if chains:  # there may be no rows
            draws[torch.cat(every)] = torch.cat(chains, -1)[0].T
        return draws

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        """Every member walks its own chain from its own Sobol points, so the weights of members are exact."""
        each = self._paths_each(max(size, 2 * len(self.log_weights)))
        chain = self._member_paths(each)
        draws = chain.view(len(chain), self.n_outputs, each, self.n_rows).permute(2, 0, 3, 1).flatten(0, 1)
        log_weights = (self.log_weights - math.log(each)).repeat(each)
        return self._unscaled(draws), log_weights

    def marginal(self, output: int, n_paths: int) -> Law:
        place = self.order.index(output)
        return PathLaw(self, place, self._paths_each(n_paths)) if place else self.first()

    def after_paths(self, place: int, each: int) -> MemberFactor:
        """The factor of the output at `place`, along `each` paths of each member's own."""
        start = MemberFactor(self.network, self.members, self.features, self.features[:, :0])
        factor = start.laid_out(lambda part: part.repeat(1, 1, each))
        for i in range(place):
            factor = factor.then(self._member_paths(each)[:, i : i + 1])
        return factor

    def _paths_each(self, size: int) -> int:
        """Paths of each member that make about `size` together, a power of two."""
        return 1 << max(0, math.ceil(math.log2(size / len(self.log_weights))))

    def _member_paths(self, each: int) -> Tensor:
        """The outputs (m, d, k n) along k = `each` Sobol points of each member's own; found once and kept."""
        if each not in self._walked:
            n_members = len(self.log_weights)
            points = sobol_points(n_members * each, self.n_outputs).view(n_members, each, -1)  # blocks stay well spread
            logits = points.logit().mT[..., None].expand(-1, -1, -1, self.n_rows).flatten(2)
            starts = [start(slice(None)).laid_out(lambda part: part.repeat(1, 1, each)) for start in self._starts()]
            self._walked[each] = torch.cat(walk(starts, logits.to(self.features.dtype).split(1)))
        return self._walked[each]

    @cached_property
    def _walked(self) -> dict[int, Tensor]:
        return {}

    def _starts(self) -> list[Callable[[Tensor | slice], MemberFactor]]:
        """For each member alone, its first factor as a function of the rows."""

        def start(place: int, rows: Tensor | slice) -> MemberFactor:
            features = self.features[..., rows]
            return MemberFactor(self.network, slice(place, place + 1), features, features[:, :0])

        return [partial(start, place) for place in range(*self.members.indices(self.network.n_members))]

    def _unscaled(self, chain: Tensor) -> Tensor:
        """User's units and order, for scaled outputs (..., d) in chain order."""
        place = [self.order.index(i) for i in range(self.n_outputs)]
        scale_y = self.network.scale_y
        return (scale_y.center + scale_y.scale * chain[..., place].to(scale_y.center.dtype)).to(chain.dtype)


class ScaledLaw(Law):
    """A law in the user's units over a `MemberFactor` in scaled ones."""

    member: MemberFactor

    def __init__(self, law: Ensemble, place: int) -> None:
        self.law = law
        scale_y, output = law.network.scale_y, law.order[place]
        self.scale_y, self.output = scale_y, output
        self.center, self.scale = scale_y.center[output], scale_y.scale[output]

    def _scaled(self, y: Tensor) -> Tensor:
        return self.scale_y.of(self.output, y).to(self.law.features.dtype)

    def _unscaled(self, point: Tensor) -> Tensor:
        return (self.center + self.scale * point.to(self.center.dtype)).to(point.dtype)

    def _log_scale(self, like: Tensor) -> Tensor:
        return self.scale.log().to(like.dtype)


class EnsembleFactor(ScaledLaw, Factor):
    """One link of the ensemble's chain; `log_weights` (m, N) are the members' weights given the outputs before.

    Points are (..., N) with N flat over the draws and rows of the outputs before.
    """

    def __init__(self, law: Ensemble, member: MemberFactor, log_weights: Tensor) -> None:
        super().__init__(law, member.before.shape[1])
        self.member, self.log_weights = member, log_weights

    def _members(self, points: Tensor) -> Reading:
        """Each member's reading (m, q, N) at scaled points (1, q, N)."""
        return self.member.read(points.expand(len(self.log_weights), -1, -1))

    def _mixed(self, points: Tensor) -> Reading:
        """The mixture's reading (q, N) at scaled points (1, q, N), in scaled units."""
        logit, log_density = self._members(points)
        if len(logit) == 1:
            return Reading(logit[0], log_density[0])
        log_weights = self.log_weights[:, None]
        return Reading(logit_of_mixture(log_weights, logit), torch.logsumexp(log_weights + log_density, 0))

    def _flat(self, values: Tensor) -> Tensor:
        """Values (..., N) of laws that may lie in a shape, (1, q, N)."""
        n_laws = self.log_weights.shape[1]
        return values.reshape(1, values.numel() // max(1, n_laws), n_laws)

    def read(self, y: Tensor) -> Reading:
        logit, log_density = self._mixed(self._flat(self._scaled(y)))
        return Reading(logit.view_as(y), log_density.view_as(y) - self._log_scale(log_density))

    def on_axis(self, nodes: Tensor, before: torch.Size) -> Tensor:
        joint = torch.cat([self._at_nodes(part) for part in self._scaled(nodes).split(NODES_AT_ONCE)])
        return (joint - self._log_scale(joint)).view(len(nodes), *before)

    def _at_nodes(self, points: Tensor) -> Tensor:
        """Log-density (k, N) in scaled units at every point (k,)."""
        found = [
            torch.logsumexp(self.log_weights[:, None, laws] + reading.log_density, 0)
            for laws, reading in readings_on_axis(self.member, points)
        ]
        return torch.cat([points.new_empty(len(points), 0), *found], -1)  # there may be no laws

    def icdf(self, logit: Tensor, tolerance: float = 0.0) -> Tensor:
        levels, network = self._flat(logit)[0], self.member.network
        if not levels.numel() or len(levels) < WORTH_A_TABLE or network.link.bounded or network.stack.only is None:
            return super().icdf(logit, tolerance)
        weights = self.log_weights[:, None]

        def quick(t: Tensor) -> Jet:
            return jet_of_mixture(weights, *self.member.jet(t.expand(len(weights), -1, -1)))

        def careful(t: Tensor) -> Jet:
            reading = self._mixed(t[None])
            return Jet(reading.logit, reading.log_slope)

        found = quantiles_from_table(quick, careful, levels, self._table(levels))
        return self._unscaled(found).view_as(logit)

    def _table(self, levels: Tensor) -> Table:
        """The laws at nodes spread like the quantiles of a few of the `levels` (q, N), of all members and laws."""
        few = levels[torch.linspace(0, len(levels) - 1, LEVELS_OF_NODES).long()]
        ends = torch.stack([levels.amin(0), levels.amax(0)])
        low, high = self.member.bracket(ends.expand(len(self.log_weights), -1, -1))
        usual = self.member.start(few.expand(len(self.log_weights), -1, -1)).flatten().sort().values
        places = torch.linspace(0, len(usual) - 1, NODES).long()
        nodes = torch.cat([usual[places], low.amin()[None], high.amax()[None]]).unique()
        pieces = on_axis(self.member, nodes, of_rising)
        found = [jet_of_mixture(self.log_weights[:, None, laws], *jet) for laws, jet in pieces]
        return Table(nodes, *(torch.cat(parts, -1) for parts in zip(*found, strict=True)))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        low, high = self.member.bracket(self._flat(logit).expand(len(self.log_weights), -1, -1))
        return self._unscaled(low.amin(0)).view_as(logit), self._unscaled(high.amax(0)).view_as(logit)

    def then(self, y: Tensor) -> Factor:
        point = self._flat(self._scaled(y))
        log_density = self._members(point).log_density
        prior = self.log_weights[:, None].expand_as(log_density)
        impossible = log_density.isneginf().all(0)  # under every member: then y tells nothing about the members
        joint = torch.where(impossible, prior, prior + log_density).flatten(1)
        return EnsembleFactor(self.law, self.member.then(point), joint.log_softmax(0))


class PathLaw(ScaledLaw):
    """The marginal law of a later output: each member's conditional laws averaged over `each` paths of its own."""

    def __init__(self, law: Ensemble, place: int, each: int) -> None:
        super().__init__(law, place)
        self.place, self.each = place, each
        self.log_weights = (law.log_weights - math.log(each))[:, None, None, None]
        self.n_paths = len(law.log_weights) * each

    @cached_property
    def member(self) -> MemberFactor:  # type: ignore[override]
        """The conditional laws, found when first read."""
        return self.law.after_paths(self.place, self.each)

    def _along(self, values: Tensor) -> Tensor:
        """Values (..., n) for every member and along its paths, (m, q, k n)."""
        rows = values.shape[-1]
        flat = values.reshape(1, values.numel() // max(1, rows), 1, rows)
        return flat.expand(len(self.log_weights), -1, self.each, -1).flatten(2)

    def _apart(self, found: Tensor) -> Tensor:
        """The inverse of `_along`'s last step: (m, q, k, n)."""
        return found.view(*found.shape[:-1], self.each, self.law.n_rows)

    def read(self, y: Tensor) -> Reading:
        logit, log_density = map(self._apart, self.member.read(self._along(self._scaled(y))))
        joint = torch.logsumexp(self.log_weights + log_density, (0, 2)) - self._log_scale(log_density)
        return Reading(logit_of_mixture(self.log_weights, logit, (0, 2)).view_as(y), joint.view_as(y))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        low, high = map(self._apart, self.member.bracket(self._along(logit)))
        return self._unscaled(low.amin((0, 2))).view_as(logit), self._unscaled(high.amax((0, 2))).view_as(logit)
