r"""AdamW (Loshchilov and Hutter, 2019) on long buffers, whose first axis can lose members on the way.

.. math:: \theta \leftarrow (1 - \eta\lambda)\,\theta - \eta\,\hat m / (\sqrt{\hat v} + \epsilon),

with :math:`\hat m = m / (1 - \beta_1^t)`, :math:`\hat v = v / (1 - \beta_2^t)` averages of gradients and squares.

torch's own optimisers load its compiler when first used, which takes longer than a small fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["AdamW"]

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class AdamW:
    """Steps for buffers `values` along their gradients; `rate` and `decay` are the eta and lambda of the formula."""

    def __init__(self, values: Sequence[Tensor], rate: float, decay: float) -> None:
        self.rate, self.decay, self.steps = rate, decay, 0
        self.first = [torch.zeros_like(value) for value in values]
        self.second = [torch.zeros_like(value) for value in values]

    def step(self, values: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
        """Change the values in place."""
        self.steps += 1
        rate = self.rate / (1.0 - BETA_1**self.steps)
        root = (1.0 - BETA_2**self.steps) ** 0.5
        for value, grad, first, second in zip(values, grads, self.first, self.second, strict=True):
            first.lerp_(grad, 1.0 - BETA_1)
            second.mul_(BETA_2).addcmul_(grad, grad, value=1.0 - BETA_2)
            value.mul_(1.0 - self.rate * self.decay)
            value.addcdiv_(first, second.sqrt().div_(-root * rate).sub_(EPSILON / rate))

    def keep(self, members: Tensor) -> None:
        """Drop every member but these from what is remembered."""
        self.first = [part[members] for part in self.first]
        self.second = [part[members] for part in self.second]
