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
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import hardshrink

from .jet import Jet

__all__ = ["hard_bracket", "plain_soft_min_max", "soft_min_max"]

# Lines far from the winning one have gradients that no sum would notice, but a matrix product stalls on denormal
# numbers: below this multiple of the smallest normal one they become zero.
FAINT = 1e8
# torch takes powers of two three to four times as fast as those of e, and as exactly.
TWOS_IN_E = math.log2(math.e)


def soft_min_max(point: Tensor, bias: Tensor, log_weight: Tensor) -> Jet:
    """Jet of the network at `point` (f, q, n) for lines with `bias` (f, u, g, n) and `log_weight` (f, u, g)."""
    value, log_slope = _SoftMinMax.apply(point, bias, log_weight)  # type: ignore[no-untyped-call]
    return Jet(value, log_slope)


def plain_soft_min_max(line: Jet, unit_axis: int, group_axis: int) -> Jet:
    """The same formula written out for lines whose log-slopes vary; the deeper layers of a stack use it."""
    log_share = line.value.log_softmax(unit_axis)
    top = line.value.logsumexp(unit_axis, keepdim=True)
    log_slope = (log_share + line.log_slope).logsumexp(unit_axis, keepdim=True)
    log_group = (-top).log_softmax(group_axis)
    value = -(-top).logsumexp(group_axis, keepdim=True)
    log_slope = (log_group + log_slope).logsumexp(group_axis, keepdim=True)
    axes = (unit_axis, group_axis)
    return Jet(value.squeeze(axes), log_slope.squeeze(axes))


def hard_bracket(target: Tensor, bias: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
    """Two points (f, q, n) between which the network takes the value `target` (f, q, n).

    The soft value lies above the hard one by at most log(units) and below it by at most log(groups), and the hard
    minimum of maxima is inverted in closed form: t(z) = max_g min_u (z - b) / a.
    """
    units, groups = log_weight.shape[1:]
    reach = (-log_weight).exp()[..., None, None]
    lowest, highest = target - math.log(units), target + math.log(groups)
    low, high = ((z[:, None, None] - bias[..., None, :]).mul_(reach).amin(1).amax(1) for z in (lowest, highest))
    return low, high


class _SoftMinMax(torch.autograd.Function):
    """One exponential per line; of the (u, g)-sized tensors only that exponential is kept for the way back."""

    @staticmethod
    def forward(ctx: Any, point: Tensor, bias: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor]:
        weight = log_weight.exp()[..., None, None]
        line = torch.addcmul(bias[..., None, :], weight, point[:, None, None])
        top = line.amax(1)
        power = line.sub_(top[:, None]).mul_(TWOS_IN_E).exp2_()
        total = power.sum(1)
        group_slope = (power * weight).sum(1).div_(total)
        least = top.amin(1, keepdim=True)  # differences of groups are taken before their logarithms are added
        share = torch.exp(least - top).div_(total)
        mass = share.sum(1, keepdim=True)
        share.div_(mass)
        value = mass.log_().sub_(least)[:, 0]
        slope = (share * group_slope).sum(1)
        ctx.save_for_backward(point, weight, power, total, share, group_slope, slope)
        return value.neg_(), slope.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        grad_value, grad_log_slope = grads
        point, weight, power, total, share, group_slope, slope = ctx.saved_tensors
        ratio = (grad_log_slope / slope)[:, None]
        share = share / total
        through_slope = share * ratio
        through_value = share * (grad_value + grad_log_slope)[:, None] - 2.0 * group_slope * through_slope
        grad_line = torch.addcmul(through_value[:, None], through_slope[:, None], weight).mul_(power)
        grad_line = hardshrink(grad_line, FAINT * torch.finfo(grad_line.dtype).tiny)
        grad_bias = grad_line.sum(3)
        grad_point = (grad_line * weight).sum((1, 2)) if ctx.needs_input_grad[0] else None
        grad_weight = power.mul(through_slope[:, None]).addcmul_(grad_line, point[:, None, None])
        grad_log_weight = grad_weight.sum((3, 4)) * weight[..., 0, 0]
        return grad_point, grad_bias, grad_log_weight
