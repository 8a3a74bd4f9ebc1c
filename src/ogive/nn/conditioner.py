"""What factor i may know, the features x and the outputs before it, turned into condition features.

Two conditioners share one interface: `forward(x, before, at)` gives, for each layer of the monotone stack, the
conditions of the chosen factors, from x (m or 1, p, n) and the first k outputs of the chain (m or 1, k, n).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from .linear import ALL, Condition, FactorLinear, Run, SharedLinear, Step
from .ramps import QuantileRamps

__all__ = ["ChainConditioner", "Conditioner", "Disturb", "Known", "TrunkConditioner"]

Known = list[Tensor]


class Disturb(Protocol):
    """What training does to features on their way."""

    def inputs(self, x: Tensor) -> Tensor:
        """Features (m, p, n) as they enter, disturbed."""

    def hidden(self, h: Tensor, members: slice) -> Tensor:
        """Hidden features (m, h, n), disturbed."""


class Conditioner(nn.Module):
    """Conditions for every layer of a stack.

    `n_inputs` features enter, those made of x included; `widths` are the numbers of condition features.
    """

    n_inputs: int
    widths: list[int]

    def fit(self, x: Tensor) -> None:
        """Fit to scaled features (p, n) what is not learnt by gradients."""

    def further(self, known: Known, x: Tensor, before: Tensor, at: Run) -> tuple[Known, list[Condition]]:
        """Conditions of the one chosen output, and what the next one can use of the work, each tensor with rows last.

        `known` is what the output before it left, or empty.
        """
        return [], self(x, before, at)


class TrunkConditioner(Conditioner):
    """One trunk of SiLU layers for all factors, masked after MADE (Germain et al., 2015).

    A hidden unit of degree k sees x and the first k outputs; it feeds units of its degree or higher, and factor i
    reads units of degree i or lower. Units are sorted by degree, so what factor i needs is always a first part.
    Members that are `ramped` see the ramps over x too.
    """

    def __init__(
        self,
        factors: tuple[int, int],
        n_features: int,
        hidden: Sequence[int],
        n_layers: int,
        generator: torch.Generator,
        n_ramps: int = 0,
        ramped: Sequence[bool] | None = None,
    ) -> None:
        super().__init__()
        n_members, n_outputs = factors
        self.ramps = QuantileRamps(n_features, n_ramps)
        self.n_inputs = self.ramps.width
        # Of each layer, the units of the first i + 1 degrees; of the input, x and the first i outputs.
        seen = [[self.n_inputs + i for i in range(n_outputs)]]
        seen += [[-(-width * (i + 1) // n_outputs) for i in range(n_outputs)] for width in hidden]
        open_to = torch.ones(n_members, seen[0][-1])
        open_to[~torch.tensor(ramped or [True] * n_members), n_features : self.n_inputs] = 0.0
        self.layers = nn.ModuleList(
            SharedLinear(n_members, below[-1], list(map(Step, stops, below)), generator, None if i else open_to)
            for i, (below, stops) in enumerate(pairwise(seen))
        )
        self.seen = tuple(seen[-1])
        self.widths = [hidden[-1]] * n_layers

    def fit(self, x: Tensor) -> None:
        self.ramps.fit(x)

    def forward(self, x: Tensor, before: Tensor, at: Run = ALL, disturb: Disturb | None = None) -> list[Condition]:
        """The last hidden features, once for each layer of the stack."""
        members, outputs = at
        last = range(len(self.seen))[outputs][-1]
        x = self.ramps(x)
        x = x if disturb is None else disturb.inputs(x)
        h = _joined(x, before[:, :last])
        for layer in self.layers:
            h = silu(layer(h, members, last + 1))
            h = h if disturb is None else disturb.hidden(h, members)
        return self._conditions(h, outputs)

    def further(self, known: Known, x: Tensor, before: Tensor, at: Run) -> tuple[Known, list[Condition]]:
        """Only units of the output's own degree are computed; those of lower ones, and the inputs, are `known`."""
        members, outputs = at
        last = before.shape[1]
        h = _joined(known[0], before[:, last - 1 :]) if known else _joined(self.ramps(x), before)
        found = [h]
        for i, layer in enumerate(self.layers, 1):
            new = silu(layer(h, members, last + 1, last if known else 0))
            h = torch.cat([known[i], new], 1) if known else new
            found.append(h)
        return found, self._conditions(h, outputs)

    def _conditions(self, hidden: Tensor, outputs: slice) -> list[Condition]:
        return [Condition(hidden, self.seen[outputs])] * len(self.widths)


class ChainConditioner(Conditioner):
    """The paper's conditions c1 = tanh(linear(x, y_<i)), c(l+1) = tanh(linear(c(l))), a chain for each factor."""

    def __init__(
        self, factors: tuple[int, int], n_features: int, widths: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        n_outputs = factors[1]
        self.n_inputs = n_features
        self.entry = FactorLinear(factors, n_features + n_outputs - 1, widths[0], generator)
        self.links = nn.ModuleList(FactorLinear(factors, n_in, n_out, generator) for n_in, n_out in pairwise(widths))
        self.seen = tuple(n_features + i for i in range(n_outputs))
        self.widths = list(widths)

    def forward(self, x: Tensor, before: Tensor, at: Run = ALL, disturb: Disturb | None = None) -> list[Condition]:
        """Condition features of each layer in turn."""
        x = x if disturb is None else disturb.inputs(x)
        m = len(self.entry.weight[at[0]])
        known = torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)], 1)
        found = [Condition(torch.tanh(self.entry(Condition(known, self.seen[at[1]]), at)))]
        for layer in self.links:
            found.append(Condition(torch.tanh(layer(found[-1], at))))
        return found


def _joined(x: Tensor, before: Tensor) -> Tensor:
    """Features (m or 1, p, n) and outputs (m or 1, k, n) one under the other."""
    m = max(len(x), len(before))
    return torch.cat([x.expand(m, -1, -1), before.expand(m, -1, -1)], 1)
