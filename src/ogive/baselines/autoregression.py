"""The inverse of zuko's masked autoregressive maps, in which no unit of the network is computed twice.

zuko's own inverse runs the whole network anew for each output. But a unit sees only some of the outputs: those that
see none are the same for all points of a row, and another can be computed when the last output that it sees is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["Inverse"]


class Inverse:
    """The inverse of a map with its weights as they are now: that of zuko up to rounding."""

    def __init__(self, lazy: Any) -> None:
        self.lazy = lazy
        self.alone = getattr(lazy, "order", None) is None  # a map of one output, which zuko inverts in one go
        if self.alone:
            return
        p = lazy.hyper.in_features - len(lazy.order)
        known = torch.cat([lazy.order + 1, lazy.order.new_zeros(p)])  # the step from which a unit is known
        self.outputs = lazy.order.argsort().tolist()
        layers: list[Any] = [layer for layer in lazy.hyper if isinstance(layer, nn.Linear)]
        self.activation = next(layer for layer in lazy.hyper if not isinstance(layer, nn.Linear))
        self.hidden: list[list[Part]] = []
        for layer in layers[:-1]:
            then = torch.where(layer.mask, known, 0).amax(1)
            self.hidden.append([Part(layer, then == step, known) for step in range(len(self.outputs))])
            known = then
        owner = torch.arange(len(self.outputs)).repeat_interleave(lazy.total)
        self.last = [Part(layers[-1], owner == output, known) for output in self.outputs]

    def __call__(self, features: Tensor, z: Tensor) -> Tensor:
        """The y (..., n, d) that the map takes to z at features (n, p)."""
        if self.alone:
            restored: Tensor = self.lazy(features).inv(z)
            return restored
        values: list[list[Tensor]] = [[features], *([] for _ in self.hidden)]
        found: dict[int, Tensor] = {}
        for step, output in enumerate(self.outputs):
            for parts, before, after in zip(self.hidden, values, values[1:], strict=False):
                after.append(self.activation(parts[step].of(before)))
            found[output] = self._univariate(self.last[step].of(values[-1])).inv(z[..., output])
            values[0].append(found[output][..., None])
        return torch.stack([found[i] for i in range(len(found))], -1)

    def _univariate(self, parameters: Tensor) -> Any:
        """The map of one output from its parameters (..., n, k)."""
        shapes = [torch.Size(shape) for shape in self.lazy.shapes]
        parts = parameters.split([shape.numel() for shape in shapes], -1)
        return self.lazy.univariate(
            *(part.reshape(*part.shape[:-1], *s) for part, s in zip(parts, shapes, strict=True))
        )


class Part:
    """Some units of a masked linear layer, their weights cut by the step from which the inputs are known."""

    def __init__(self, layer: Any, units: Tensor, known: Tensor) -> None:
        weight = (layer.mask * layer.weight)[units]
        self.weights = [weight[:, known == step].T.contiguous() for step in range(int(known.max()) + 1)]
        self.bias = layer.bias[units]

    def of(self, values: Sequence[Tensor]) -> Tensor:
        """The units (..., n, u) from the inputs (..., n, v) known by now, step by step."""
        total: Tensor = self.bias
        for value, weight in zip(values, self.weights, strict=False):
            total = total + value @ weight
        return total
