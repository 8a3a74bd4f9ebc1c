"""Reading what users give: arrays and frames of any kind, checked once, with errors that name the fact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from .errors import DataError, DataTypeError

__all__ = [
    "Array",
    "columns_of",
    "points_of",
    "probabilities",
    "read_features",
    "read_targets",
    "read_weights",
    "seed_of",
]

Array = NDArray[np.float64]


def read_features(estimator: Any, X: Any, *, fitting: bool) -> Array:
    """X as (n, p) float64, with names and number of columns remembered in fitting and compared later."""
    values = validate_data(estimator, X, reset=fitting, dtype=np.float64, ensure_all_finite=False)
    if fitting and len(values) < 2:
        raise DataError(f"X must have at least 2 rows; got 1 sample (n_samples = {len(values)}). Add rows.")
    _must_be_finite(values, "X", "Drop or impute them.")
    return np.asarray(values, dtype=np.float64)


def read_targets(y: Any) -> tuple[Array, list[str], bool]:
    """y as (n, d) float64, the outputs' names, and whether it was given as one column without an axis."""
    if y is None:
        raise DataError("y must be given; this regressor requires y to be passed, but the target y is None.")
    frame = nw.from_native(y, pass_through=True, allow_series=True)
    names = None
    if isinstance(frame, nw.DataFrame):
        names = list(frame.columns)
    elif isinstance(frame, nw.Series) and frame.name is not None:
        names = [str(frame.name)]
    native = frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else y
    try:
        values = np.asarray(native)
        if np.iscomplexobj(values):
            raise DataError("y must be real; got complex data. Complex data not supported: pass one part at a time.")
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataTypeError(f"y must be numeric; got {error}. Encode it as numbers.") from error
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(f"y must have shape (n,) or (n, d); got {values.shape}. Reshape it.")
    _must_be_finite(values.reshape(len(values), -1), "y", "Drop or impute them before fit.")
    alone = values.ndim == 1
    values = values.reshape(len(values), -1)
    default = ["y"] if alone else [f"y{i}" for i in range(values.shape[1])]
    return values, names or default, alone


def read_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights (n,) with mean one."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},); got {weights.shape}. Give one weight a row.")
    if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() == 0:
        raise DataError("sample_weight must be finite, not negative and not all zero; got others. Check the weights.")
    return np.asarray(weights / weights.mean())


def points_of(y: Any, n: int, names: Sequence[str], name: str) -> Array:
    """y as (..., n, d): a frame is matched by the outputs' names, one output needs no axis, one row is for all."""
    values, d = columns_of(y, names, name), len(names)
    if d == 1 and (values.ndim == 0 or not (values.ndim > 1 and values.shape[-2:] == (n, 1))):
        values = values[..., None]
    if values.ndim == 1:
        values = values[None]
    if values.shape[-1] != d or values.shape[-2] not in (n, 1):
        wanted = f"({n}, {d})" + (f" or ({n},)" if d == 1 else "")
        raise DataError(f"{name} must have shape {wanted} or that behind draw axes; got {np.shape(y)}. Reshape it.")
    gaps = int(np.isnan(values).sum())
    if gaps:
        raise DataError(f"{name} must be numbers; got NaN in {gaps} places. Drop those rows.")
    return np.broadcast_to(values, (*values.shape[:-2], n, d))


def columns_of(y: Any, names: Sequence[str], name: str) -> Array:
    """The values of an array, or of a frame's or series' columns in the order of `names`."""
    frame = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame):
        missing = [column for column in names if column not in frame.columns]
        if missing:
            raise DataError(f"{name} must have the columns {list(names)}; got no {missing[0]!r}. Rename its columns.")
        frame = frame.select(names)
    values = frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else y
    return np.asarray(values, dtype=np.float64)


def probabilities(q: ArrayLike, name: str = "q") -> Array:
    """Levels strictly between 0 and 1."""
    levels = np.asarray(q, dtype=np.float64)
    inside = (levels > 0.0) & (levels < 1.0)
    if not inside.all():
        raise DataError(
            f"{name} must lie strictly between 0 and 1; got {levels[~inside].flat[0]}. Use 0.5 for the median."
        )
    return levels


def seed_of(random_state: int | np.random.Generator | np.random.RandomState | None) -> int:
    """A seed for torch from whatever scikit-learn's users pass as random_state."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    return int(np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)[0] >> 2)


def _must_be_finite(values: Array, name: str, remedy: str) -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    bad = ~finite.all(axis=1)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    raise DataError(
        f"{name} must be finite; got {kind} in {int(bad.sum())} of {len(values)} rows "
        f"(first: row {int(bad.argmax())}). {remedy}"
    )
