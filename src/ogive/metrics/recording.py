"""Outputs that were recorded to a step: the score of the recorded cell, and the step itself.

Over the few values that a rounded column takes, a density may rise without bound, and its NLL falls without
bound. The probability of the cell that a recorded value stands for rewards no spike narrower than the cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array
from ..errors import DataError
from .predictive import Predictive, answer, numbers, outcomes

__all__ = ["recording_step", "rounded_nll"]

EPSILON = float(np.finfo(np.float64).eps)
# A cell whose probability is known to no better than this counts by its density.
ROUNDED_OFF = 1e-6
# Share of the gaps that may fit no step; a stray value makes two.
STRAY = 0.05


def rounded_nll(prediction: Predictive, y: ArrayLike, step: ArrayLike) -> float:
    r"""Mean negative log of the average density over the cell :math:`y_j \pm s_j / 2` of each recorded y.

    .. math:: -\frac{1}{n} \sum_{rows} \sum_j \log
        \frac{F_j(y_j + s_j/2 \mid x, y_{<j}) - F_j(y_j - s_j/2 \mid x, y_{<j})}{s_j}

    In nats and in the units of y, so that it stands beside `nll`, which it meets as the step goes to 0. It is
    never below the sum of ``log s_j``: a spike on a recorded value earns the cell's probability and no more.

    Parameters
    ----------
    prediction : Prediction
        Needs ``logcdf``, ``logsf`` for one output, ``pit`` for more, and ``logpdf``.
    y : array-like or data frame of shape (n, d), or (n,) when d = 1
        The recorded values, the middles of their cells.
    step : float or array-like of shape (d,)
        Width of the cells, one for all outputs or one each; see `recording_step`.

    Notes
    -----
    For more outputs this is the chain's reading: each conditional CDF is read at both ends of its own cell,
    given the outputs before it *as recorded*, not averaged over their cells. One output is computed in
    logs, exact in both tails. A row in which rounding leaves a cell's probability fewer than six digits (a
    step below 1e-10 of the spread or, with more outputs, a cell far in the upper tail) counts by its
    density, the limit of narrow cells.
    """
    points = outcomes(prediction, y)
    width = numbers("step", step)
    if width.shape not in ((), points.shape[1:]) or not (np.isfinite(width) & (width > 0.0)).all():
        raise DataError(
            f"step must be one positive number or {points.shape[1]} of them, one per output; "
            f"got {width.tolist()}. Measure it with recording_step."
        )
    width = np.broadcast_to(width, points.shape[1:])
    log_mass, kept = (_one_output if points.shape[1] == 1 else _chain)(prediction, points, width)
    log_density = (log_mass - np.log(width)).sum(1)
    whole = (kept & (np.abs(points) * EPSILON <= ROUNDED_OFF * width)).all(1)
    if not whole.all():
        at_point = answer(prediction.logpdf(points), whole.shape, "logpdf")
        log_density = np.where(whole, log_density, np.minimum(at_point, -np.log(width).sum()))
    return -float(log_density.mean())


def recording_step(y: ArrayLike) -> Array:
    """The step (d,) to which each column was recorded: 0.1 for 3.2, 7.9, 4.0, ..., 1 for counts.

    The largest step of which the gaps between neighbouring distinct values are whole multiples within the
    rounding of floating point. Up to 5 % of the gaps may be no multiples: a stray or imputed value does not
    hide the step of the others. It follows a change of units, a shift, and float32 where that left the step
    two digits. A column that shows no step, like draws from a continuous law, gets its smallest gap.

    Parameters
    ----------
    y : array-like of shape (n, d), or (n,) for one output
        Finite, at least two distinct values a column. Give all the rows: a few may lie on a coarser grid.

    Examples
    --------
    >>> recording_step([[3.2, 10], [7.9, 40], [4.0, 20], [3.3, 70]]).round(12).tolist()
    [0.1, 10.0]
    """
    values = numbers("y", y)
    if values.ndim not in (1, 2) or not np.isfinite(values).all():
        raise DataError(
            f"y must be a finite array of shape (n,) or (n, d); got shape {values.shape} with "
            f"{np.count_nonzero(~np.isfinite(values))} values not finite. Leave rows out where they are."
        )
    columns = [np.unique(column) for column in values.reshape(len(values), -1).T]
    for j, distinct in enumerate(columns):
        if len(distinct) < 2:
            raise DataError(f"y must take two values or more; got {len(distinct)} in output {j}. Drop it.")
    return np.array([_step(distinct) for distinct in columns])


def _one_output(prediction: Predictive, points: Array, width: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Log-probability (n, 1) of the cells, and where it is more than rounding."""
    n, ends = len(points), (points - 0.5 * width, points + 0.5 * width)
    cdf = [answer(prediction.logcdf(end), (n,), "logcdf") for end in ends]
    sf = [answer(prediction.logsf(end), (n,), "logsf") for end in ends]
    left = cdf[1] <= sf[0]
    more, less = np.where(left, cdf[1], sf[0]), np.where(left, cdf[0], sf[1])
    somewhere = np.isfinite(more)
    more = np.where(somewhere, more, 0.0)
    drop = np.where(somewhere, more - less, 0.0)
    kept = EPSILON * (1.0 - more) <= ROUNDED_OFF * drop
    log_mass = more + np.log(-np.expm1(-np.where(kept, drop, 1.0)))
    return log_mass[:, None], kept[:, None]


