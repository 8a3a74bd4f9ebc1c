"""Whatever is wrong with what a user gives: one clear error before any training, and no half-fitted model."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ogive import OgiveRegressor
from ogive.errors import DataError, DataTypeError, NumericalError

TINY: dict[str, Any] = {
    "n_members": 2,
    "hidden": (8,),
    "groups": 2,
    "units": 2,
    "max_epochs": 2,
    "batch_size": 32,
    "random_state": 0,
}
N = 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X[:, 0] + RNG.normal(size=N)
X.flags.writeable = Y.flags.writeable = False
DATES = np.full(N, "2026-01-01", dtype="datetime64[D]")

# <name> must <requirement>; got <fact>. <One thing to do.>
FORM = re.compile(r"[\w' ]+ must .+; got .+\. [A-Z].+\.", re.S)
LONGEST = 600  # an error names the fact and does not print the table


def tiny(**changes: Any) -> OgiveRegressor:
    return OgiveRegressor(**(TINY | changes))


def changed(values: np.ndarray, place: Any, value: float) -> np.ndarray:
    found = values.copy()
    found[place] = value
    return found


def refused(call: Callable[[], Any], match: str) -> None:
    """One clear error, of the library and of the kind that Python's users expect."""
    with pytest.raises((ValueError, TypeError), match=match) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, DataError | DataTypeError), message
    assert FORM.fullmatch(message), message
    assert len(message) < LONGEST, message


@pytest.fixture(scope="module")
def fitted() -> dict[str, OgiveRegressor]:
    """Models of one output from an array, of one from a frame, and of two."""
    frame = pd.DataFrame(X, columns=["a", "b"])
    return {
        "array": tiny().fit(X, Y),
        "frame": tiny().fit(frame, Y),
        "two": tiny().fit(X, pd.DataFrame({"u": Y, "v": -Y})),
    }


def began(*_: Any, **__: Any) -> None:
    raise AssertionError("training began")


@pytest.fixture(scope="module")
def no_gradients(fitted) -> Callable[[], Any]:
    """A context in which nothing can be learnt; torch must have loaded its parts, by a first fit, before."""

    @contextmanager
    def blocked() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for place, name in ((torch.autograd, "grad"), (torch.autograd, "backward"), (torch.Tensor, "backward")):
                patch.setattr(place, name, began)
            yield

    return blocked


@pytest.fixture
def no_training(no_gradients) -> Iterator[None]:
    with no_gradients():
        yield


def refused_and_unchanged(model: OgiveRegressor, match: str, *table: Any, **more: Any) -> None:
    """A fitted model that refuses a fit stays as it was, and an unfitted one unfitted."""
    fresh = OgiveRegressor(**model.get_params())
    before, bare = dict(vars(model)), dict(vars(fresh))
    expected = model.predict(X)
    for one in (model, fresh):
        refused(lambda one=one: one.fit(*table, **more), match)
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
    assert vars(fresh) == bare
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.raises(NotFittedError):
        check_is_fitted(fresh)


def test_without_an_error_training_would_begin(no_training):
    with pytest.raises(AssertionError, match="training began"):
        tiny().fit(X, Y)


# --- X and y

