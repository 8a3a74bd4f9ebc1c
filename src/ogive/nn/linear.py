"""Linear maps of many members and outputs at once, and the choice of which to run.

Parameters carry axes (m, d, ...): member of the ensemble, then output of the chain, or (m, 1, ...) where the outputs
share them. A layer runs any slice of both in one batched product; rows come last, (f, features, n) with
f = members x outputs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["ALL", "Chosen", "Condition", "FactorLinear", "SharedLinear", "chosen"]

Chosen = tuple[slice, slice]
ALL: Chosen = (slice(None), slice(None))


class Condition(NamedTuple):
    """What factors may know of x and the outputs before, as features with rows last.

    Either (f, c, n) with a set for each factor and no `visible`, or (m, c, n) shared by the d factors of a member, of
    which factor i sees those where `visible` (d, c) is one.
    """

    features: Tensor
    visible: Tensor | None = None


def chosen(parameter: Tensor, at: Chosen) -> Tensor:
    """The chosen members and outputs of a parameter (m, d, ...) as one batch axis (f, ...)."""
    return parameter[at].flatten(0, 1)


class FactorLinear(nn.Module):
    """y = W x + b, a map of its own for each member and output."""

    def __init__(self, factors: tuple[int, int], n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(n_in, 1))
        self.weight = nn.Parameter(_uniform((*factors, n_out, n_in), bound, generator))
        self.bias = nn.Parameter(_uniform((*factors, n_out, 1), bound, generator))

    def forward(self, condition: Condition, at: Chosen = ALL) -> Tensor:
        """(f, n_out, n)."""
        features, visible = condition
        if visible is None:
            return torch.baddbmm(chosen(self.bias, at), chosen(self.weight, at), features)
        weight = self.weight[at][..., : visible.shape[1]]
        weight = weight if bool(visible.all()) else weight * visible[:, None]
        n_members, n_outputs = weight.shape[:2]
        found = torch.baddbmm(self.bias[at].flatten(1, 2), weight.flatten(1, 2), features)
        return found.view(n_members * n_outputs, -1, features.shape[-1])


class SharedLinear(nn.Module):
    """y = (W * mask) x + b, a map for each member, shared by the outputs; what is masked has no effect at all."""

    mask: Tensor

    def __init__(self, n_members: int, mask: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        bound = mask.sum(1, keepdim=True).clamp(min=1.0).rsqrt()
        self.weight = nn.Parameter(_uniform((n_members, 1, *mask.shape), 1.0, generator) * bound)
        self.bias = nn.Parameter(_uniform((n_members, 1, len(mask), 1), 1.0, generator) * bound)
        self.register_buffer("mask", mask, persistent=False)
        self.is_full = bool(mask.all())

    def forward(self, x: Tensor, members: slice, n_out: int) -> Tensor:
        """The first `n_out` outputs (m, n_out, n), from the first inputs x (m or 1, n_in, n)."""
        weight = self.weight[members, 0, :n_out, : x.shape[1]]
        weight = weight if self.is_full else weight * self.mask[:n_out, : x.shape[1]]
        return torch.baddbmm(self.bias[members, 0, :n_out], weight, x.expand(len(weight), -1, -1))


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
