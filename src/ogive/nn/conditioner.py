"""What factor i may know, the features x and the outputs before it, turned into condition features.

Two conditioners share one interface: `forward(x, before, at)` gives, for each layer of the monotone stack, the
conditions of the chosen factors, from x (m or 1, p, n) and the first k outputs of the chain (m or 1, k, n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from .linear import ALL, Chosen, Condition, FactorLinear, SharedLinear

__all__ = ["ChainConditioner", "Conditioner", "TrunkConditioner"]

Drop = Callable[[Tensor, slice], Tensor]


class Conditioner(nn.Module):
    """Conditions for every layer of a stack; `widths` are their numbers of features."""

    widths: list[int]


class TrunkConditioner(Conditioner):
    """One trunk of SiLU layers for all factors, masked after MADE (Germain et al., 2015).

    A hidden unit of degree k sees x and the first k outputs; it feeds units of its degree or higher, and factor i
    reads units of degree i or lower. Units are sorted by degree, so what factor i needs is always a first part.
    """

    degree: Tensor

    def __init__(
        self,
        factors: tuple[int, int],
        n_features: int,
        hidden: Sequence[int],
        n_layers: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        n_members, self.n_outputs = factors
        degrees = [torch.arange(width) * self.n_outputs // width for width in hidden]
        # Inputs: x is of degree 0, and the output at place j of the chain is known from degree j + 1 on.
        given = torch.cat([torch.zeros(n_features, dtype=torch.long), torch.arange(1, self.n_outputs)])
        self.layers = nn.ModuleList(
            SharedLinear(n_members, (below[None] <= degree[:, None]).float(), generator)
            for below, degree in pairwise([given, *degrees])
        )
        self.needed = [[int((degree <= i).sum()) for i in range(self.n_outputs)] for degree in degrees]
        visible = degrees[-1][None] <= torch.arange(self.n_outputs)[:, None]
        self.register_buffer("visible", visible.float(), persistent=False)
        self.widths = [hidden[-1]] * n_layers

    visible: Tensor

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Condition]:
        """The last hidden features, once for each layer of the stack."""
        members, outputs = at
        last = range(self.n_outputs)[outputs][-1]
        m = max(len(x), len(before))
        h = torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)[:, :last]], 1)
        for layer, needed in zip(self.layers, self.needed, strict=True):
            h = silu(layer(h, members, needed[last]))
            h = h if drop is None else drop(h, members)
        return [Condition(h, self.visible[outputs, : h.shape[1]])] * len(self.widths)


class ChainConditioner(Conditioner):
    """The paper's conditions c1 = tanh(linear(x, y_<i)), c(l+1) = tanh(linear(c(l))), a chain for each factor."""

    mask: Tensor

    def __init__(
        self, factors: tuple[int, int], n_features: int, widths: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        n_outputs = factors[1]
        self.entry = FactorLinear(factors, n_features + n_outputs - 1, widths[0], generator)
        self.links = nn.ModuleList(FactorLinear(factors, n_in, n_out, generator) for n_in, n_out in pairwise(widths))
        earlier = torch.arange(n_outputs - 1)[None] < torch.arange(n_outputs)[:, None]
        mask = torch.cat([torch.ones(n_outputs, n_features), earlier.float()], 1)
        self.register_buffer("mask", mask, persistent=False)
        self.widths = list(widths)

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Condition]:
        """Condition features of each layer in turn."""
        m = len(self.entry.weight[at[0]])
        known = torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)], 1)
        found = [Condition(torch.tanh(self.entry(Condition(known, self.mask[at[1], : known.shape[1]]), at)))]
        for layer in self.links:
            found.append(Condition(torch.tanh(layer(found[-1], at))))
        return found
