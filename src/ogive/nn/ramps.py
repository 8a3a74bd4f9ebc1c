r"""Features bent at their quantiles, so that a small trunk can turn where the rows are.

For a feature z with quantiles :math:`e_0 \le \dots \le e_T` of equal shares of the rows, ramp t is

.. math:: r_t(z) = \operatorname{clip}\Bigl(\frac{z - e_{t-1}}{e_t - e_{t-1}}, 0, 1\Bigr),

less its mean over the rows; a ramp between equal quantiles is zero. After the piecewise-linear encoding of Gorishniy
et al., "On Embeddings for Numerical Features in Tabular Deep Learning" (2022).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["QuantileRamps"]


class QuantileRamps(nn.Module):
    """Scaled features (..., p, n) with `n_ramps` ramps of each behind them: (..., p (1 + n_ramps), n)."""

    low: Tensor
    steepness: Tensor
    middle: Tensor

    def __init__(self, n_features: int, n_ramps: int) -> None:
        super().__init__()
        self.n_features, self.n_ramps = n_features, n_ramps
        self.width = n_features * (1 + n_ramps)
        for name in ("low", "steepness", "middle"):
            self.register_buffer(name, torch.zeros(n_features, n_ramps, 1))

    def fit(self, z: Tensor) -> None:
        """Lay the ramps between quantiles of z (p, n)."""
        if not self.n_ramps:
            return
        for k, feature in enumerate(z.to(self.low.dtype)):  # one by one: a sorted copy of all would double the memory
            places = torch.linspace(0, len(feature) - 1, self.n_ramps + 1).round().long()
            knots = feature.sort().values[places]
            width = knots.diff()
            self.low[k] = knots[:-1, None]
            least = torch.finfo(width.dtype).tiny  # of what is narrower, the inverse is infinite
            self.steepness[k] = torch.where(width > least, 1.0 / width, 0.0)[:, None]
            self.middle[k] = 0.0
            self.middle[k] = self._rise(feature, k).mean(-1, keepdim=True)

    def forward(self, z: Tensor) -> Tensor:
        """The features and their ramps."""
        if not self.n_ramps:
            return z
        ramps = self._rise(z[..., None, :], slice(None))
        return torch.cat([z, ramps.flatten(-3, -2)], -2)

    def _rise(self, z: Tensor, at: int | slice) -> Tensor:
        low, steepness, middle = (part[at].to(z.dtype) for part in (self.low, self.steepness, self.middle))
        return ((z - low) * steepness).clamp(0.0, 1.0) - middle