TABLES: dict[str, tuple[Any, Any, str]] = {
    "NaN in X": (changed(X, (3, 1), np.nan), Y, r"^X must be finite; got NaN in 1 of 20 rows \(first: row 3\)"),
    "infinity in X": (changed(X, 4, -np.inf), Y, r"^X must be finite; got infinity in 1 of 20 rows \(first: row 4\)"),
    "NaN in y": (X, changed(Y, [7, 9], np.nan), r"^y must be finite; got NaN in 2 of 20 rows \(first: row 7\)"),
    "infinity in y": (X, changed(Y, 0, np.inf), r"^y must be finite; got infinity in 1 of 20 rows \(first: row 0\)"),
    "a gap in a frame": (pl.DataFrame({"a": [None] + [1.0] * 19}), Y, r"^X must be finite; got NaN in 1 of 20 rows"),
    "NA in a frame": (pd.DataFrame({"a": pd.array([None] + [1] * 19, "Int64")}), Y, "^X must be finite; got NaN in 1 "),
    "y too short": (X, Y[:-1], r"^X and y must have one length; got 20 and 19 rows\. Pair them up\."),
    "X too short": (X[:5], Y, r"^X and y must have one length; got 5 and 20 rows"),
    "no rows": (X[:0], Y[:0], r"^X must .*; got .*0 sample"),
    "no rows at all": ([], [], "^X must .*; got .*1D"),
    "y without rows": (X, [], r"^y must have shape \(n,\) or \(n, d\); got \(0,\)\. Reshape it\."),
    "one row": (X[:1], Y[:1], r"^X must have at least 2 rows; got 1 sample \(n_samples = 1\)\. Add rows\."),
    "X without columns": (X[:, :0], Y, "^X must .*; got .*0 feature"),
    "y without columns": (X, np.ones((N, 0)), r"^y must have shape \(n,\) or \(n, d\); got \(20, 0\)\. Reshape it\."),
    "X of one axis": (X[:, 0], Y, "^X must .*; got .*1D"),
    "a series for X": (pd.Series(Y), Y, "^X must .*; got .*Series"),
    "X of three axes": (X[None], Y, "^X must .*; got .*dim 3"),
    "y of three axes": (X, Y[:, None, None], r"^y must have shape \(n,\) or \(n, d\); got \(20, 1, 1\)\. Reshape it\."),
    "a number for X": (3.0, Y, "^X must .*; got .*scalar"),
    "a number for y": (X, 3.0, r"^y must have shape \(n,\) or \(n, d\); got \(\)"),
    "no X": (None, Y, "^X must "),
    "no y": (X, None, "^y must be given; got .*requires y to be passed"),
    "words in X": (np.full((N, 2), "a"), Y, "^X must .*; got .*could not convert string to float"),
    "a column of words": (pd.DataFrame({"a": ["x"] * N, "b": Y}), Y, "^X must .*; got .*could not convert string"),
    "words in polars": (pl.DataFrame({"a": ["x"] * N}), Y, "^X must .*; got .*could not convert string"),
    "categories": (pd.DataFrame({"a": pd.Categorical(["u", "v"] * 10)}), Y, "^X must .*; got .*could not convert"),
    "digits as text in X": (X.astype(str), Y, "^X must be numeric; got text"),
    "digits as text in a frame": (pd.DataFrame({"a": ["1"] * N, "b": Y}), Y, "^X must be numeric; got text"),
    "dates in X": (DATES[:, None], Y, "^X must be numeric; got datetime64"),
    "dates in a frame": (pd.DataFrame({"a": DATES.astype("datetime64[ns]")}), Y, "^X must be numeric; got datetime64"),
    "words in y": (X, ["a"] * N, r"^y must be numeric; got .*Encode it as numbers\."),
    "digits as text in y": (X, Y.astype(str), "^y must be numeric; got text"),
    "dates in y": (X, DATES, r"^y must be numeric; got datetime64.*\. Encode it as numbers\."),
    "sparse X": (scipy.sparse.csr_matrix(X), Y, "^X must .*; got .*[Ss]parse"),
    "sparse array X": (scipy.sparse.coo_array(X), Y, "^X must .*; got .*[Ss]parse"),
    "sparse y": (X, scipy.sparse.csr_matrix(Y[:, None]), "^y must .*; got .*[Ss]parse"),
    "complex X": (X + 1j, Y, "^X must .*; got .*[Cc]omplex"),
    "complex y": (X, Y + 1j, "^y must be real; got complex data"),
    "ragged X": ([[1.0, 2.0], [3.0]] * 10, Y, "^X must .*; got .*inhomogeneous"),
    "ragged y": (X, [[1.0, 2.0], [3.0]] * 10, "^y must be numeric; got .*inhomogeneous"),
    "a mapping for X": ({"a": Y}, Y, "^X must "),
    "an object for X": (object(), Y, "^X must "),
    "an object for y": (X, object(), "^y must be numeric; got "),
    "a lazy frame for X": (pl.DataFrame(X).lazy(), Y, "^X must "),
    "a lazy frame for y": (X, pl.DataFrame(Y[:, None]).lazy(), r"^y must .* got a lazy frame\. Collect it first\."),
    "numbers too large for X": (np.full((N, 1), 10**400, dtype=object), Y, "^X must "),
    "numbers too large for y": (X, [10**400] * N, "^y must "),
    "two columns of one name in X": (pd.DataFrame(X, columns=["a", "a"]), Y, "^X must "),
    "two columns of one name in y": (X, pd.DataFrame(X, columns=["a", "a"]), "^y must have different names"),
    "two names alike in y": (X, pd.DataFrame(X, columns=[1, "1"]), "^y must have different names"),
    "names of two types": (pd.DataFrame({"a": Y, 1: Y}), Y, "^X must .*; got .*[Ff]eature names"),
}


