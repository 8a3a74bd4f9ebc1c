r"""The soft minimum of soft maxima of rising lines, with its exact slope, as one differentiable call.

For lines :math:`l_{ug}(t) = a_{ug} t + b_{ug}` with :math:`a = e^w > 0`,

.. math:: O(t) = -\log\sum_g \exp(-M_g), \qquad M_g = \log\sum_u \exp l_{ug}(t),

.. math:: O'(t) = \sum_g \pi_g s_g, \qquad s_g = \sum_u \rho_{ug} a_{ug},

where :math:`\rho` and :math:`\pi` are the two softmaxes. The slope lies between the smallest and the largest
:math:`a`, so it never vanishes. Written after Igel, "Smooth Min-Max Monotonic Networks" (2023).

Axes: f factors (members times outputs), u units, g groups, q points of one row, n rows. Rows come last, which
turns every reduction over units or groups into a sum of long vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import hardshrink

from .jet import Jet

__all__ = ["hard_bracket", "hard_inverse", "soft_min_max", "soft_min_max_of_lines"]

# Lines far from the winning one have gradients that no sum would notice, but a matrix product stalls on denormal
# numbers: below this multiple of the smallest normal one they become zero.
FAINT = 1e8
# torch takes powers of two three to four times as fast as those of e, and as exactly.
TWOS_IN_E = math.log2(math.e)
# Values up to here leave the exponentials of the lines that count, and their sums, far within the floats.
REACH = {torch.float32: 40.0, torch.float64: 600.0}


def soft_min_max(point: Tensor, bias: Tensor, log_weight: Tensor) -> Jet:
    """Jet of the network at `point` (f, q, n) for lines with `bias` (f, u, g, n) and `log_weight` (f, u, g)."""
    if torch.is_grad_enabled():
        return Jet(*_SoftMinMax.apply(point, bias, log_weight))  # type: ignore[no-untyped-call]
    value, log_slope = _unshifted(point, bias, log_weight)
    wild = ~(value.abs() < REACH[value.dtype])
    if bool(wild.any()):
        laws = wild.flatten(0, 1).any(0).nonzero()[:, 0]
        with_care = _SoftMinMax.apply(point[..., laws], bias[..., laws], log_weight)  # type: ignore[no-untyped-call]
        value[..., laws], log_slope[..., laws] = with_care
    return Jet(value, log_slope)


def _unshifted(point: Tensor, bias: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Value and log-slope, right where the value lies within reach: no largest line is looked for and taken off.

    A group whose sum leaves the floats is then so far above the least one that its share is nothing.
    """
    steepest = log_weight.amax((1, 2))[:, None, None]
    weight = log_weight.exp()[..., None, None]
    relative = (log_weight - steepest).exp()[..., None, None]
    power = torch.addcmul(bias[..., None, :], weight, point[:, None, None]).mul_(TWOS_IN_E).exp2_()
    share = power.sum(1).reciprocal_()
    group_slope = power.mul_(relative).sum(1).mul_(share).nan_to_num_(0.0, 0.0)
    mass = share.sum(1)
    slope = group_slope.mul_(share).sum(1).div_(mass)
    return mass.log_().neg_(), slope.log_().add_(steepest)


def soft_min_max_of_lines(value: Tensor, slope: Tensor) -> Jet:
    """Jet (..., q, n) of the same formula for lines (..., u, g, q, n) of any `value` and `slope` > 0."""
    return Jet(*_SoftMinMaxOfLines.apply(value, slope))  # type: ignore[no-untyped-call]


def hard_bracket(target: Tensor, bias: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Two points (f, q, n) between which the network takes the value `target` (f, q, n).

    The soft value lies above the hard one by at most log(units) and below it by at most log(groups).
    """
    units, groups = log_weight.shape[1:]
    low, high = (hard_inverse(target + step, bias, log_weight) for step in (-math.log(units), math.log(groups)))
    return low, high


def hard_inverse(target: Tensor, bias: Tensor, log_weight: Tensor) -> Tensor:
    """The point (f, q, n) at which the hard minimum of maxima is `target`: t(z) = max_g min_u (z - b) / a."""
    reach = (-log_weight).exp()[..., None, None]
    return (target[:, None, None] - bias[..., None, :]).mul_(reach).amin(1).amax(1)


class _SoftMinMax(torch.autograd.Function):
    """One exponential per line; of the (u, g)-sized tensors only that exponential is kept for the way back."""

    @staticmethod
    def forward(ctx: Any, point: Tensor, bias: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = log_weight.exp()[..., None, None]
        line = torch.addcmul(bias[..., None, :], weight, point[:, None, None])
        value, slope, kept = _reduced(line, weight)
        ctx.save_for_backward(point, weight, *kept)
        return value, slope.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        point, weight, *kept = ctx.saved_tensors
        grad_line, through_slope = _line_gradients(weight, kept, *grads)
        grad_bias = grad_line.sum(3)
        grad_point = (grad_line * weight).sum((1, 2)) if ctx.needs_input_grad[0] else None
        grad_weight = kept[0].mul(through_slope).addcmul_(grad_line, point[:, None, None])
        grad_log_weight = grad_weight.sum((3, 4)) * weight[..., 0, 0]
        return grad_point, grad_bias, grad_log_weight


class _SoftMinMaxOfLines(torch.autograd.Function):
    """One exponential per line, which takes the place of the line's value."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
        found, found_slope, kept = _reduced(value.clone(), slope)
        ctx.save_for_backward(slope, *kept)
        return found, found_slope.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        slope, *kept = ctx.saved_tensors
        grad_value, through_slope = _line_gradients(slope, kept, *grads)
        return grad_value, _without_faint(kept[0].mul(through_slope))


def _reduced(line: Tensor, slope: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
    """Value and slope (..., q, n) of lines (..., u, g, q, n), which are overwritten, and what the way back needs."""
    top = line.amax(-4, keepdim=True)
    power = line.sub_(top).mul_(TWOS_IN_E).exp2_()
    total = power.sum(-4)
    group_slope = (power * slope).sum(-4).div_(total)
    top = top.squeeze(-4)
    least = top.amin(-3, keepdim=True)  # differences of groups are taken before their logarithms are added
    share = torch.exp(least - top).div_(total)
    mass = share.sum(-3, keepdim=True)
    share.div_(mass)
    value = mass.log_().sub_(least).squeeze(-3).neg_()
    whole_slope = (share * group_slope).sum(-3)
    return value, whole_slope, (power, total, share, group_slope, whole_slope)


def _line_gradients(
    slope: Tensor, kept: Sequence[Tensor], grad_value: Tensor, grad_log_slope: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradient with respect to the lines' values, and the one to their slopes less a factor of `power`."""
    power, total, share, group_slope, whole_slope = kept
    share = share / total
    through_slope = share * (grad_log_slope / whole_slope).unsqueeze(-3)
    through_value = share * (grad_value + grad_log_slope).unsqueeze(-3) - 2.0 * group_slope * through_slope
    through_slope = through_slope.unsqueeze(-4)
    grad_line = torch.addcmul(through_value.unsqueeze(-4), through_slope, slope).mul_(power)
    return _without_faint(grad_line), through_slope


def _without_faint(grad: Tensor) -> Tensor:
    return hardshrink(grad, FAINT * torch.finfo(grad.dtype).tiny)
