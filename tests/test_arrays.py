"""Reading what users give: every kind of array and frame, and one clear error for everything that is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from ogive import OgiveRegressor
from ogive.arrays import columns_of, points_of, probabilities, read_features, read_targets, read_weights, seed_of
from ogive.errors import DataError, DataTypeError

VALUES = [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]


@pytest.mark.parametrize(
    "X",
    [
        VALUES,
        np.array(VALUES),
        np.array(VALUES, dtype=np.float32),
        np.array(VALUES, dtype=int),
        np.array(VALUES, order="F")[::1],
        pd.DataFrame(VALUES),
        pd.DataFrame(VALUES, columns=["a", "b"]).astype({"a": "Int64", "b": "float32"}),
        pl.DataFrame(VALUES, schema=["a", "b"], orient="row"),
    ],
)
def test_features_of_every_kind(X):
    found = read_features(OgiveRegressor(), X, fitting=True)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, VALUES)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (
            [[np.nan, 1.0], [2.0, 3.0]],
            DataError,
            r"X must be finite; got NaN in 1 of 2 rows \(first: row 0\)\. ",
        ),
        ([[1.0, 1.0], [2.0, -np.inf]], DataError, r"X must be finite; got infinity in 1 of 2 rows \(first: row 1\)"),
        ([[1.0, 2.0]], DataError, "X must have at least 2 rows; got 1 sample"),
        (np.zeros((3, 0)), ValueError, "0 feature"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D array"),
        (np.zeros((2, 2, 2)), ValueError, "dim 3"),
        ([["a", "b"], ["c", "d"]], ValueError, "could not convert string to float"),
        (scipy.sparse.csr_matrix(np.eye(3)), TypeError, "[Ss]parse"),
    ],
)
def test_features_that_cannot_be_used(X, error, message):
    with pytest.raises(error, match=message):
        read_features(OgiveRegressor(), X, fitting=True)


@pytest.mark.parametrize(
    ("y", "names", "alone"),
    [
        ([1, 2, 3], ["y"], True),
        (np.array([1, 2, 3], dtype=np.uint8), ["y"], True),
        (np.array([True, False, True]), ["y"], True),
        (pd.Series([1.0, 2.0, 3.0]), ["y"], True),
        (pd.Series([1.0, 2.0, 3.0], name="size"), ["size"], True),
        (pd.Series([1.0, 2.0, 3.0], name=7), ["7"], True),
        (pd.Series([1, 2, 3], dtype="Int64", name="size"), ["size"], True),
        (pl.Series("size", [1.0, 2.0, 3.0]), ["size"], True),
        (np.ones((3, 1)), ["y0"], False),
        (VALUES, ["y0", "y1"], False),
        (pd.DataFrame(VALUES, columns=["a", "b"]), ["a", "b"], False),
        (pl.DataFrame(VALUES, schema=["a", "b"], orient="row"), ["a", "b"], False),
        (pd.DataFrame(VALUES), ["0", "1"], False),
    ],
)
def test_targets_of_every_kind(y, names, alone):
    values, found, one_column = read_targets(y)
    assert values.shape == (3, len(names)) and values.dtype == np.float64
    assert found == names and all(type(name) is str for name in found)
    assert one_column is alone


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (None, DataError, "y must be given; .*requires y to be passed"),
        (
            [1.0, np.nan, np.nan],
            DataError,
            r"y must be finite; got NaN in 2 of 3 rows \(first: row 1\)\. Drop",
        ),
        ([[1.0, 2.0], [np.inf, 1.0]], DataError, r"y must be finite; got infinity in 1 of 2 rows \(first: row 1\)"),
        (np.ones((2, 2, 2)), DataError, r"y must have shape \(n,\) or \(n, d\); got \(2, 2, 2\)\. Reshape it\."),
        (np.ones((3, 0)), DataError, r"y must have shape \(n,\) or \(n, d\); got \(3, 0\)"),
        (5.0, DataError, r"y must have shape \(n,\) or \(n, d\); got \(\)"),
        ([1.0 + 2.0j, 3.0], DataError, "y must be real; got complex data"),
        (["a", "b"], DataTypeError, "y must be numeric; got .*Encode it as numbers"),
        ([object(), object()], DataTypeError, "y must be numeric; got "),
        (pd.Series(["a", "b"]), DataTypeError, "y must be numeric; got "),
        (pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"])), DataTypeError, "y must be numeric; got "),
        ([[1.0], [1.0, 2.0]], DataTypeError, "y must be numeric; got "),
        (pd.DataFrame(VALUES, columns=["a", "a"]), DataError, r"y must have different names for its outputs; got "),
    ],
)
def test_targets_that_cannot_be_used(y, error, message):
    with pytest.raises(error, match=message):
        read_targets(y)


def test_weights_have_mean_one():
    np.testing.assert_array_equal(read_weights(None, 3), [1.0, 1.0, 1.0])
    np.testing.assert_allclose(read_weights([0, 1, 5], 3), [0.0, 1 / 3, 5 / 3])
    np.testing.assert_allclose(read_weights(7.0, 2), [1.0, 1.0])
    np.testing.assert_allclose(read_weights(pd.Series([1e-300, 3e-300]), 2), [0.5, 1.5])
    np.testing.assert_allclose(read_weights([1e308, 1e308, 1e308], 3), 1.0)


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ([1.0, 2.0], DataError, r"sample_weight must have shape \(3,\); got \(2,\)\. Give one weight a row\."),
        (np.ones((3, 1)), DataError, r"sample_weight must have shape \(3,\); got \(3, 1\)"),
        ([1.0, -1.0, 1.0], DataError, "sample_weight must be finite, not negative and not all zero; got "),
        ([1.0, np.nan, 1.0], DataError, "sample_weight must be finite"),
        ([1.0, np.inf, 1.0], DataError, "sample_weight must be finite"),
        ([0.0, 0.0, 0.0], DataError, "sample_weight must be finite, not negative and not all zero"),
        (["a", "b", "c"], DataTypeError, "sample_weight must be numeric; got "),
    ],
)
def test_weights_that_cannot_be_used(weight, error, message):
    with pytest.raises(error, match=message):
        read_weights(weight, 3)


def test_columns_are_taken_by_name():
    for kind in (pd.DataFrame, pl.DataFrame):
        frame = kind({"b": [1.0, 2.0], "other": [0.0, 0.0], "a": [3.0, 4.0]})
        np.testing.assert_array_equal(columns_of(frame, ["a", "b"], "y"), [[3.0, 1.0], [4.0, 2.0]])
        with pytest.raises(DataError, match=r"y must have the columns \['a', 'c'\]; got no 'c'\. Rename its columns\."):
            columns_of(frame, ["a", "c"], "y")


def test_complex_columns_are_refused():
    with pytest.raises(DataError, match="y must be real; got complex data"):
        columns_of([1 + 2j, 3], ["y"], "y")


@pytest.mark.parametrize("y", [["a", "b"], pd.Series(["a", "b"]), object(), np.array(["2026-01-01"], "datetime64[D]")])
def test_columns_that_are_no_numbers(y):
    with pytest.raises(DataTypeError, match="y must be numeric; got "):
        columns_of(y, ["y"], "y")


@pytest.mark.parametrize(
    ("y", "n", "d", "shape"),
    [
        (0.5, 3, 1, (3, 1)),
        ([1, 2, 3], 3, 1, (3, 1)),
        (np.ones((3, 1)), 3, 1, (3, 1)),
        (np.ones((4, 3)), 3, 1, (4, 3, 1)),
        (np.ones((4, 3, 1)), 3, 1, (4, 3, 1)),
        (np.ones((4, 1)), 1, 1, (4, 1, 1)),
        (np.ones((1, 1)), 1, 1, (1, 1)),
        ([1, 2], 3, 2, (3, 2)),
        (np.ones((3, 2)), 3, 2, (3, 2)),
        (np.ones((1, 2)), 3, 2, (3, 2)),
        (np.ones((5, 4, 3, 2)), 3, 2, (5, 4, 3, 2)),
        (np.ones((5, 1, 2)), 3, 2, (5, 3, 2)),
        (np.empty((0, 2)), 0, 2, (0, 2)),
    ],
)
def test_points_take_the_shape_of_the_prediction(y, n, d, shape):
    assert points_of(y, n, [f"y{i}" for i in range(d)], "y").shape == shape


@pytest.mark.parametrize(
    ("y", "n", "d", "message"),
    [
        ([1, 2], 3, 1, r"y must have shape \(3, 1\) or \(3,\) or that behind draw axes; got \(2,\)\. Reshape it\."),
        (np.ones((3, 2)), 3, 1, "y must have shape"),
        (np.ones((2, 2)), 3, 2, r"y must have shape \(3, 2\) or that behind draw axes; got \(2, 2\)"),
        (0.5, 3, 2, r"y must have shape \(3, 2\)"),
        ([np.nan, 1.0, np.nan], 3, 1, r"y must be numbers; got NaN in 2 places\. Drop those rows\."),
    ],
)
def test_points_that_do_not_fit(y, n, d, message):
    with pytest.raises(DataError, match=message):
        points_of(y, n, [f"y{i}" for i in range(d)], "y")


def test_probabilities_lie_strictly_inside():
    np.testing.assert_array_equal(probabilities([1e-300, 0.5, 1 - 1e-16]), [1e-300, 0.5, 1 - 1e-16])
    assert probabilities(0.3).shape == () and probabilities([]).shape == (0,)
    for bad in (0.0, 1.0, -0.1, np.nan, [0.5, 1.5]):
        with pytest.raises(DataError, match=r"q must lie strictly between 0 and 1; got .*\. Use 0\.5 for the median\."):
            probabilities(bad)
    with pytest.raises(DataTypeError, match="q must be numeric; got "):
        probabilities("a")


def test_seeds_of_every_kind():
    assert seed_of(3) == seed_of(np.int64(3)) != seed_of(4)
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1)) != seed_of(np.random.default_rng(2))
    assert seed_of(np.random.RandomState(1)) == seed_of(np.random.RandomState(1)) != seed_of(np.random.RandomState(2))
    assert seed_of(None) != seed_of(None)
    generator = np.random.default_rng(1)
    assert seed_of(generator) != seed_of(generator)  # a generator moves on


@given(st.integers(0, 2**64))
def test_any_whole_number_is_a_seed(seed):
    assert 0 <= seed_of(seed) < 2**63


@pytest.mark.parametrize("seed", [-1, 1.5, "a", [1, 2]])
def test_seeds_that_are_none(seed):
    with pytest.raises(DataError, match="random_state must be None, a whole number from 0 or a generator; got "):
        seed_of(seed)