@pytest.mark.parametrize(("features", "targets", "match"), TABLES.values(), ids=TABLES)
def test_a_wrong_table_is_refused_before_training(features, targets, match, fitted, no_training):
    refused_and_unchanged(fitted["array"], match, features, targets)


# --- weights and held-back rows


@pytest.mark.parametrize(
    ("weight", "match"),
    [
        (changed(np.ones(N), 2, -1.0), r"not negative and not all zero; got -1\.0 in row 2\. Check the weights\."),
        (changed(np.ones(N), 3, np.nan), "be finite, not negative and not all zero; got nan in row 3"),
        (changed(np.ones(N), 4, np.inf), "be finite, not negative and not all zero; got inf in row 4"),
        (np.zeros(N), r"not all zero; got zero for every row\. Check the weights\."),
        (0.0, "not all zero; got zero for every row"),
        (-1.0, "not negative"),
        (np.ones(N - 1), r"have shape \(20,\); got \(19,\)\. Give one weight a row\."),
        (np.ones((N, 1)), r"have shape \(20,\); got \(20, 1\)"),
        ([], r"have shape \(20,\); got \(0,\)"),
        (np.eye(N)[0], r"be positive in at least 2 rows; got 1 such row\. Weigh more rows\."),
        (["a"] * N, r"be numeric; got .*\. Encode it as numbers\."),
        ("uniform", "be numeric; got "),
        (np.ones(N) + 1j, "be real; got complex data"),
    ],
)
def test_wrong_weights_are_refused_before_training(weight, match, fitted, no_training):
    refused_and_unchanged(fitted["array"], f"^sample_weight must .*{match}", X, Y, sample_weight=weight)


@pytest.mark.parametrize(
    ("held_back", "match"),
    [
        (X, r"^eval_set must be a pair \(X, y\); got ndarray\. Write eval_set=\(X, y\)\."),
        ((X,), r"^eval_set must be a pair \(X, y\); got tuple"),
        ((X, Y, Y), r"^eval_set must be a pair \(X, y\); got tuple"),
        ("XY", r"^eval_set must be a pair \(X, y\); got str"),
        ({"X": X, "y": Y}, r"^eval_set must be a pair \(X, y\); got dict"),
        (5, r"^eval_set must be a pair \(X, y\); got int"),
        ((X, Y[:-1]), r"^y of eval_set must have shape \(20, 1\); got \(19, 1\)\. Pair it with its X\."),
        ((X, np.stack([Y, Y], 1)), r"^y of eval_set must have shape \(20, 1\); got \(20, 2\)"),
        ((X, None), "^y.* must "),
        ((X, ["a"] * N), r"^y of eval_set must be numeric; got .*\. Encode it as numbers\."),
        ((X, changed(Y, 5, np.nan)), r"^y.* must be finite; got NaN in 1 of 20 rows \(first: row 5\)"),
        ((changed(X, 5, np.inf), Y), r"^X.* must be finite; got infinity in 1 of 20 rows \(first: row 5\)"),
        ((X[:, :1], Y), "^X.* must .*; got .*X has 1 features, but OgiveRegressor is expecting 2 features"),
        ((X[:0], Y[:0]), "^X.* must .*; got .*0 sample"),
        ((scipy.sparse.csr_matrix(X), Y), "^X.* must .*; got .*[Ss]parse"),
    ],
)
def test_wrong_held_back_rows_are_refused_before_training(held_back, match, fitted, no_training):
    refused_and_unchanged(fitted["array"], match, X, Y, eval_set=held_back)


def test_held_back_rows_have_the_columns_of_the_training_rows(no_training):
    frame, y = pd.DataFrame(X, columns=["a", "b"]), pd.DataFrame({"u": Y, "v": -Y})
    turned = frame[["b", "a"]]
    refused(lambda: tiny().fit(frame, y, eval_set=(turned, y)), "(?s)^X.* must .*; got .*must be in the same order")
    refused(lambda: tiny().fit(frame, y, eval_set=(frame, y[["u"]])), "^y of eval_set must have the columns .*no 'v'")


