"""Stacks of layers that rise with the output and carry their exact slope along.

A layer lays lines e^W h + W_c c + b over the features h of the layer below; c are condition features that know
nothing of the output. Three layers share the lines and differ in what they make of them: soft min-max, hard
min-max, and the squashed units of a monotone perceptron.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .jet import Jet
from .linear import ALL, Chosen, Condition, FactorLinear, chosen
from .softminmax import hard_bracket, hard_inverse, soft_min_max, soft_min_max_of_lines

__all__ = ["HardMinMaxLayer", "Lines", "MonotoneStack", "RisingNorm", "SoftMinMaxLayer", "SquashLayer"]


# An optimiser moves every parameter by about its learning rate a step; sharp edges need log-slopes to go far in time.
PACE = 3.0


class Lines(nn.Module):
    """Positively weighted lines over the features below, shifted by condition features.

    They are kept as (f, features_out, units, groups): `features_out` outputs of `units` x `groups` lines each.
    """

    def __init__(
        self,
        factors: tuple[int, int],
        n_in: int,
        n_out: int,
        units: int,
        groups: int,
        n_conditions: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.shape = (n_out, units, groups)
        self.n_in = n_in
        n_lines = math.prod(self.shape)
        noise = torch.empty(*factors, n_lines, n_in).normal_(generator=generator)
        self.slow_log_weight = nn.Parameter((noise + 0.5 - math.log(n_in)) / PACE)
        self.shift = FactorLinear(factors, n_conditions, n_lines, generator)
        with torch.no_grad():
            self.shift.bias.copy_(torch.empty(*factors, n_lines, 1).normal_(generator=generator))

    @property
    def log_weight(self) -> Tensor:
        """Logarithms of the lines' slopes."""
        return PACE * self.slow_log_weight

    def bias(self, condition: Condition, at: Chosen = ALL) -> Tensor:
        """What the conditions add to each line, (f, lines, n)."""
        bias: Tensor = self.shift(condition, at)
        return bias

    def rise(self, below: Jet, bias: Tensor, at: Chosen) -> tuple[Tensor, Tensor, Tensor]:
        """Values and slopes of all lines, (f, n_out, u, g, q, n), for features below (f, n_in, q, n).

        The logarithm of the greatest slope below (f, 1, q, n) is left out of the slopes, and comes third.
        """
        log_weight = chosen(self.log_weight, at)
        shape = (len(bias), *self.shape, *below.value.shape[2:])
        weight = log_weight.exp()
        value = torch.bmm(weight, below.value.flatten(2)).view(shape)
        top = below.log_slope.amax(1, keepdim=True)
        slope = torch.bmm(weight, (below.log_slope - top).exp().flatten(2)).view(shape)
        return value + bias.view(*shape[:4], 1, -1), slope, top


class SoftMinMaxLayer(Lines):
    """Soft minimum over groups of the soft maximum over units."""

    def forward(self, below: Jet, bias: Tensor, at: Chosen = ALL) -> Jet:
        if self.n_in > 1:
            value, slope, scale = self.rise(below, bias, at)
            jet = soft_min_max_of_lines(value, slope)
            return Jet(jet.value, jet.log_slope + scale)
        n_out, units, groups = self.shape
        point = below.value.expand(-1, n_out, -1, -1).flatten(0, 1)
        log_weight = chosen(self.log_weight, at).reshape(-1, units, groups)
        jet = soft_min_max(point, bias.view(len(log_weight), units, groups, bias.shape[-1]), log_weight)
        shape = (len(bias), n_out, *jet.value.shape[1:])
        return Jet(jet.value.view(shape), jet.log_slope.view(shape) + below.log_slope)

    def bracket(self, target: Tensor, bias: Tensor, at: Chosen) -> tuple[Tensor, Tensor]:
        """Bracket of the root in closed form, for a single layer."""
        return hard_bracket(target, *self._lines(bias, at))

    def start(self, target: Tensor, bias: Tensor, at: Chosen) -> Tensor:
        """The root of the hard minimum of maxima, for a single layer."""
        return hard_inverse(target, *self._lines(bias, at))

    def _lines(self, bias: Tensor, at: Chosen) -> tuple[Tensor, Tensor]:
        _, units, groups = self.shape
        log_weight = chosen(self.log_weight, at).reshape(-1, units, groups)
        return bias.view(len(log_weight), units, groups, bias.shape[-1]), log_weight


class HardMinMaxLayer(Lines):
    """Minimum over groups of the maximum over units; the slope is the winning line's."""

    def forward(self, below: Jet, bias: Tensor, at: Chosen = ALL) -> Jet:
        value, slope, scale = self.rise(below, bias, at)
        value, unit = value.max(2, keepdim=True)
        value, group = value.min(3, keepdim=True)
        slope = slope.gather(2, unit).gather(3, group)
        return Jet(value.squeeze((2, 3)), slope.squeeze((2, 3)).log() + scale)


