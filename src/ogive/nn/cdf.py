"""The conditional CDF network: a module whose forward pass returns the law of y given x."""

from __future__ import annotations

import torch
from torch import Tensor

from ..distribution import Distribution
from ..memory import keep_freed_memory
from ..mixture import Mixture
from .ensemble import Ensemble
from .factors import FactorNetwork

__all__ = ["CDFNetwork"]


class CDFNetwork(FactorNetwork):
    """An ensemble of conditional CDF networks.

    Members of one order form one exact chain (`Ensemble`); several orders form a `Mixture` of such chains.
    """

    def forward(self, x: Tensor) -> Distribution:
        """The law of y given x (n, p), in the dtype of the parameters."""
        keep_freed_memory()
        features = self.scale_x(x).to(self.dtype)[None]
        if bool((self.order == self.order[0]).all()):
            return Ensemble(self, features, slice(None))
        # Orders go round the members: member k has the order of member k mod d.
        groups = [slice(k, None, self.n_outputs) for k in range(min(self.n_outputs, self.n_members))]
        weights = torch.stack([self.log_weights[group].logsumexp(0) for group in groups])
        return Mixture([Ensemble(self, features, group) for group in groups], weights.to(self.dtype))