def test_held_back_rows_lie_in_the_support(no_training):
    low = [(float(Y.min()), None)]
    refused(lambda: tiny(support=low).fit(X, Y, eval_set=(X, Y - 50.0)), "^y.* must lie in its support; got ")


# --- parameters

NAN, INF = float("nan"), float("inf")
WHOLE = [0, -1, 1.5, "3", NAN, [2]]
POSITIVE = [0, -1.0, NAN, INF, "a", None]
PARAMETERS: dict[str, list[Any]] = {
    **{name: [*WHOLE, None] for name in ("n_members", "groups", "units", "batch_size")},
    **{name: WHOLE for name in ("max_epochs", "patience")},
    **{name: POSITIVE for name in ("learning_rate", "delta")},
    "hidden": [(), (0,), (8, -1), (8.5,), "ab", 8],
    "order": ["reverse", (1,), (0, 0), 3, None],
    "support": [
        "negative",
        3,
        [(0, 1, 2)],
        [(5, 0)],
        [(1, 1)],
        (0, 1),
        [("a", None)],
        [(NAN, None)],
        [(None, None)] * 2,
    ],
    "noise": ["yes", 2, None, [], ["auto"], NAN],
    "dropout": [-0.1, 1.0, "a", None, [], NAN, [0.1, 2.0]],
    "validation_fraction": [0.0, 1.0, -0.1, NAN, "a", None],
    "weight_decay": [-1, NAN, INF, "a", None],
    "derivative": ["numeric", None, 3],
    "architecture": [3, "a", [("units", 3)], {"nothing": 1}, {"kind": "none"}, {"layers": ()}, {"units": 0}],
    "device": ["tpu", 3, None, "cpu:x", "cuda:99"],
    "n_jobs": [0, 1.5, "a"],
    "verbose": [-1, "a", 1.5, None],
    "random_state": [-1, 1.5, "a", [1]],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in PARAMETERS.items() for value in values])
def test_a_wrong_parameter_is_refused_before_training(name, value, fitted, no_training):
    model = copy.copy(fitted["array"]).set_params(**{name: value})
    refused_and_unchanged(model, f"^{name} must ", X, Y)


def test_every_parameter_is_checked():
    assert set(OgiveRegressor().get_params()) == set(PARAMETERS)


@pytest.mark.parametrize(
    ("support", "match"),
    [
        ("positive", r"^y must lie in its support; got \d+ rows outside \(0\.0, None\)\. Widen it\."),
        ([(None, 0.0)], r"^y must lie in its support; got \d+ rows outside \(None, 0\.0\)"),
    ],
)
def test_outputs_outside_their_support_are_refused_before_training(support, match, fitted, no_training):
    refused_and_unchanged(copy.copy(fitted["array"]).set_params(support=support), match, X, Y)


# --- questions


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (X[:, :1], "X has 1 features, but OgiveRegressor is expecting 2 features as input"),
        (np.ones((3, 3)), "X has 3 features, but OgiveRegressor is expecting 2 features as input"),
        (X[0], "1D.*Reshape your data"),
        (X[None], "dim 3"),
        (X[:0], "0 sample"),
        (changed(X, 1, np.nan), r"got NaN in 1 of 20 rows \(first: row 1\)"),
        (changed(X, 1, np.inf), r"got infinity in 1 of 20 rows \(first: row 1\)"),
        (np.full((N, 2), "a"), "could not convert string to float"),
        (X.astype(str), "numeric; got text"),
        (scipy.sparse.csr_matrix(X), "[Ss]parse"),
        (X + 1j, "[Cc]omplex"),
        (None, ""),
    ],
)
def test_wrong_rows_are_refused_by_every_question(rows, match, fitted):
    model = fitted["array"]
    for ask in (
        model.predict,
        model.predict_dist,
        model.sample,
        model.predict_interval,
        lambda X: model.predict_quantiles(X, 0.5),
        lambda X: model.score(X, Y),
    ):
        refused(lambda ask=ask: ask(rows), f"(?s)^X must .*{match}")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        (["b", "a"], "Feature names must be in the same order as they were in fit"),
        (["a", "c"], "Feature names unseen at fit time:\n- c\nFeature names seen at fit time, yet now missing:\n- b"),
        (["a"], "yet now missing:\n- b"),
        (["a", "b", "c"], "unseen at fit time:\n- c"),
    ],
)
def test_columns_are_compared_with_those_of_the_fit(kind, columns, match, fitted):
    rows = kind({name: Y for name in columns})
    refused(lambda: fitted["frame"].predict(rows), f"(?s)^X must .*{match}")


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.5, NAN, [0.5, 1.0], "a", None, [0.5, None]])
def test_levels_lie_between_nought_and_one(q, fitted):
    for model in fitted.values():
        rows = pd.DataFrame(X, columns=["a", "b"]) if hasattr(model, "feature_names_in_") else X
        refused(lambda model=model, rows=rows: model.predict_quantiles(rows, q), r"^q must ")


