"""The fitted first layer of a network: from the user's units to the units in which it learns.

The buffers are float64, so that a column of large numbers with a small spread keeps its digits.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FeatureScaling", "OutputScaling"]

FARTHEST = 1e25  # in scaled units: far beyond every law, and near enough for float32 to go on from there


class FeatureScaling(nn.Module):
    r"""Standardised features with far values drawn in, :math:`z / \sqrt{1 + (z / c)^2}` with :math:`c = 8`.

    Within two standard deviations this moves a value by under 3 %; an outlier of any size stays within c.
    """

    reach = 8.0
    center: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(n_features, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(n_features, dtype=torch.float64))

    def fit(self, x: Tensor) -> None:
        """Centre and spread of x (n, p); a constant column is centred and left at its scale."""
        _standardise(x, self.center, self.scale)

    def forward(self, x: Tensor) -> Tensor:
        """Scaled features, rows last: (p, n) for x (n, p)."""
        z = _scaled(x, self.center, self.scale)
        return (z / torch.hypot(torch.ones_like(z), z / self.reach)).mT


class OutputScaling(nn.Module):
    """Affine map of each output to the scale in which lines are laid, and its constant log-Jacobian."""

    center: Tensor
    scale: Tensor

    def __init__(self, n_outputs: int) -> None:
        super().__init__()
        self.register_buffer("center", torch.zeros(n_outputs, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(n_outputs, dtype=torch.float64))

    def fit(self, y: Tensor) -> None:
        """Mean and standard deviation of y (n, d)."""
        _standardise(y, self.center, self.scale)

    def fit_range(self, low: Tensor, high: Tensor) -> None:
        """Map [low, high] to [-1, 1]."""
        self.center.copy_(0.5 * low + 0.5 * high)
        self.scale.copy_(0.5 * high - 0.5 * low)

    def forward(self, y: Tensor) -> Tensor:
        """Scaled outputs (..., d); those too far out for a float stay finite, infinite ones infinite."""
        return torch.where(y.isinf(), y.to(self.center.dtype), _scaled(y, self.center, self.scale))

    def of(self, output: int, y: Tensor) -> Tensor:
        """One output (...) scaled."""
        return _scaled(y, self.center[output], self.scale[output])

    @property
    def log_jacobian(self) -> Tensor:
        """log |d scaled / d y| of each output (d,)."""
        return -self.scale.log()


def _scaled(values: Tensor, center: Tensor, scale: Tensor) -> Tensor:
    return ((values.to(center.dtype) - center) / scale).clamp(-FARTHEST, FARTHEST)


def _standardise(values: Tensor, center: Tensor, scale: Tensor) -> None:
    """Mean and standard deviation, without a sum that could leave the floats."""
    values = values.to(center.dtype)
    middle = 0.5 * values.amin(0) + 0.5 * values.amax(0)
    middle = torch.where(values.amin(0) == values.amax(0), values[0], middle)
    center.copy_(middle + ((values - middle) / len(values)).sum(0))
    spread = (values - center).abs().amax(0)
    safe = torch.where(spread > 0, spread, torch.ones_like(spread))
    deviation = ((values - center) / safe).square().mean(0).sqrt() * safe
    scale.copy_(torch.where(spread > 0, deviation.clamp_min(torch.finfo(scale.dtype).tiny), safe))
