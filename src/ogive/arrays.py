"""Reading what users give: arrays and frames of any kind, checked once, with errors that name the fact."""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from .errors import DataError, DataTypeError

__all__ = [
    "Array",
    "columns_of",
    "grid_axes",
    "output_place",
    "points_of",
    "probabilities",
    "read_features",
    "read_held_back",
    "read_targets",
    "read_weights",
    "seed_of",
]

Array = NDArray[np.float64]


def read_features(estimator: Any, X: Any, *, fitting: bool) -> Array:
    """X as (n, p) float64, with names and number of columns remembered in fitting and compared later."""
    try:
        values = validate_data(estimator, X, reset=fitting, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError, OverflowError) as error:
        kind = DataTypeError if isinstance(error, TypeError) else DataError
        wanted = "X must be a dense table (n, p) of real numbers, with the columns of fit"
        raise kind(f"{wanted}; got something else: {_fact(error)}. Pass such an array or frame.") from error
    _must_hold_numbers(X, "X")
    if fitting and len(values) < 2:
        raise DataError(f"X must have at least 2 rows; got 1 sample (n_samples = {len(values)}). Add rows.")
    _must_be_finite(values, "X", "Drop or impute them.")
    return np.asarray(values, dtype=np.float64)


def read_targets(y: Any) -> tuple[Array, list[str], bool]:
    """y as (n, d) float64, the outputs' names, and whether it was given as one column without an axis."""
    if y is None:
        fact = "None: this regressor requires y to be passed, but the target y is None"
        raise DataError(f"y must be given; got {fact}. Call fit(X, y).")
    if issparse(y):
        raise DataTypeError("y must be dense; got a sparse matrix. Pass y.toarray().")
    frame = _frame(y, "y")
    values = _real(frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else y, "y")
    if values.ndim not in (1, 2) or values.size == 0:
        raise DataError(f"y must have shape (n,) or (n, d); got {values.shape}. Reshape it.")
    alone = values.ndim == 1
    values = values.reshape(len(values), -1)
    _must_be_finite(values, "y", "Drop or impute them before fit.")
    names = ["y"] if alone else [f"y{i}" for i in range(values.shape[1])]
    if isinstance(frame, nw.DataFrame):
        names = [str(name) for name in frame.columns]
    elif isinstance(frame, nw.Series) and frame.name is not None:
        names = [str(frame.name)]
    return values, names, alone


def read_held_back(estimator: Any, eval_set: Any, names: Sequence[str]) -> tuple[Array, Array]:
    """X and y of a pair (X, y) as an estimator's features and targets of these names."""
    if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
        raise DataError(f"eval_set must be a pair (X, y); got {type(eval_set).__name__}. Write eval_set=(X, y).")
    features = read_features(estimator, eval_set[0], fitting=False)
    targets = read_targets(columns_of(eval_set[1], names, "y of eval_set"))[0]
    wanted = (len(features), len(names))
    if targets.shape != wanted:
        raise DataError(f"y of eval_set must have shape {wanted}; got {targets.shape}. Pair it with its X.")
    return features, targets


def read_weights(sample_weight: Any, n_rows: int, fewest: int = 1) -> Array:
    """Weights (n,), of which at least `fewest` are positive, and these have mean one."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = _real(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(f"sample_weight must have shape ({n_rows},); got {weights.shape}. Give one weight a row.")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any() or not weights.any():
        fact = f"{weights[bad][0]} in row {int(bad.argmax())}" if bad.any() else "zero for every row"
        raise DataError(f"sample_weight must be finite, not negative and not all zero; got {fact}. Check the weights.")
    if (weights > 0).sum() < fewest:
        raise DataError(f"sample_weight must be positive in at least {fewest} rows; got 1 such row. Weigh more rows.")
    weights = weights / weights.max()  # first, as the sum of large weights may leave the floats
    return np.asarray(weights / weights[weights > 0].mean())


def points_of(y: Any, n: int, names: Sequence[str], name: str) -> Array:
    """y as (..., n, d): a frame is matched by the outputs' names, one output needs no axis, one row is for all."""
    values, d = columns_of(y, names, name), len(names)
    if d == 1 and (values.ndim == 0 or not (values.ndim > 1 and values.shape[-2:] == (n, 1))):
        values = values[..., None]
    if values.ndim == 1:
        values = values[None]
    if values.ndim == 0 or values.shape[-1] != d or values.shape[-2] not in (n, 1):
        wanted = f"({n}, {d})" + (f" or ({n},)" if d == 1 else "")
        raise DataError(f"{name} must have shape {wanted} or that behind draw axes; got {np.shape(y)}. Reshape it.")
    gaps = int(np.isnan(values).sum())
    if gaps:
        raise DataError(f"{name} must be numbers; got NaN in {gaps} places. Drop those rows.")
    return np.broadcast_to(values, (*values.shape[:-2], n, d))