@pytest.mark.parametrize("coverage", [0, 1, 90, -0.5, NAN, "a", None, [0.5, 0.9], True])
def test_a_coverage_lies_between_nought_and_one(coverage, fitted):
    refused(lambda: fitted["two"].predict_interval(X, coverage), r"^coverage must lie strictly between 0 and 1; got ")


@pytest.mark.parametrize("point", ["average", "Mean", None, 3, ["mean"], ""])
def test_a_point_is_one_of_three(point, fitted):
    refused(
        lambda: fitted["two"].predict(X, point=point), r"^point must be 'mean', 'median' or 'mode'; got .* Use 'mean'"
    )


@pytest.mark.parametrize("size", [-1, 1.5, "a", None, [3]])
def test_a_number_of_draws_is_whole(size, fitted):
    refused(lambda: fitted["array"].sample(X, size), r"^(n_samples|size) must be a whole number")


@pytest.mark.parametrize("seed", [-1, 1.5, "a", [1]])
def test_a_seed_of_draws_is_a_seed(seed, fitted):
    refused(
        lambda: fitted["array"].sample(X, 2, random_state=seed), "^random_state must be None, a whole number from 0"
    )


@pytest.mark.parametrize(
    ("name", "y", "weight", "match"),
    [
        ("array", Y[:-1], None, r"^y must have shape \(20, 1\) or \(20,\)"),
        ("two", Y, None, r"^y must have shape \(20, 2\)"),
        ("two", pd.DataFrame({"u": Y}), None, r"^y must have the columns \['u', 'v'\]; got no 'v'"),
        ("two", np.zeros((3, N, 2)), None, "^y must "),
        ("array", np.zeros((3, N, 1)), None, "^y must "),
        ("array", changed(Y, 2, np.nan), None, "^y must be numbers; got NaN in 1 places"),
        ("array", ["a"] * N, None, "^y must be numeric; got "),
        ("two", None, None, "^y must "),
        ("array", Y, -np.ones(N), "^sample_weight must be finite, not negative"),
        (
            "array",
            Y,
            np.zeros(N),
            "^sample_weight must be finite, not negative and not all zero; got zero for every row",
        ),
        ("array", Y, np.ones(3), r"^sample_weight must have shape \(20,\); got \(3,\)"),
    ],
)
def test_a_score_needs_a_y_and_a_weight_for_each_row(name, y, weight, match, fitted):
    refused(lambda: fitted[name].score(X, y, sample_weight=weight), match)


# --- all or nothing


@pytest.mark.parametrize("failure", ["no number", "interrupt"])
def test_a_fit_that_fails_on_its_way_leaves_the_model_as_it_was(failure, fitted, monkeypatch):
    if failure == "no number":
        changes, error, match = (
            {"learning_rate": 1e38},
            NumericalError,
            r"must be a number; got NaN .* Lower learning_rate",
        )
    else:

        def fail(*_: Any, **__: Any) -> None:
            raise MemoryError("out of memory")

        changes, error, match = {}, MemoryError, "out of memory"
        monkeypatch.setattr(torch.autograd, "grad", fail)
    model = copy.copy(fitted["frame"]).set_params(**changes)
    before = dict(vars(model))
    with pytest.raises(error, match=match):
        model.fit(pd.DataFrame(X[:, ::-1], columns=["c", "d"]), np.stack([Y, Y], 1))
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
    assert list(model.feature_names_in_) == ["a", "b"] and model.n_outputs_ == 1
    fresh = tiny(**changes)
    with pytest.raises(error, match=match):
        fresh.fit(X, Y)
    assert [name for name in vars(fresh) if name.endswith("_")] == []


