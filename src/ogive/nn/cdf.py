"""The conditional CDF network: scaling, conditioner, monotone stack and link, for all members and outputs at once.

`forward(x)` returns the distribution p(y | x) of the whole ensemble. `readings` is its parallel heart: every
member, output and row in one pass, which training uses and the joint density needs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..distribution import Distribution, Mixture, Reading
from .conditioner import ChainConditioner, Drop, TrunkConditioner
from .ensemble import Ensemble
from .linear import Chosen
from .links import Link
from .monotone import MonotoneStack
from .scaling import FeatureScaling, OutputScaling

__all__ = ["CDFNetwork"]


class CDFNetwork(nn.Module):
    """An ensemble of m chains over d outputs given p features.

    Parameters
    ----------
    scale_x, scale_y : the fitted first layer; y is scaled in the user's order of outputs.
    conditioner, stack, link : what a factor knows, how it rises, and how it becomes a CDF.
    order : (m, d) the outputs as each member's chain meets them.
    support : (2, d) ends of each output's support in the user's units, infinite where open.

    Notes
    -----
    Members of one order form one exact chain (`Ensemble`); several orders form a `Mixture` of such chains.
    """

    order: Tensor
    support: Tensor
    log_weights: Tensor

    def __init__(
        self,
        scale_x: FeatureScaling,
        scale_y: OutputScaling,
        conditioner: TrunkConditioner | ChainConditioner,
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
        uniform = torch.full((n_members,), 1.0 / n_members, dtype=torch.float64)
        self.register_buffer("log_weights", uniform.log())

    @property
    def n_members(self) -> int:
        return len(self.order)

    @property
    def n_features(self) -> int:
        return len(self.scale_x.center)

    @property
    def n_outputs(self) -> int:
        return self.order.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return next(self.parameters()).dtype

    def forward(self, x: Tensor) -> Distribution:
        """The law of y given x (n, p)."""
        features = self.scale_x(x).to(self.dtype)
        orders = [tuple(chain) for chain in self.order.tolist()]
        if len(set(orders)) == 1:
            return Ensemble(self, features, slice(None))
        period = self.n_outputs  # orders go round the members: member k has the order of member k mod d
        groups = [slice(k, None, period) for k in range(min(period, self.n_members))]
        weights = torch.stack([self.log_weights[group].logsumexp(0) for group in groups])
        return Mixture([Ensemble(self, features, group) for group in groups], weights)

    def chain(self, scaled: Tensor, members: slice = slice(None)) -> Tensor:
        """Scaled outputs (n, d) or (m, n, d) in the order of each member's chain, rows last: (m, d, n)."""
        order = self.order[members]
        rows_last = scaled.mT.expand(len(order), *scaled.mT.shape[-2:])
        return rows_last.gather(1, order[..., None].expand_as(rows_last))

    def ends(self, at: Chosen, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Ends of the chosen factors' supports in scaled units, each (f, 1, 1)."""
        scaled = self.scale_y(self.support)
        low, high = (end[self.order][at].reshape(-1, 1, 1).to(dtype) for end in scaled)
        return low, high

    def readings(
        self,
        features: Tensor,
        chain: Tensor,
        members: slice = slice(None),
        shift: Tensor | None = None,
        drop: Drop | None = None,
    ) -> Reading:
        """The chosen members' factors in scaled units, each tensor (m, d, n).

        `features` (m or 1, p, n) are scaled, `chain` (m, d, n) is scaled y in chain order, and `shift` (m, d, n)
        is how far noise has moved it.
        """
        at = (members, slice(None))
        biases = self.stack.biases(self.conditioner(features, chain[:, :-1], at, drop), at)
        ends = self.ends(at, chain.dtype)
        if shift is not None:
            moved = shift.flatten(0, 1)[:, None]
            ends = (ends[0] + moved, ends[1] + moved)
        point = chain.flatten(0, 1)[:, None]
        reading = self.link.read(lambda t: self.stack(t, biases, at), point, ends)
        return Reading(reading.logit.view_as(chain), reading.log_density.view_as(chain))
