"""What metrics ask of a prediction, and the checks at that edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, columns_of
from ..errors import DataError, DataTypeError, NumericalError

# A number for y (n,), an array (d,) for y (n, d).
Score = Any


class Predictive(Protocol):
    """The part of a Prediction that metrics use; each metric needs only the methods that it names.

    Points are arrays (n, d), also for one output. Axes of length one may be missing from an answer.
    """

    @property
    def n_outputs(self) -> int:
        """Number of outputs d; ``len`` is the number of rows n."""

    @property
    def output_names(self) -> Sequence[str]:
        """Names of the outputs, by which data frames are matched."""

    def __len__(self) -> int: ...

    def logpdf(self, y: Array, /) -> Array:
        """Joint log-density (n,)."""

    def pit(self, y: Array, /) -> Array:
        """Conditional CDF of each output given those before it (n, d)."""

    def logcdf(self, y: Array, /) -> Array:
        """Log of the CDF (n,); asked for one output only, like `logsf`."""

    def logsf(self, y: Array, /) -> Array:
        """Log of one minus the CDF (n,), exact in the upper tail."""

    def crps(self, y: Array, /) -> Array:
        """Continuous ranked probability score of each marginal (n, d)."""

    def energy_score(self, y: Array, /) -> Array:
        """Energy score of the joint law (n,)."""

    def quantiles(self, q: Array, /) -> Array:
        """Quantiles of the marginals at the levels q (n, d, q)."""

    def interval(self, coverage: float, /) -> Array:
        """Central intervals of the marginals (n, d, 2)."""


def outcomes(prediction: Predictive, y: ArrayLike) -> Array:
    """Measured y as (n, d); a data frame is matched to the prediction's outputs by name."""
    points = columns_of(y, prediction.output_names, "y")
    shape = (len(prediction), prediction.n_outputs)
    flat = shape[:1] if shape[1] == 1 else shape
    if points.shape not in (shape, flat):
        raise DataError(
            f"y must have shape {' or '.join(map(str, dict.fromkeys((shape, flat))))}, as the prediction; "
            f"got {points.shape}. Predict for the rows that y was measured on."
        )
    if not len(points):
        raise DataError("y must have at least one row; got none. Predict for the rows to be scored.")
    points = points.reshape(shape)
    wrong = np.logical_not(np.isfinite(points).all(axis=1))
    if wrong.any():
        raise DataError(f"y must be finite; got NaN or infinity in {_rows(wrong)}. Score the other rows.")
    return points


def numbers(name: str, values: ArrayLike) -> Array:
    """The values as a float64 array, or a refusal of what is not real numbers."""
    try:
        found = np.asarray(values)
        if found.dtype.kind in "biuf":
            return found.astype(np.float64)
        kind = f"dtype {found.dtype}"
    except ValueError as error:
        kind = str(error)
    raise DataTypeError(f"{name} must be real numbers; got {kind}. Convert it to a float array.")


def answer(values: ArrayLike, shape: tuple[int, ...], method: str) -> Array:
    """What a prediction answered, in the shape that was asked for; axes of length one are forgiven."""
    found = np.asarray(values, dtype=np.float64)
    if np.squeeze(found).shape != tuple(size for size in shape if size != 1):
        raise DataError(
            f"prediction.{method} must answer in shape {shape}; got {found.shape}. "
            "Use a prediction with the methods of ogive's Prediction."
        )
    found = found.reshape(shape)
    wrong = np.isnan(found).reshape(shape[0], -1).any(axis=1)
    if wrong.any():
        raise NumericalError(
            f"prediction.{method} must give numbers; got NaN in {_rows(wrong)}. Look at the model on those rows."
        )
    return found


def probability(name: str, level: float) -> float:
    """A probability strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise DataError(f"{name} must lie strictly between 0 and 1; got {level}. Write 90 % as 0.9.")
    return float(level)


def row_mean(values: Array, y: ArrayLike) -> Score:
    """Mean of values (n, d, ...) over rows, without the axis of outputs if y has none."""
    mean = values.mean(0)
    return mean[0] if np.ndim(y) == 1 else mean


def _rows(wrong: Any) -> str:
    return f"{wrong.sum()} of {len(wrong)} rows (first: row {wrong.argmax()})"