# --- whatever users come up with

NUMBERS = st.floats(-1e300, 1e300)


@st.composite
def good_tables(draw: st.DrawFn) -> dict[str, Any]:
    """A table that can be fitted, of random size and scale, in one of the usual kinds."""
    n, p, d = draw(st.integers(2, 8)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    seed, scale = draw(st.integers(0, 99)), draw(st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e290]))
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, p)) * scale, rng.normal(size=(n, d) if d else n) / scale
    kind = draw(st.sampled_from([np.asarray, pd.DataFrame, pl.DataFrame, np.ndarray.tolist, np.asfortranarray]))
    names = {"columns": [f"x {j}" for j in range(p)]} if kind is pd.DataFrame else {}
    weight = draw(st.sampled_from([None, rng.uniform(0.1, 1.0, n), rng.uniform(0.1, 1.0, n) * 1e300]))
    return {"X": kind(X, **names), "y": y, "sample_weight": weight}


@settings(max_examples=30)
@given(good_tables())
def test_any_good_table_is_fitted(table):
    model = tiny(max_epochs=1).fit(**table)
    predicted = model.predict(table["X"], point="median")
    assert predicted.shape == table["y"].shape and np.isfinite(predicted).all()
    assert not np.isnan(model.score(**table))


SPOILS: dict[str, Callable[[dict[str, Any], int], dict[str, Any]]] = {
    "NaN in X": lambda t, k: t | {"X": changed(t["X"], k % len(t["X"]), np.nan)},
    "infinity in X": lambda t, k: t | {"X": changed(t["X"], (0, k % t["X"].shape[1]), -np.inf)},
    "NaN in y": lambda t, k: t | {"y": changed(t["y"], k % len(t["y"]), np.nan)},
    "infinity in y": lambda t, k: t | {"y": changed(t["y"], k % len(t["y"]), np.inf)},
    "rows of y": lambda t, k: t | {"y": t["y"][: k % len(t["y"])]},
    "rows of X": lambda t, k: t | {"X": t["X"][: k % len(t["X"])]},
    "an axis of X": lambda t, k: t | {"X": t["X"][..., None] if k % 2 else t["X"][:, 0]},
    "axes of y": lambda t, k: t | {"y": t["y"].reshape(len(t["y"]), -1, 1)},
    "a complex X": lambda t, k: t | {"X": t["X"] * (1 + 1j)},
    "a complex y": lambda t, k: t | {"y": t["y"] * (1 + 1j)},
    "words": lambda t, k: t | {["X", "y"][k % 2]: np.full(t[["X", "y"][k % 2]].shape, "word")},
    "a negative weight": lambda t, k: t | {"sample_weight": changed(np.ones(len(t["y"])), k % len(t["y"]), -1e-9)},
    "a weight too many": lambda t, k: t | {"sample_weight": np.ones(len(t["y"]) + 1 + k)},
}


@settings(max_examples=60)
@given(table=good_tables(), spoil=st.sampled_from(sorted(SPOILS)), k=st.integers(0, 20))
def test_any_table_spoilt_is_refused_before_training(no_gradients, table, spoil, k):
    table["X"] = np.asarray(table["X"])
    model = tiny()
    with no_gradients():
        refused(lambda: model.fit(**SPOILS[spoil](table, k)), "^(X|y|X and y|sample_weight) must ")
    assert vars(model) == vars(tiny())


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(PARAMETERS)),
    value=st.one_of(
        st.floats(max_value=-1e-9), st.just(NAN), st.text(max_size=3), st.complex_numbers(), st.just(object()),
        st.dictionaries(st.text(max_size=2), st.integers(), min_size=1, max_size=2),
    ),
)  # fmt: skip
def test_any_parameter_gone_wrong_is_refused_before_training(no_gradients, name, value):
    """None of these values is right for any parameter."""
    with no_gradients():
        refused(lambda: tiny(**{name: value}).fit(X, Y), f"^{name} must ")