def _chain(prediction: Predictive, points: Array, width: Array) -> tuple[Array, NDArray[np.bool_]]:
    """The same (n, d) for conditional cells, each output shifted alone."""
    log_mass, kept = np.empty(points.shape), np.empty(points.shape, dtype=bool)
    for j, shift in enumerate(np.diag(0.5 * width)):
        low = answer(prediction.pit(points - shift), points.shape, "pit")[:, j]
        high = answer(prediction.pit(points + shift), points.shape, "pit")[:, j]
        kept[:, j] = (high > low) & (EPSILON * high <= ROUNDED_OFF * (high - low))
        log_mass[:, j] = np.log(np.where(kept[:, j], high - low, 1.0))
    return log_mass, kept


def _step(distinct: Array) -> float:
    """Recording step of one column from its sorted distinct values."""
    _, exponent = np.frexp(np.abs(distinct[[0, -1]]).max())
    distinct = np.ldexp(distinct, -exponent)  # within [-1, 1], exactly
    gaps = np.diff(distinct)
    single = bool((distinct == distinct.astype(np.float32)).all())
    for epsilon in [float(np.finfo(np.float32).eps)] * single + [EPSILON]:
        rounding = 4.0 * epsilon
        step = _common_measure(gaps[gaps > rounding], rounding)
        if step is not None:
            return float(np.ldexp(step, exponent))
    return float(np.ldexp(gaps.min(), exponent))


def _common_measure(gaps: Array, rounding: float) -> float | None:
    """Euclid's algorithm on gaps known to within `rounding`: at each turn on with the commonest remainder."""
    remainder = gaps
    while len(remainder):
        kinds = np.rint(remainder / (4.0 * rounding))
        _, places, counts = np.unique(kinds, return_index=True, return_counts=True)
        step = float(remainder[places[counts.argmax()]])
        if step <= 64.0 * rounding:
            return None
        step, misfit, allowed = _fitted(gaps, step, rounding)
        if (misfit > allowed).sum() <= STRAY * len(gaps):
            return step
        remainder = misfit[misfit > allowed]
    return None


def _fitted(gaps: Array, step: float, rounding: float) -> tuple[float, Array, Array]:
    """The step averaged over its multiples, and each gap's misfit with the misfit that rounding allows."""
    error = rounding
    for _ in range(2):
        counts = np.rint(gaps / step)
        misfit = np.abs(gaps - counts * step)
        allowed = np.minimum(rounding + counts * error, step / 64.0)
        fits = (counts > 0.0) & (misfit <= allowed)
        if not fits.any():
            break
        step = float(gaps[fits].sum() / counts[fits].sum())
        error = rounding * float(fits.sum() / counts[fits].sum())
    return step, misfit, allowed
