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

from .linear import ALL, Chosen, Condition, FactorLinear, SharedLinear, Step

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

    def __init__(
        self,
        factors: tuple[int, int],
        n_features: int,
        hidden: Sequence[int],
        n_layers: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        n_members, n_outputs = factors
        # Of each layer, the units of the first i + 1 degrees; of the input, x and the first i outputs.
        seen = [[n_features + i for i in range(n_outputs)]]
        seen += [[-(-width * (i + 1) // n_outputs) for i in range(n_outputs)] for width in hidden]
        self.layers = nn.ModuleList(
            SharedLinear(n_members, below[-1], list(map(Step, stops, below)), generator)
            for below, stops in pairwise(seen)
        )
        self.seen = tuple(seen[-1])
        self.widths = [hidden[-1]] * n_layers

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Condition]:
        """The last hidden features, once for each layer of the stack."""
        members, outputs = at
        last = range(len(self.seen))[outputs][-1]
        m = max(len(x), len(before))
        h = torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)[:, :last]], 1)
        for layer in self.layers:
            h = silu(layer(h, members, last + 1))
            h = h if drop is None else drop(h, members)
        return [Condition(h, self.seen[outputs])] * len(self.widths)


class ChainConditioner(Conditioner):
    """The paper's conditions c1 = tanh(linear(x, y_<i)), c(l+1) = tanh(linear(c(l))), a chain for each factor."""

    def __init__(
        self, factors: tuple[int, int], n_features: int, widths: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        n_outputs = factors[1]
        self.entry = FactorLinear(factors, n_features + n_outputs - 1, widths[0], generator)
        self.links = nn.ModuleList(FactorLinear(factors, n_in, n_out, generator) for n_in, n_out in pairwise(widths))
        self.seen = tuple(n_features + i for i in range(n_outputs))
        self.widths = list(widths)

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Condition]:
        """Condition features of each layer in turn."""
        m = len(self.entry.weight[at[0]])
        known = torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)], 1)
        found = [Condition(torch.tanh(self.entry(Condition(known, self.seen[at[1]]), at)))]
        for layer in self.links:
            found.append(Condition(torch.tanh(layer(found[-1], at))))
        return found
