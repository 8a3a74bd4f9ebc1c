"""Proper scores: smallest on average when the predicted law is the true one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..errors import DataError
from .predictive import Predictive, Score, answer, numbers, outcomes, probability, row_mean

__all__ = ["crps", "energy_score", "interval_score", "nll", "pinball"]


def nll(prediction: Predictive, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    r"""Mean negative log-likelihood, :math:`-\sum_i w_i \log p(y_i \mid x_i) / \sum_i w_i`.

    Joint over the outputs, in nats and in the units of y: for ``c * y`` it is larger by ``d * log(c)``. It is
    infinite where y lies outside a declared support.

    Parameters
    ----------
    prediction : Prediction
        Of n rows and d outputs; needs ``logpdf``.
    y : array-like or data frame of shape (n, d), or (n,) when d = 1
        What was measured. A data frame is matched by name.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows, at least one positive. A row of weight 0 does not count, whatever its likelihood.
    """
    points = outcomes(prediction, y)
    log_density = answer(prediction.logpdf(points), points.shape[:1], "logpdf")
    if sample_weight is None:
        return -float(log_density.mean())
    weight = _weights(sample_weight, len(points))
    return -float(np.average(log_density[weight > 0.0], weights=weight[weight > 0.0]))


def crps(prediction: Predictive, y: ArrayLike) -> Score:
    r"""Mean continuous ranked probability score of each output's marginal.

    :math:`\int (F_j(t \mid x) - 1[y_j \le t])^2 dt`, in the units of y; for a point forecast it is the
    absolute error. Needs ``crps``. A number for y (n,), an array (d,) for y (n, d).

    References
    ----------
    Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation. JASA 102.
    """
    points = outcomes(prediction, y)
    return row_mean(answer(prediction.crps(points), points.shape, "crps"), y)


def energy_score(prediction: Predictive, y: ArrayLike) -> float:
    r"""Mean energy score of the joint law, :math:`E|Y - y| - E|Y - Y'| / 2` with Euclidean norms.

    The CRPS of several outputs at once, and equal to it for one. An output counts by its spread: scale y
    before the fit if units differ. Needs ``energy_score``.
    """
    points = outcomes(prediction, y)
    return float(answer(prediction.energy_score(points), points.shape[:1], "energy_score").mean())


def interval_score(prediction: Predictive, y: ArrayLike, level: float = 0.9) -> Score:
    r"""Mean score of each output's central interval [l, u] of probability ``level``.

    :math:`u - l + \frac{2}{\alpha} (l - y)_+ + \frac{2}{\alpha} (y - u)_+` with :math:`\alpha = 1 - level`:
    the width, and a fine for y outside (Gneiting and Raftery 2007, section 6.2). Needs ``interval``. A
    number for y (n,), an array (d,) for y (n, d).
    """
    points = outcomes(prediction, y)
    level = probability("level", level)
    ends = answer(prediction.interval(level), (*points.shape, 2), "interval")
    low, high = ends[..., 0], ends[..., 1]
    outside = np.maximum(low - points, 0.0) + np.maximum(points - high, 0.0)
    return row_mean(high - low + 2.0 / (1.0 - level) * outside, y)


def pinball(prediction: Predictive, y: ArrayLike, q: ArrayLike) -> Score:
    r"""Mean pinball loss of each output's marginal quantile t at each level q.

    :math:`\max(q (y - t), (q - 1)(y - t))`; twice its integral over q is the CRPS. Needs ``quantiles``.

    Returns
    -------
    float64 of shape (d,) for one level, (d, q) for an array of levels; without the axis d for y (n,)
    """
    points = outcomes(prediction, y)
    levels = numbers("q", q)
    if levels.ndim > 1 or not levels.size or not ((levels > 0.0) & (levels < 1.0)).all():
        raise DataError(
            f"q must be one level or a list of levels strictly between 0 and 1; got {levels.tolist()}. "
            "Try q=[0.1, 0.5, 0.9]."
        )
    flat = np.atleast_1d(levels)
    error = points[..., None] - answer(prediction.quantiles(flat), (*points.shape, len(flat)), "quantiles")
    loss = np.maximum(flat * error, (flat - 1.0) * error)
    return row_mean(loss if levels.ndim else loss[..., 0], y)


def _weights(sample_weight: ArrayLike, n: int) -> Array:
    weight = numbers("sample_weight", sample_weight)
    if weight.shape != (n,):
        raise DataError(f"sample_weight must have shape {(n,)}; got {weight.shape}. Give one weight per row.")
    if not (np.isfinite(weight) & (weight >= 0.0)).all() or not (weight > 0.0).any():
        raise DataError(
            f"sample_weight must be finite, not negative, and positive somewhere; got {weight.min()} to "
            f"{weight.max()}. Leave it out to weigh all rows alike."
        )
    return weight
