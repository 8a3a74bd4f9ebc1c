"""Linear maps of many factors at once, and the choice of which factors to run.

Parameters carry axes (m, d, ...): member of the ensemble, then output of the chain. A layer runs any slice of
both in one batched product over f = members x outputs; rows come last, (f, features, n).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["ALL", "Chosen", "FactorLinear", "chosen"]

Chosen = tuple[slice, slice]
ALL: Chosen = (slice(None), slice(None))


def chosen(parameter: Tensor, at: Chosen) -> Tensor:
    """The chosen members and outputs of a parameter (m, d, ...) as one batch axis (f, ...)."""
    return parameter[at].flatten(0, 1)


class FactorLinear(nn.Module):
    """y = W x + b, a map of its own for each member and output."""

    def __init__(self, factors: tuple[int, int], n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(n_in, 1))
        self.weight = nn.Parameter(torch.empty(*factors, n_out, n_in).uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.empty(*factors, n_out, 1).uniform_(-bound, bound, generator=generator))

    def forward(self, x: Tensor, at: Chosen = ALL) -> Tensor:
        """(f, n_out, n) for x (f, n_in, n)."""
        return torch.baddbmm(chosen(self.bias, at), chosen(self.weight, at), x)
