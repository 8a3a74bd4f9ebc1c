"""Log-space arithmetic, bracketed inversion and integration points: the numerics everything else stands on."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy.stats import qmc
from torch import Tensor
from torch.nn.functional import logsigmoid

from .errors import NumericalError

__all__ = [
    "bracketed_newton",
    "log1mexp",
    "log_logistic_difference",
    "logit_of_mixture",
    "sobol_points",
]

MAX_NEWTON_STEPS = 200


def log1mexp(log_p: Tensor) -> Tensor:
    """log(1 - e^log_p) for log_p <= 0, accurate at both ends; -inf at log_p = 0."""
    near_zero = log_p > -math.log(2.0)
    small = torch.where(near_zero, log_p, torch.full_like(log_p, -1.0))
    large = torch.where(near_zero, torch.full_like(log_p, -1.0), log_p)
    return torch.where(near_zero, torch.log(-torch.expm1(small)), torch.log1p(-torch.exp(large)))


def log_logistic_difference(upper: Tensor, lower: Tensor) -> Tensor:
    """log(s(upper) - s(lower)) for logits upper >= lower, with s the logistic function.

    Uses s(u) - s(l) = s(u) s(-l) (1 - e^(l - u)), which never subtracts two numbers near one.
    """
    finite = torch.where(lower == upper, torch.zeros_like(lower), lower - upper)
    return logsigmoid(upper) + logsigmoid(-lower) + log1mexp(finite)


def logit_of_mixture(log_weights: Tensor, logits: Tensor, dim: int | tuple[int, ...] = 0) -> Tensor:
    """Logit of sum_m w_m s(z_m), both tails in logs, reduced over `dim`; weights sum to one."""
    log_cdf = torch.logsumexp(log_weights + logsigmoid(logits), dim)
    log_sf = torch.logsumexp(log_weights + logsigmoid(-logits), dim)
    return log_cdf - log_sf


def sobol_points(n_points: int, n_dims: int, seed: int = 0) -> Tensor:
    """Scrambled Sobol points in the open unit cube, (n_points, n_dims), float64; n_points a power of two."""
    if n_dims == 0:
        return torch.zeros(n_points, 0, dtype=torch.float64)
    exponent = max(0, math.ceil(math.log2(n_points)))
    points = qmc.Sobol(n_dims, scramble=True, rng=seed).random_base2(exponent)[:n_points]
    half_cell = 2.0**-32
    return torch.from_numpy(points * (1.0 - 2.0 * half_cell) + half_cell)


def bracketed_newton(
    rising: Callable[[Tensor], tuple[Tensor, Tensor]],
    target: Tensor,
    low: Tensor,
    high: Tensor,
    *,
    tolerance: float = 0.0,
    start: Tensor | None = None,
    holds: bool = False,
) -> Tensor:
    """Solve rising(t) = target elementwise, where rising returns its value and its slope's logarithm.

    The bracket [low, high] is widened until it holds the root, unless it is known that it `holds` one. The first point
    is `start` where that lies inside, else the middle; from there every step is Newton's where that falls
    inside the bracket and bisection where it does not. A point settles when its step is below four units in the last
    place of its scale, the larger of |t| and the first bracket's width, or when its value comes within `tolerance` of
    the target, from where the last step leads to about the square of that, however steep the function.

    Raises
    ------
    NumericalError
        When a point has not settled after `MAX_NEWTON_STEPS`; it is never returned half solved.
    """
    unit = torch.finfo(target.dtype).eps
    low, high = (low, high) if holds else _widen(rising, target, low, high)
    width = high - low
    width_before = width
    point = 0.5 * (low + high)
    if start is not None:
        point = torch.where((start >= low) & (start <= high), start, point)
    for step in range(MAX_NEWTON_STEPS):
        value, log_slope = rising(point)
        excess = value - target
        low = torch.where(excess <= 0, point, low)
        high = torch.where(excess >= 0, point, high)
        newton = torch.where(excess == 0, point, point - excess * torch.exp(-log_slope))
        newton = torch.where(excess.isinf(), 0.5 * (low + high), newton)  # no slope leads back from there
        scale = torch.maximum(point.abs(), width)
        small = 4.0 * unit * scale
        settled = ((newton - point).abs() <= small) | (high - low <= small) | (excess.abs() <= tolerance)
        settled &= ~newton.isnan()
        if bool(settled.all()):
            return torch.minimum(torch.maximum(newton, low), high)
        inside = (newton >= low) & (newton <= high)
        if step % 4 == 3:  # a bracket that has hardly halved in four steps is bisected: linear rate at worst
            inside &= (high - low) <= 0.51 * width_before  # not 0.5: rounding would decide where one step halved it
            width_before = high - low
        point = torch.where(settled, point, torch.where(inside, newton, 0.5 * (low + high)))
    raise NumericalError(
        f"inversion must settle within {MAX_NEWTON_STEPS} steps; "
        f"got {int((~settled).sum())} of {settled.numel()} points unsettled. "
        "Check the inputs for values far outside the training data."
    )


def _widen(
    rising: Callable[[Tensor], tuple[Tensor, Tensor]], target: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor]:
    """Move each end outwards, doubling, until rising(low) <= target <= rising(high)."""
    for sign, end in ((-1.0, "low"), (1.0, "high")):
        bound = low if end == "low" else high
        reach = torch.maximum(high - low, (high.abs() + low.abs()) * torch.finfo(low.dtype).eps)
        reach = torch.where(reach > 0, reach, torch.ones_like(reach))
        for _ in range(MAX_NEWTON_STEPS):
            short = sign * (target - rising(bound)[0]) > 0
            if not bool(short.any()):
                break
            bound = torch.where(short, bound + sign * reach, bound)
            reach = torch.where(short, 2.0 * reach, reach)
        else:
            raise NumericalError(
                f"inversion must start from a bracket; got {int(short.sum())} targets beyond every {end} end. "
                "Ask for levels strictly between 0 and 1."
            )
        low, high = (bound, high) if end == "low" else (low, bound)
    return low, high
