"""The factors of all members and outputs: scaling, conditioner, monotone stack and link put together.

`readings` is the parallel heart: every member, output and row in one pass, as training and the joint density need
it. `MemberFactor` is one output at a time, with its condition biases computed once for any number of points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ..distribution import Reading
from .conditioner import Conditioner, Disturb
from .jet import Jet
from .linear import Chosen, Run
from .links import Ends, Link, Rising
from .monotone import MonotoneStack
from .scaling import FeatureScaling, OutputScaling

__all__ = ["Ask", "FactorNetwork", "MemberFactor", "of_rising"]

LINES_AT_ONCE = 1 << 19
Ask = Callable[[Rising, Tensor, Ends], tuple[Tensor, Tensor]]


class FactorNetwork(nn.Module):
    """The conditional laws of an ensemble of m chains over d outputs given p features.

    Parameters
    ----------
    scale_x, scale_y : the fitted first layer; y is scaled in the user's order of outputs.
    conditioner, stack, link : what a factor knows, how it rises, and how it becomes a CDF.
    order : (m, d) the outputs as each member's chain meets them.
    support : (2, d) ends of each output's support in the user's units, infinite where open.
    """

    member_buffers = ("order",)
    order: Tensor
    support: Tensor
    log_weights: Tensor

    def __init__(
        self,
        scale_x: FeatureScaling,
        scale_y: OutputScaling,
        conditioner: Conditioner,
        stack: MonotoneStack,
        link: Link,
        order: Tensor,
        support: Tensor,
    ) -> None:
        super().__init__()
        self.scale_x, self.scale_y = scale_x, scale_y
        self.conditioner, self.stack, self.link = conditioner, stack, link
        self.register_buffer("order", order)
        self.register_buffer("support", support.to(torch.float64))
        n_members = len(order)
        self.register_buffer("log_weights", torch.full((n_members,), 1.0 / n_members, dtype=torch.float64).log())

    @property
    def n_members(self) -> int:
        return len(self.order)

    @property
    def n_inputs(self) -> int:
        return self.conditioner.n_inputs

    @property
    def n_outputs(self) -> int:
        return self.order.shape[1]

    @property
    def width(self) -> int:
        """The most features or lines that one row of one member takes at once."""
        return max(self.n_outputs * self.stack.most_lines, *self.conditioner.widths)

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def chain(self, scaled: Tensor, members: slice = slice(None)) -> Tensor:
        """Scaled outputs (n, d) or (m, n, d) in the order of each member's chain, rows last: (m, d, n)."""
        order = self.order[members]
        rows_last = scaled.mT.expand(len(order), *scaled.mT.shape[-2:])
        return rows_last.gather(1, order[..., None].expand_as(rows_last))

    def ends(self, at: Chosen, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Ends of the chosen factors' supports in scaled units, each (f, 1, 1)."""
        device = self.order.device
        if not self.link.bounded:
            return torch.tensor(-torch.inf, device=device), torch.tensor(torch.inf, device=device)
        scaled = self.scale_y(self.support).to(dtype).to(device)
        low, high = (end[self.order][at].reshape(-1, 1, 1) for end in scaled)
        return low, high

    def readings(
        self,
        features: Tensor,
        chain: Tensor,
        members: slice = slice(None),
        shift: Tensor | None = None,
        disturb: Disturb | None = None,
    ) -> Reading:
        """The chosen members' factors in scaled units, each tensor (m, d, n).

        `features` (m or 1, p, n) are scaled, `chain` (m, d, n) is scaled y in chain order, and `shift` (m, d, n)
        is how far noise has moved it.
        """
        at = (members, slice(None))
        biases = self.stack.biases(self.conditioner(features, chain[:, :-1], at, disturb), at)
        ends = self.ends(at, chain.dtype)
        if shift is not None:
            moved = shift.flatten(0, 1)[:, None]
            ends = (ends[0] + moved, ends[1] + moved)
        point = chain.flatten(0, 1)[:, None]
        reading = self.link.read(lambda t: self.stack(t, biases, at), point, ends)
        return Reading(reading.logit.view_as(chain), reading.log_density.view_as(chain))


class MemberFactor:
    """The law of one output under each member by itself, in scaled units.

    `features` (1, p, N) and the outputs `before` (m or 1, i, N) in chain order fix the N laws; points are (m, q, N).
    `known` is what the factor before this one left of its work, if there was one.
    """

    def __init__(
        self,
        network: FactorNetwork,
        members: slice,
        features: Tensor,
        before: Tensor,
        known: Sequence[Tensor] = (),
        biases: Sequence[Tensor] = (),
    ) -> None:
        place = before.shape[1]
        self.network, self.members, self.features, self.before = network, members, features, before
        self.at: Run = (members, slice(place, place + 1))
        self.known, self.biases = list(known), list(biases)
        if not biases:
            self.known, conditions = network.conditioner.further(self.known, features, before, self.at)
            self.biases = network.stack.biases(conditions, self.at)
            self.known = self.known if place < network.n_outputs - 1 else []
        self.ends = network.ends(self.at, features.dtype)

    def laid_out(self, anew: Callable[[Tensor], Tensor]) -> MemberFactor:
        """The factor of some of the N laws, with repetition, as `anew` takes them from the last axis of a tensor."""
        known, biases = ([anew(part) for part in parts] for parts in (self.known, self.biases))
        return MemberFactor(self.network, self.members, anew(self.features), anew(self.before), known, biases)

    def then(self, point: Tensor) -> MemberFactor:
        """The next output's factor at each of the points (m or 1, q, N), which become q N laws."""
        q = point.shape[1]
        features, before, *known = (
            part if q == 1 else part.repeat(1, 1, q) for part in (self.features, self.before, *self.known)
        )
        before = torch.cat([before.expand(len(point), -1, -1), point.flatten(1)[:, None]], 1)
        return MemberFactor(self.network, self.members, features, before, known)

    def target(self, logit: Tensor) -> Tensor:
        """The values (m, q, N) that O takes at each member's quantiles of `logit`."""
        return self.network.link.target(self._rising(self.biases), logit, self.ends)

    def read(self, point: Tensor) -> Reading:
        """Readings (m, q, N)."""
        return Reading(*self._in_pieces(point, self.network.link.read))

    def jet(self, point: Tensor) -> Jet:
        """Jets of O (m, q, N)."""
        return Jet(*self._in_pieces(point, of_rising))

    def _in_pieces(self, point: Tensor, ask: Ask) -> tuple[Tensor, ...]:
        """Two answers (m, q, N) at the points, computed in pieces that stay within the cache."""
        rows, depth = point.shape[2], point.shape[1]
        points_at_once = max(1, LINES_AT_ONCE // sum(bias.shape[:-1].numel() for bias in self.biases))
        if rows * depth <= points_at_once:
            return self._asked(point, slice(None), ask)
        step = max(1, points_at_once // depth)
        pieces = []
        for start in range(0, rows, step):
            here = slice(start, start + step)
            found = [self._asked(part, here, ask) for part in point[..., here].split(points_at_once, 1)]
            pieces.append([torch.cat(parts, 1) for parts in zip(*found, strict=True)])
        return tuple(torch.cat(parts, -1) for parts in zip(*pieces, strict=True))

    def start(self, logit: Tensor) -> Tensor:
        """Points (m, q, N) near each member's quantile of `logit`."""
        return self.network.stack.start(self.target(logit), self.biases, self.at)

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        """Points around each member's quantile of `logit` (m, q, N), within the support."""
        low, high = self.network.stack.bracket(self.target(logit), self.biases, self.at)
        return torch.maximum(low, self.ends[0]), torch.minimum(high, self.ends[1])

    def _rising(self, biases: list[Tensor]) -> Callable[[Tensor], Jet]:
        return lambda point: self.network.stack(point, biases, self.at)

    def _asked(self, point: Tensor, rows: slice, ask: Ask) -> tuple[Tensor, Tensor]:
        biases = [bias[..., rows] for bias in self.biases]
        return ask(self._rising(biases), point, self.ends)


def of_rising(rising: Rising, point: Tensor, ends: Ends) -> Jet:
    """The jet of O itself, as one asks a link for a reading."""
    return rising(point)
