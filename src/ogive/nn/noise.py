r"""Noise while training: the learnt Gaussian noise of the paper, and dropout at a rate of each member's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Dropout", "LearntNoise"]


class LearntNoise(nn.Module):
    r"""Adds :math:`\alpha \epsilon` to inputs, with log alpha learnt from a start of -2.

    The penalty :math:`\beta \, KL(N(0, \alpha^2) \| N(0, 1))` keeps alpha away from zero; without it the
    likelihood would drive it there. Members whose `on` is zero see no noise and pay no penalty.
    """

    on: Tensor

    def __init__(self, n_members: int, size: int, beta: float, on: Tensor) -> None:
        super().__init__()
        self.beta = beta
        self.log_alpha = nn.Parameter(torch.full((n_members, 1, size), -2.0))
        self.register_buffer("on", on.to(torch.float32).view(-1, 1, 1))

    def forward(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Noise of `shape` (m, size, n)."""
        epsilon = torch.empty(shape, device=self.log_alpha.device).normal_(generator=generator)
        return epsilon.mul_((self.on * self.log_alpha.exp()).mT)

    def penalty(self) -> Tensor:
        """The weighted divergence of each member (m,)."""
        divergence = 0.5 * (torch.exp(2.0 * self.log_alpha) - 1.0) - self.log_alpha
        return self.beta * (self.on * divergence).sum((1, 2))


class Dropout:
    """Zeroes hidden features at each member's own rate, from random bytes: a rate is a multiple of 1/256."""

    def __init__(self, rates: Tensor, generator: torch.Generator) -> None:
        self.generator = generator
        self.below = (rates * 256.0).round().to(torch.uint8)
        self.gain = 256.0 / (256.0 - self.below.float())

    def __call__(self, hidden: Tensor, members: slice) -> Tensor:
        below, gain = self.below[members], self.gain[members]
        words = torch.empty(-(-hidden.numel() // 8), dtype=torch.int64, device=hidden.device)
        words.random_(-(2**63), None, generator=self.generator)
        byte = words.view(torch.uint8)[: hidden.numel()].view(len(below), -1)
        kept = (byte >= below[:, None]) * gain[:, None]
        return hidden * kept.view_as(hidden)