def grid_axes(axes: Sequence[ArrayLike], names: Sequence[str]) -> list[Array]:
    """The values (k,) at which a grid cuts each output."""
    if len(axes) != len(names):
        raise DataError(f"axes must be one for each of {list(names)}; got {len(axes)}. Pass an array for each output.")
    found = []
    for axis, output in zip(axes, names, strict=True):
        name = f"the axis of {output!r}"
        values = _real(axis, name)
        if values.ndim != 1 or not values.size:
            raise DataError(f"{name} must have shape (k,) with k of at least 1; got {values.shape}. Use np.linspace.")
        _must_be_finite(values[:, None], name, "Leave these nodes out.", "node")
        found.append(values)
    return found


def output_place(output: int | str, names: Sequence[str]) -> int:
    """The place of an output given by its name or its index, which may count from the end."""
    if isinstance(output, str):
        if output not in names:
            raise DataError(f"output must be one of {list(names)}; got {output!r}. Use its name or index.")
        return list(names).index(output)
    if not isinstance(output, Integral) or not -len(names) <= output < len(names):
        raise DataError(f"output must lie in 0..{len(names) - 1}; got {output!r}. Use its name or index.")
    return int(output) % len(names)


def columns_of(y: Any, names: Sequence[str], name: str) -> Array:
    """The values of an array, or of a frame's or series' columns in the order of `names`."""
    frame = _frame(y, name)
    if isinstance(frame, nw.DataFrame):
        columns = {str(column): column for column in frame.columns}
        missing = [column for column in names if column not in columns]
        if missing:
            raise DataError(f"{name} must have the columns {list(names)}; got no {missing[0]!r}. Rename its columns.")
        frame = frame.select([columns[column] for column in names])
    return _real(frame.to_numpy() if isinstance(frame, nw.DataFrame | nw.Series) else y, name)


def probabilities(q: ArrayLike, name: str = "q") -> Array:
    """Levels strictly between 0 and 1."""
    levels = _real(q, name)
    inside = (levels > 0.0) & (levels < 1.0)
    if not inside.all():
        raise DataError(
            f"{name} must lie strictly between 0 and 1; got {levels[~inside].flat[0]}. Use 0.5 for the median."
        )
    return levels


def seed_of(random_state: Any) -> int:
    """A seed for torch from whatever scikit-learn's users pass as random_state."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    if not isinstance(random_state, Integral) or random_state < 0:
        raise DataError(
            f"random_state must be None, a whole number from 0 or a generator; got {random_state!r}. Use 0."
        )
    return int(np.random.SeedSequence(int(random_state)).generate_state(1, np.uint64)[0] >> 2)


def _frame(y: Any, name: str) -> Any:
    """y as a frame or series whose columns can be told apart, or as it is if it is neither."""
    try:
        frame = nw.from_native(y, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"{name} must have different names for its outputs; got {list(y.columns)}. Rename.") from error
    if isinstance(frame, nw.LazyFrame):
        raise DataTypeError(f"{name} must be a table with its rows at hand; got a lazy frame. Collect it first.")
    if isinstance(frame, nw.DataFrame) and len({str(column) for column in frame.columns}) < len(frame.columns):
        raise DataError(f"{name} must have different names for its outputs; got {frame.columns}. Rename.")
    return frame


def _real(values: Any, name: str) -> Array:
    """Values as float64, whatever their shape."""
    try:
        found = np.asarray(values)
        if np.iscomplexobj(found):
            raise DataError(f"{name} must be real; got complex data. Complex data not supported: pass one part.")
        numbers = found.astype(np.float64)
        _must_hold_numbers(found, name)
        return numbers
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError | DataTypeError):
            raise
        raise DataTypeError(f"{name} must be numeric; got {_fact(error)}. Encode it as numbers.") from error


def _must_hold_numbers(values: Any, name: str) -> None:
    """Refuse text and dates, also where NumPy would turn them into numbers."""
    frame = nw.from_native(values, pass_through=True)
    columns = [column.to_numpy() for column in frame.iter_columns()] if isinstance(frame, nw.DataFrame) else [values]
    for column in map(np.asarray, columns):
        kind = column.dtype.kind
        if kind in "mM":
            raise DataTypeError(f"{name} must be numeric; got {column.dtype}. Encode it as numbers.")
        if kind in "US" or (kind == "O" and any(isinstance(value, str) for value in column.flat)):
            raise DataTypeError(f"{name} must be numeric; got text. Encode it as numbers.")


def _fact(error: Exception) -> str:
    """What another library's error says, without the data that it quotes."""
    said = re.sub(r" instead:\narray=.*?\.\n(?=Reshape)", ". ", str(error), flags=re.S)
    return said.partition("\n[")[0].strip().rstrip(".")


def _must_be_finite(values: Array, name: str, remedy: str, unit: str = "row") -> None:
    finite = np.isfinite(values)
    if finite.all():
        return
    bad = ~finite.all(axis=1)
    kind = "NaN" if np.isnan(values).any() else "infinity"
    raise DataError(
        f"{name} must be finite; got {kind} in {int(bad.sum())} of {len(values)} {unit}s "
        f"(first: {unit} {int(bad.argmax())}). {remedy}"
    )