class SquashLayer(Lines):
    """tanh units with a slight leak, so that the stack still reaches both infinities."""

    leak = 0.1

    def forward(self, below: Jet, bias: Tensor, at: Chosen = ALL) -> Jet:
        line, slope, scale = self.rise(below, bias, at)
        value = (torch.tanh(line) + self.leak * line).flatten(1, 3)
        log_sech2 = 2.0 * (math.log(2.0) - line - softplus(-2.0 * line))
        log_squash = torch.logaddexp(log_sech2, torch.full_like(log_sech2, math.log(self.leak)))
        return Jet(value, (log_squash + slope.log()).flatten(1, 3) + scale)


class LinearLayer(Lines):
    """The positively weighted sum that ends a monotone perceptron."""

    def forward(self, below: Jet, bias: Tensor, at: Chosen = ALL) -> Jet:
        value, slope, scale = self.rise(below, bias, at)
        return Jet(value.flatten(1, 3), slope.log().flatten(1, 3) + scale)


class RisingNorm(nn.Module):
    """Batch normalisation with a positive gain; while training its moments come from the first point of each row.

    The running moments are parameters that need no gradient, so that they are kept with the weights they belong to.
    """

    momentum = 0.1

    def __init__(self, factors: tuple[int, int], n_features: int) -> None:
        super().__init__()
        self.log_gain = nn.Parameter(torch.zeros(*factors, n_features, 1))
        self.offset = nn.Parameter(torch.zeros(*factors, n_features, 1))
        self.mean = nn.Parameter(torch.zeros(*factors, n_features, 1), requires_grad=False)
        self.variance = nn.Parameter(torch.ones(*factors, n_features, 1), requires_grad=False)

    def forward(self, jet: Jet, at: Chosen = ALL) -> Jet:
        """Normalised jet (f, k, q, n)."""
        if self.training:
            first = jet.value[:, :, 0]
            mean, variance = first.mean(-1, keepdim=True), first.var(-1, keepdim=True, unbiased=False)
            with torch.no_grad():
                self.mean.lerp_(mean.view_as(self.mean), self.momentum)
                self.variance.lerp_(variance.view_as(self.variance), self.momentum)
        else:
            mean, variance = chosen(self.mean, at), chosen(self.variance, at)
        log_gain = chosen(self.log_gain, at) - 0.5 * (variance + 1e-5).log()
        value = (jet.value - mean[..., None]) * log_gain.exp()[..., None] + chosen(self.offset, at)[..., None]
        return Jet(value, jet.log_slope + log_gain[..., None])


class MonotoneStack(nn.Module):
    """Layers one on the other, from the scaled output to the network's value O.

    What the layers give is multiplied by the sharpness of the factor, which is one until a pool of members is fitted.
    """

    member_buffers = ("log_sharpness",)
    log_sharpness: Tensor

    def __init__(self, factors: tuple[int, int], layers: Sequence[Lines], norms: Sequence[RisingNorm]) -> None:
        super().__init__()
        self.register_buffer("log_sharpness", torch.zeros(factors))
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(norms)
        self.most_lines = max(math.prod(layer.shape) for layer in layers)

    def biases(self, conditions: Sequence[Condition], at: Chosen = ALL) -> list[Tensor]:
        """What the conditions add to the lines of each layer; computed once for any number of points."""
        return [layer.bias(c, at) for layer, c in zip(self.layers, conditions, strict=True)]  # type: ignore[operator]

    def forward(self, point: Tensor, biases: Sequence[Tensor], at: Chosen = ALL) -> Jet:
        """Jet of O (f, q, n) at scaled outputs (f, q, n)."""
        jet = Jet(point[:, None], torch.zeros_like(point[:, None]))
        for i, (layer, bias) in enumerate(zip(self.layers, biases, strict=True)):
            jet = layer(jet, bias, at)
            jet = self.norms[i](jet, at) if len(self.norms) else jet
        return self.sharpened(Jet(jet.value[:, 0], jet.log_slope[:, 0]), at)

    def sharpened(self, jet: Jet, at: Chosen = ALL) -> Jet:
        """A jet (f, q, n) of the layers multiplied by the sharpness."""
        log_sharpness = chosen(self.log_sharpness, at)[:, None, None]
        return Jet(jet.value * log_sharpness.exp(), jet.log_slope + log_sharpness)

    def bracket(self, target: Tensor, biases: Sequence[Tensor], at: Chosen = ALL) -> tuple[Tensor, Tensor]:
        """Points (f, q, n) between which O takes the value `target`, or where to begin looking."""
        if self.only is not None:
            return self.only.bracket(self._blunt(target, at), biases[0], at)
        return torch.full_like(target, -1.0), torch.ones_like(target)

    def start(self, target: Tensor, biases: Sequence[Tensor], at: Chosen = ALL) -> Tensor:
        """A point (f, q, n) near which O takes the value `target`, or where to begin looking."""
        if self.only is not None:
            return self.only.start(self._blunt(target, at), biases[0], at)
        return torch.zeros_like(target)

    def _blunt(self, target: Tensor, at: Chosen) -> Tensor:
        """What the layers give where O is `target`."""
        return target * (-chosen(self.log_sharpness, at)[:, None, None]).exp()

    @property
    def only(self) -> SoftMinMaxLayer | None:
        """The layer of a stack that has but one, of soft min-max: its hard inverse is known in closed form."""
        alone = len(self.layers) == 1 and not len(self.norms)
        return self.layers[0] if alone and isinstance(self.layers[0], SoftMinMaxLayer) else None
