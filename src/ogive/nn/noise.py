r"""Noise while training: the learnt Gaussian noise of the paper, and dropout at a rate of each member's own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Disturbance", "Dropout", "LearntNoise"]


class LearntNoise(nn.Module):
    r"""Adds :math:`\alpha \epsilon` to inputs, with log alpha learnt from a start of -2.

    The penalty :math:`\beta \, KL(N(0, \alpha^2) \| N(0, 1))` keeps alpha away from zero; without it the
    likelihood would drive it there. Members whose `on` is zero see no noise and pay no penalty.
    """

    member_buffers = ("on",)
    on: Tensor

    def __init__(self, n_members: int, size: int, beta: float, on: Tensor) -> None:
        super().__init__()
        self.beta = beta
        self.log_alpha = nn.Parameter(torch.full((n_members, 1, size), -2.0))
        self.register_buffer("on", on.to(torch.float32).view(-1, 1, 1))

    def forward(self, shape: torch.Size, generator: torch.Generator) -> Tensor:
        """Noise of `shape` (m, size, n)."""
        noise = torch.zeros(shape, device=self.log_alpha.device)
        noisy = self.on.flatten().nonzero()[:, 0]
        epsilon = torch.empty(len(noisy), *shape[1:], device=noise.device).normal_(generator=generator)
        return noise.index_put((noisy,), epsilon * self.log_alpha[noisy].exp().mT)

    def penalty(self) -> Tensor:
        """The weighted divergence of each member (m,)."""
        divergence = 0.5 * (torch.exp(2.0 * self.log_alpha) - 1.0) - self.log_alpha
        return self.beta * (self.on * divergence).sum((1, 2))


class Dropout(nn.Module):
    """Zeroes hidden features at each member's own rate, from random bytes: a rate is a multiple of 1/256.

    The rows of a batch lie in `blocks`, each of which loses features of its own: random numbers for every row would
    take longer than the layer itself.
    """

    blocks = 16
    member_buffers = ("below", "gain")
    below: Tensor
    gain: Tensor

    def __init__(self, rates: Tensor) -> None:
        super().__init__()
        self.register_buffer("below", (rates * 256.0).round().to(torch.uint8))
        self.register_buffer("gain", 256.0 / (256.0 - self.below.float()))

    def forward(self, hidden: Tensor, members: slice, generator: torch.Generator) -> Tensor:
        """Hidden features (m, h, n), some of them zero and the others greater."""
        below, gain = (part[members, None, None] for part in (self.below, self.gain))
        n_members, width, n = hidden.shape
        in_block = -(-n // self.blocks)
        byte = torch.empty(n_members, width, -(-n // in_block), dtype=torch.uint8, device=hidden.device)
        kept = (byte.random_(0, 256, generator=generator) >= below) * gain
        return hidden * kept.repeat_interleave(in_block, 2)[..., :n]


class Disturbance(nn.Module):
    """All that is done to features while training; what no member asks for is left out."""

    def __init__(self, noise: LearntNoise, dropout: Dropout, generator: torch.Generator) -> None:
        super().__init__()
        self.noise, self.dropout, self.generator = noise, dropout, generator
        self.look()

    def look(self) -> None:
        """See which of the two the members ask for."""
        self.noisy, self.dropping = bool((self.noise.on > 0).any()), bool((self.dropout.below > 0).any())

    def inputs(self, x: Tensor) -> Tensor:
        """Features (m, p, n) with noise."""
        return x + self.noise(x.shape, self.generator) if self.noisy else x

    def hidden(self, h: Tensor, members: slice) -> Tensor:
        """Hidden features (m, h, n) after dropout."""
        found: Tensor = self.dropout(h, members, self.generator) if self.dropping else h
        return found
