"""What factor i may know: the features x and the outputs before it, turned into condition features.

Two conditioners share one interface: `forward(x, before, at)` gives, for each layer of the monotone stack, the
condition features (f, c, n) of the chosen factors. The weights on later outputs are multiplied by an exact zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from .linear import ALL, Chosen, FactorLinear

__all__ = ["ChainConditioner", "Conditioner", "TrunkConditioner"]

Drop = Callable[[Tensor, Chosen], Tensor]


class Conditioner(nn.Module):
    """Condition features for every layer of a stack; `widths` are their numbers."""

    widths: list[int]


class MaskedInput(nn.Module):
    """Linear map of (x, y_<i) for factor i."""

    mask: Tensor

    def __init__(self, factors: tuple[int, int], n_features: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        n_outputs = factors[1]
        self.of_x = FactorLinear(factors, n_features, n_out, generator)
        self.of_y = nn.Parameter(torch.empty(*factors, n_out, n_outputs - 1))
        with torch.no_grad():
            bound = (n_features + n_outputs - 1) ** -0.5
            self.of_y.uniform_(-bound, bound, generator=generator)
        position = torch.arange(n_outputs)
        earlier = position[:-1] < position[:, None]
        self.register_buffer("mask", earlier[None, :, None].float(), persistent=False)

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL) -> Tensor:
        """(f, n_out, n) from x (m, p, n) and the outputs (m, k, n) that come first in the chain; m may be 1."""
        n_members, n_outputs = self.of_y[at].shape[:2]
        known = before.shape[1]
        hidden: Tensor = self.of_x(_per_factor(x, n_members, n_outputs), at)
        if known == 0:
            return hidden
        weight = (self.of_y[at] * self.mask[:, at[1]]).flatten(0, 1)[..., :known]
        return torch.baddbmm(hidden, weight, _per_factor(before, n_members, n_outputs))


def _per_factor(rows: Tensor, n_members: int, n_outputs: int) -> Tensor:
    return rows[:, None].expand(n_members, n_outputs, *rows.shape[1:]).flatten(0, 1)


class TrunkConditioner(Conditioner):
    """A trunk of SiLU layers for each factor; every layer of the stack reads its last hidden features."""

    def __init__(
        self,
        factors: tuple[int, int],
        n_features: int,
        hidden: Sequence[int],
        n_layers: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.entry = MaskedInput(factors, n_features, hidden[0], generator)
        self.middle = nn.ModuleList(FactorLinear(factors, n_in, n_out, generator) for n_in, n_out in pairwise(hidden))
        self.widths = [hidden[-1]] * n_layers

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Tensor]:
        """The last hidden features, once for each layer of the stack."""
        h = silu(self.entry(x, before, at))
        for layer in self.middle:
            h = silu(layer(h if drop is None else drop(h, at), at))
        h = h if drop is None else drop(h, at)
        return [h] * len(self.widths)


class ChainConditioner(Conditioner):
    """The paper's conditions: c1 = tanh(linear(x, y_<i)), c(l+1) = tanh(linear(c(l))), one for each layer."""

    def __init__(
        self, factors: tuple[int, int], n_features: int, widths: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.entry = MaskedInput(factors, n_features, widths[0], generator)
        self.links = nn.ModuleList(FactorLinear(factors, n_in, n_out, generator) for n_in, n_out in pairwise(widths))
        self.widths = list(widths)

    def forward(self, x: Tensor, before: Tensor, at: Chosen = ALL, drop: Drop | None = None) -> list[Tensor]:
        """Condition features of each layer in turn."""
        found = [torch.tanh(self.entry(x, before, at))]
        for layer in self.links:
            found.append(torch.tanh(layer(found[-1], at)))
        return found
