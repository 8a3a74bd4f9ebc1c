"""Does what was predicted with probability q happen a share q of the time?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..errors import DataError, NotAvailableError
from .predictive import Predictive, Score, answer, numbers, outcomes, probability, row_mean

__all__ = ["coverage", "ece", "ece_band", "ece_of_pit", "pit"]


def pit(prediction: Predictive, y: ArrayLike) -> Array:
    """Probability integral transform (n, d): each output's CDF at y given x and the outputs before it.

    Independent and uniform on (0, 1) when the predicted law is the true one. Needs ``pit``.
    """
    points = outcomes(prediction, y)
    return answer(prediction.pit(points), points.shape, "pit")


def ece(prediction: Predictive, y: ArrayLike, levels: int = 10) -> float:
    """Expected calibration error: `ece_of_pit` of the prediction's PIT at y, pooled over outputs."""
    return ece_of_pit(pit(prediction, y), levels)


def ece_of_pit(pit: ArrayLike, levels: int = 10) -> float:
    r"""Mean distance of the PIT's distribution from the diagonal, read at equally spaced levels.

    :math:`\frac{1}{L} \sum_{k=1}^{L} \left| \frac{1}{n} \#\{u_i \le k / L\} - \frac{k}{L} \right|`. The last
    level is 1, where the two always meet: it counts in the mean.

    Parameters
    ----------
    pit : array-like of any shape
        Values in [0, 1]. All are pooled: outputs, and folds when their PITs are joined.
    levels : int
        Number of levels L.

    Examples
    --------
    >>> ece_of_pit([0.05, 0.15, 0.25, 0.35], levels=2)  # all below 1/2, where half of them should be
    0.25
    """
    values = numbers("pit", pit).ravel()
    if not values.size or not ((values >= 0.0) & (values <= 1.0)).all():
        reach = f"{values.min()} to {values.max()}" if values.size else "no values"
        raise DataError(f"pit must lie in [0, 1]; got {reach}. Take it from ogive.metrics.pit.")
    grid = _levels(levels)
    share = np.searchsorted(np.sort(values), grid, side="right") / values.size
    return float(np.abs(share - grid).mean())


def ece_band(
    n: int,
    levels: int = 10,
    *,
    quantile: float = 0.95,
    n_simulations: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
) -> float:
    """Quantile of the ECE that a perfectly calibrated model shows on n values, by simulation.

    Chance alone keeps the ECE of n values above zero, near ``0.3 / sqrt(n)`` on average. A model whose ECE is
    inside the band cannot be told from a calibrated one.

    Parameters
    ----------
    n : int
        Number of independent PIT values: distinct rows times outputs. A row that comes back in several folds
        counts once.
    levels : int
        As in `ece_of_pit`.
    quantile : float
        Of the simulated ECEs.
    n_simulations : int
        Simulated data sets; 10,000 give the 95th percentile to about 1 %.
    random_state : int, Generator or None
        The default makes the band a constant.

    Examples
    --------
    >>> ece_band(300) > ece_band(3000) > 0.0
    True
    """
    grid = _levels(levels)
    n, n_simulations = _count("n", n), _count("n_simulations", n_simulations)
    generator = np.random.default_rng(random_state)
    # Only the counts between levels matter, and those of n uniforms are multinomial.
    counts = generator.multinomial(n, np.full(len(grid), 1.0 / len(grid)), size=n_simulations)
    simulated = np.abs(counts.cumsum(1) / n - grid).mean(1)
    return float(np.quantile(simulated, probability("quantile", quantile)))


def coverage(prediction: Predictive, y: ArrayLike, level: float = 0.9) -> Score:
    """Share of y inside each output's central interval of probability ``level``, ends included.

    Of the marginals; close to ``level`` when they are calibrated. Needs ``interval``; a prediction with
    ``marginal_pit`` is asked for that instead, which says the same without a search for the ends. A number for
    y (n,), an array (d,) for y (n, d).
    """
    points, level = outcomes(prediction, y), probability("level", level)
    cdf = _marginal_pit(prediction, points)
    if cdf is not None:
        return row_mean((np.abs(2.0 * cdf - 1.0) <= level).astype(np.float64), y)
    ends = answer(prediction.interval(level), (*points.shape, 2), "interval")
    inside = (ends[..., 0] <= points) & (points <= ends[..., 1])
    return row_mean(inside.astype(np.float64), y)


def _marginal_pit(prediction: Predictive, points: Array) -> Array | None:
    """Each output's own CDF (n, d) at the points, None from a prediction that has none."""
    ask = getattr(prediction, "marginal_pit", None)
    try:
        return answer(ask(points), points.shape, "marginal_pit") if ask else None
    except NotAvailableError:
        return None


def _levels(levels: int) -> Array:
    """The levels 1 / L, 2 / L, ..., 1."""
    count = _count("levels", levels)
    grid: Array = np.arange(1, count + 1) / count
    return grid


def _count(name: str, value: int) -> int:
    if value < 1 or value != int(value):
        raise DataError(f"{name} must be a whole number, 1 or more; got {value}. Count again.")
    return int(value)
