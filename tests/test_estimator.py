"""The estimator as scikit-learn, NumPy and data frames meet it: its contract, its shapes, and what a seed decides."""

from __future__ import annotations

import copy
import doctest
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ogive
from ogive import OgiveRegressor, estimator, prediction, storage
from ogive.choices import threads_of
from ogive.errors import FileFormatError

TINY: dict[str, Any] = {
    "n_members": 2,
    "hidden": (8,),
    "groups": 2,
    "units": 2,
    "max_epochs": 3,
    "batch_size": 32,
    "random_state": 0,
}
NARROW_PAPER = {"layers": (2, 2, 1), "conditions": (2, 2, 2), "hidden": None, "norm": True}
LEVELS = [0.05, 0.5, 0.95]


def tiny(**changes: Any) -> OgiveRegressor:
    return OgiveRegressor(**(TINY | changes))


def tiny_paper() -> OgiveRegressor:
    return OgiveRegressor.paper(groups=2, units=2, max_epochs=2, random_state=0, architecture=NARROW_PAPER)


def table(n: int = 60, d: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two features, and y (n,) or (n, d) that follows the first of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = X[:, :1] + rng.normal(size=(n, d or 1)) + 5.0
    return X, y if d else y[:, 0]


def answers(model: OgiveRegressor, X: Any) -> dict[str, np.ndarray]:
    """Every public answer, as arrays that can be compared to the bit."""
    law = model.predict_dist(X)
    found = {point: model.predict(X, point=point) for point in ("mean", "median", "mode")}
    found |= {"quantiles": model.predict_quantiles(X, LEVELS), "interval": model.predict_interval(X)}
    found["draws"] = model.sample(X, 3, random_state=0)
    found |= {"logpdf": law.logpdf(found["median"]), "crps": law.crps(found["median"]), "std": law.std()}
    return found


def same(a: OgiveRegressor, b: OgiveRegressor, X: Any) -> bool:
    """Whether two models answer alike to the bit."""
    found, other = answers(a, X[:8]), answers(b, X[:8])
    return all(np.array_equal(values, other[name]) for name, values in found.items())


@pytest.fixture(scope="module")
def fitted() -> dict[str, OgiveRegressor]:
    """Models that several tests ask and none changes."""
    X, y = table()
    return {"one": tiny().fit(X, y), "two": tiny().fit(*table(d=2)), "four": tiny(n_members=4).fit(X, y)}


# --- a scikit-learn estimator

NEVER_TO_THE_BIT = {
    "check_sample_weight_equivalence_on_dense_data": "a repeated row falls into several minibatches, or among the rows "
    "held back and those learnt from, where one of that weight does not: the two fits agree roughly, never to the bit"
}


@parametrize_with_checks(
    [tiny(), tiny(n_members=4, max_epochs=2), tiny_paper()], expected_failed_checks=lambda _: NEVER_TO_THE_BIT
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_parameters_are_keywords_that_a_clone_keeps():
    for model in (OgiveRegressor(), OgiveRegressor.paper(), tiny(support=[(0.0, None)], order="cycle")):
        assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match="positional argument"):
        OgiveRegressor(4)
    assert not hasattr(OgiveRegressor, "predict_proba")


def test_the_papers_configuration_is_a_change_of_parameters():
    paper = OgiveRegressor.paper(n_members=3)
    assert (paper.n_members, paper.groups, paper.units, paper.support, paper.noise) == (3, 32, 32, "range", True)
    assert paper.derivative == "finite-difference"


def test_the_papers_density_is_a_central_difference_and_ends_with_the_range():
    X, y = table()
    law = tiny_paper().fit(X, y).predict_dist(X)
    step = OgiveRegressor().delta * 0.5 * np.ptp(y)
    middle = np.quantile(y, np.linspace(0.1, 0.9, len(y)))
    np.testing.assert_allclose(law.pdf(middle), (law.cdf(middle + step) - law.cdf(middle - step)) / (2 * step), 1e-4)
    assert (law.logpdf(y.max() + 0.1) == -np.inf).all() and (law.logpdf(y.min() - 0.1) == -np.inf).all()


def test_a_pipeline_fits_what_its_steps_hand_on():
    X, y = table()
    pipeline = make_pipeline(StandardScaler(), tiny()).fit(X, y, ogiveregressor__sample_weight=np.arange(60.0))
    Z = StandardScaler().fit_transform(X)
    alone = tiny().fit(Z, y, sample_weight=np.arange(60.0))
    np.testing.assert_array_equal(pipeline.predict(X, point="median"), alone.predict(Z, point="median"))
    assert pipeline.score(X, y) == alone.score(Z, y)


def test_a_grid_search_maximises_the_likelihood():
    X, y = table()
    # A learning rate near nought leaves the network untrained.
    grid = {"learning_rate": [1e-9, 1e-2], "hidden": [(4,), (8,)]}
    search = GridSearchCV(tiny(max_epochs=20), grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["learning_rate"] == 1e-2
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_cross_validation_scores_the_rows_left_out():
    X, y = table()
    scores = cross_val_score(tiny(), X, y, cv=[(np.arange(40), np.arange(40, 60))], error_score="raise")
    alone = tiny().fit(X[:40], y[:40])
    assert scores == [alone.score(X[40:], y[40:])]
    assert alone.score(X[40:], y[40:]) == alone.predict_dist(X[40:]).logpdf(y[40:]).mean()
    assert np.isfinite(cross_val_score(tiny(), X, y, cv=2, scoring="neg_mean_squared_error")).all()


@pytest.mark.parametrize("d", [None, 1, 2])
def test_a_transformed_target_comes_back_in_its_own_units(d):
    X, y = table(d=d)
    wrapped = TransformedTargetRegressor(tiny(), transformer=StandardScaler()).fit(X, y)
    scale = StandardScaler().fit(y.reshape(60, -1))
    inner = tiny().fit(X, scale.transform(y.reshape(60, -1)))
    assert wrapped.predict(X).shape == y.shape
    np.testing.assert_allclose(wrapped.predict(X).reshape(60, -1), scale.inverse_transform(inner.predict(X)))


def test_sample_weight_and_eval_set_are_routed():
    X, y = table()
    w = np.random.default_rng(1).uniform(0, 2, 60)
    with config_context(enable_metadata_routing=True):
        model = tiny().set_fit_request(sample_weight=True, eval_set=True).set_score_request(sample_weight=True)
        held_back = (X[:9], y[:9])
        piped = Pipeline([("model", model)]).fit(X, y, sample_weight=w, eval_set=held_back)
        direct = tiny().fit(X, y, sample_weight=w, eval_set=held_back)
        assert same(piped["model"], direct, X)
        assert piped.score(X, y, sample_weight=w) == direct.score(X, y, sample_weight=w) != direct.score(X, y)
        search = GridSearchCV(model, {"n_members": [1, 2]}, cv=2, error_score="raise").fit(X, y, sample_weight=w)
        assert np.isfinite(search.best_score_)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            cross_val_score(tiny(), X, y, params={"sample_weight": w}, error_score="raise")


def test_an_unfitted_estimator_says_so(tmp_path):
    model, (X, y) = OgiveRegressor(), table()
    for ask in (
        lambda: model.predict(X),
        lambda: model.predict_dist(X),
        lambda: model.predict_quantiles(X, 0.5),
        lambda: model.predict_interval(X),
        lambda: model.sample(X),
        lambda: model.score(X, y),
        lambda: model.weights_,
        lambda: model.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask()
    assert os.listdir(tmp_path) == []


# --- shapes and names


@pytest.mark.parametrize(
    ("make", "names", "shape"),
    [
        (lambda y: y[:, 0], ["y"], ()),
        (lambda y: list(y[:, 0]), ["y"], ()),
        (lambda y: pd.Series(y[:, 0], name="size"), ["size"], ()),
        (lambda y: pl.Series("size", y[:, 0]), ["size"], ()),
        (lambda y: y[:, :1], ["y0"], (1,)),
        (lambda y: pd.DataFrame({"size": y[:, 0]}), ["size"], (1,)),
        (lambda y: y, ["y0", "y1"], (2,)),
        (lambda y: pd.DataFrame(y, columns=["b", "a"]), ["b", "a"], (2,)),
        (lambda y: pl.DataFrame(y, schema=["b", "a"]), ["b", "a"], (2,)),
    ],
    ids=["1-D", "list", "Series", "polars Series", "column", "frame of one", "2-D", "frame", "polars frame"],
)
def test_answers_have_the_shape_of_y(make, names, shape):
    X, y = table(d=2)
    model = tiny().fit(X, make(y))
    d = len(names)
    assert (model.n_outputs_, model.output_names_, model.n_features_in_) == (d, names, 2)
    x = X[:4]
    for point in ("mean", "median", "mode"):
        assert model.predict(x, point=point).shape == (4, *shape)
    marginals = (4,) if d == 1 else (4, d)
    assert model.predict_quantiles(x, LEVELS).shape == (*marginals, 3)
    assert model.predict_interval(x).shape == (*marginals, 2)
    assert model.sample(x, 5).shape == (5, *marginals)
    assert model.sample(x).shape == (1, *marginals)
    law = model.predict_dist(x)
    assert (len(law), law.n_outputs, law.output_names) == (4, d, names)
    assert isinstance(model.score(X, make(y)), float)
    assert all(values.dtype == np.float64 for values in answers(model, x).values())


def test_point_forecasts_and_intervals_are_those_of_the_law(fitted):
    for model in fitted.values():
        X = table()[0][:5]
        law = model.predict_dist(X)
        for point in ("mean", "median", "mode"):
            np.testing.assert_array_equal(model.predict(X, point=point).ravel(), getattr(law, point)().ravel())
        np.testing.assert_array_equal(model.predict(X).ravel(), law.mean().ravel())
        np.testing.assert_array_equal(model.predict_quantiles(X, LEVELS).ravel(), law.quantiles(LEVELS).ravel())
        np.testing.assert_allclose(model.predict_interval(X).ravel(), law.quantiles([0.05, 0.95]).ravel(), rtol=1e-9)
        np.testing.assert_array_equal(model.sample(X, 3, random_state=1), law.sample(3, 1))


def frame_of(kind: Any, X: np.ndarray, names: str = "ab") -> Any:
    return kind(dict(zip(names, X.T, strict=True)))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_are_known_by_name(kind, fitted):
    X, y = table()
    model = tiny().fit(frame_of(kind, X), y)
    assert list(model.feature_names_in_) == ["a", "b"]
    for again in (pd.DataFrame, pl.DataFrame):
        np.testing.assert_array_equal(model.predict(frame_of(again, X)), fitted["one"].predict(X))
    assert not hasattr(fitted["one"], "feature_names_in_")
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_outputs_are_known_by_name(kind):
    X, y = table(d=2)
    model = tiny().fit(X, frame_of(kind, y), eval_set=(X[:9], frame_of(kind, y[:9])))
    turned = frame_of(kind, y[:, ::-1], "ba")
    assert model.score(X, turned) == model.score(X, y)
    assert same(model, tiny().fit(X, frame_of(kind, y), eval_set=(X[:9], turned[:9])), X)


# --- what a seed decides


def test_the_same_seed_gives_the_same_bits(fitted):
    X, y = table()
    for name, members in (("one", 2), ("four", 4)):
        model = tiny(n_members=members).fit(X, y)
        assert same(model, fitted[name], X)
        assert same(model.fit(X, y), fitted[name], X)  # a second fit starts afresh
        np.testing.assert_array_equal(model.history_["validation"], fitted[name].history_["validation"])


def test_different_seeds_give_different_models(fitted):
    X, y = table()
    seeds = [tiny(random_state=seed).fit(X, y).predict(X) for seed in (1, 2, None, None)]
    seeds.append(fitted["one"].predict(X))
    assert len({found.tobytes() for found in seeds}) == len(seeds)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_generators_are_seeds_that_move_on(make):
    X, y = table()
    generator = make(5)
    first = tiny(random_state=generator).fit(X, y)
    assert same(first, tiny(random_state=make(5)).fit(X, y), X)
    assert not same(first, tiny(random_state=generator).fit(X, y), X)
    generator = make(5)
    draws = first.sample(X, 2, random_state=generator)
    np.testing.assert_array_equal(draws, first.sample(X, 2, random_state=make(5)))
    assert (draws != first.sample(X, 2, random_state=generator)).all()


def test_no_global_generator_is_read_or_written(fitted):
    X, y = table()

    def states() -> tuple[object, ...]:
        return random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()

    before = states()
    model = tiny(n_members=4).fit(X, y)
    answers(model, X)
    assert states() == before
    random.random(), np.random.random(), torch.rand(1)
    assert same(tiny(n_members=4).fit(X, y), model, X)


@pytest.mark.parametrize("n_jobs", [1, 2, -1, -100])
def test_threads_are_lent_for_the_fit(n_jobs, fitted, monkeypatch):
    seen = []
    update = estimator.tqdm.update
    monkeypatch.setattr(estimator.tqdm, "update", lambda *a: (seen.append(torch.get_num_threads()), update(*a)))
    X, y = table()
    model = tiny(n_jobs=n_jobs, verbose=1).fit(X, y)
    assert set(seen) == {threads_of(n_jobs)}
    np.testing.assert_allclose(model.predict(X), fitted["one"].predict(X), rtol=1e-3)


def test_minus_one_is_all_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert [threads_of(n) for n in (None, 3, -1, -2, -4, -9)] == [None, 3, 4, 3, 1, 1]


# --- laws of the fit


@pytest.mark.parametrize("c", [2.0, 1e-3, 1e6, 1e200])
@pytest.mark.parametrize(("d", "support"), [(None, None), (None, "positive"), (2, None), (1, "range")])
def test_a_change_of_units_shifts_the_log_density(c, d, support):
    """p_cY(c y) = p_Y(y) / c in each output."""
    X, y = table(d=d)
    y = np.abs(y)
    one, other = (tiny(support=support).fit(X, scale * y) for scale in (1.0, c))
    shift = other.predict_dist(X).logpdf(c * y) - one.predict_dist(X).logpdf(y)
    np.testing.assert_allclose(shift, -(d or 1) * np.log(c), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.predict_quantiles(X, LEVELS), c * one.predict_quantiles(X, LEVELS), rtol=1e-4)


def test_a_change_of_origin_or_of_the_units_of_x_changes_nothing(fitted):
    X, y = table()
    density = fitted["one"].predict_dist(X).logpdf(y)
    moved = tiny().fit(1e5 * X - 3.0, y + 100.0).predict_dist(1e5 * X - 3.0).logpdf(y + 100.0)
    np.testing.assert_allclose(moved, density, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_row_is_answered_whatever_its_batch(name, fitted):
    X = table(300, seed=3)[0]
    whole = answers(fitted[name], X)
    for rows in ([7], [299, 7], np.arange(299, -1, -2)):
        part = answers(fitted[name], X[rows])
        for question in whole:
            if question != "draws":
                np.testing.assert_allclose(part[question], whole[question][rows], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("members", [2, 4])
@pytest.mark.parametrize("given_eval_set", [True, False])
def test_a_row_of_weight_nought_is_left_out_to_the_bit(members, given_eval_set):
    X, y = table(80)
    keep = np.arange(80) % 4 != 1
    w = np.linspace(1.0, 2.0, 80)
    y = np.where(keep, y, 1e9)  # it does not even reach the scaling
    held_back = (X[keep][:9], y[keep][:9]) if given_eval_set else None
    with_them = tiny(n_members=members).fit(X, y, sample_weight=w * keep, eval_set=held_back)
    without = tiny(n_members=members).fit(X[keep], y[keep], sample_weight=w[keep], eval_set=held_back)
    assert same(with_them, without, X)
    score = without.score(X[keep], y[keep], sample_weight=w[keep])
    assert with_them.score(X, y, sample_weight=w * keep) == pytest.approx(score)


def test_only_ratios_of_weights_matter(fitted):
    X, y = table()
    w = np.linspace(1.0, 2.0, 60)
    assert same(tiny().fit(X, y, sample_weight=w), tiny().fit(X, y, sample_weight=1024 * w), X)
    for equal in (3.0, np.full(60, 0.5), pd.Series(np.ones(60))):
        assert same(tiny().fit(X, y, sample_weight=equal), fitted["one"], X)


def test_a_weight_of_three_teaches_about_as_much_as_three_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    up = np.arange(200) % 2 == 0
    y = np.where(up, 1.0, -1.0) + 0.2 * rng.normal(size=200)
    model = tiny(max_epochs=60, learning_rate=1e-2)
    times = np.where(up, 3, 1)
    weighted = model.fit(X, y, sample_weight=times).predict_dist(X).sf(0.0).mean()
    repeated = model.fit(X.repeat(times, 0), y.repeat(times)).predict_dist(X).sf(0.0).mean()
    plain = model.fit(X, y).predict_dist(X).sf(0.0).mean()
    assert plain == pytest.approx(0.5, abs=0.07)
    assert weighted == pytest.approx(0.75, abs=0.07)
    assert repeated == pytest.approx(0.75, abs=0.07)


def test_the_score_is_a_weighted_mean_of_log_densities(fitted):
    X, y = table(seed=4)
    w = np.linspace(0.0, 1.0, 60)
    density = fitted["one"].predict_dist(X).logpdf(y)
    assert fitted["one"].score(X, y) == pytest.approx(density.mean())
    assert fitted["one"].score(X, y, sample_weight=w) == pytest.approx(np.average(density, weights=w))


# --- any finite numbers

# Supports, and the ways out to where they have no end, for each output.
FAR = {
    "whole line": (None, [(-1.0,), (1.0,)]),
    "positive": ("positive", [(1.0,)]),
    "open above": ([(-5.0, None)], [(1.0,)]),
    "open below": ([(None, 50.0)], [(-1.0,)]),
    "pair of lines": (None, [(1.0, 1.0), (-1.0, 1.0), (0.0, -1.0)]),
    "line and half-line": ([(0.0, None), (None, None)], [(1.0, -1.0), (0.0, 1.0), (1.0, 0.0)]),
    "half-lines": ([(None, 50.0), (0.0, None)], [(-1.0, 1.0), (-1.0, 0.0)]),
}


@pytest.mark.parametrize(("support", "ways"), FAR.values(), ids=FAR)
@pytest.mark.parametrize("order", ["given", "cycle"])
def test_a_thousand_ranges_away_the_log_density_is_finite(order, support, ways):
    X, y = table(d=len(ways[0]))
    y = np.abs(y)
    law = tiny(support=support, order=order).fit(X, y).predict_dist(X)
    for way in ways:
        far = law.logpdf(y + 1000.0 * np.ptp(y, 0) * np.array(way))
        assert np.isfinite(far).all()
        assert (far < law.logpdf(y)).all()


def test_outside_a_declared_support_the_density_is_nought():
    X, y = table()
    for support, outside in (("positive", -1e-3), ([(None, 50.0)], 51.0), ("range", y.max() + 1.0)):
        assert (tiny(support=support).fit(X, np.abs(y)).predict_dist(X).logpdf(outside) == -np.inf).all()


def finite(largest: float = 1e300) -> st.SearchStrategy[float]:
    return st.floats(-largest, largest)


@settings(max_examples=25)
@given(
    X=arrays(np.float64, (6, 2), elements=finite()),
    y=arrays(np.float64, 6, elements=finite()),
    new=arrays(np.float64, (3, 2), elements=finite()),
    at=arrays(np.float64, 3, elements=finite()),
)
@example(np.eye(6)[:, :2], np.linspace(-1e300, 1e300, 6), np.full((3, 2), -1e300), np.array([0.0, 1e300, -1e300]))
@example(np.full((6, 2), 1e300), np.full(6, -1e300), np.zeros((3, 2)), np.array([0.0, -1e300, 1e300]))
@example(np.zeros((6, 2)), np.array([0.0, 0, 0, 0, 0, 5e-324]), np.ones((3, 2)), np.array([0.0, 5e-324, 1e300]))
@example(np.zeros((6, 2)), np.array([0.0, 0, 0, 0, 0, 1e300]), np.ones((3, 2)), np.array([0.0, 1.0, 1e300]))
@example(np.zeros((6, 2)), np.full(6, 2.0**53), np.zeros((3, 2)), np.array([0.0, 2.0**53, -1.0]))
def test_no_finite_table_and_no_finite_question_gives_nan(X, y, new, at):
    model = tiny(max_epochs=1).fit(X, y)
    law = model.predict_dist(new)
    asked = {**answers(model, new), "at": law.logpdf(at), "pit": law.pit(at), "scored": law.crps(at)}
    asked["energy"] = law.energy_score(at)
    asked["history"] = model.history_["best_validation"]
    assert [name for name, values in asked.items() if np.isnan(values).any()] == []
    assert np.isfinite(asked["at"]).all()
    assert (np.diff(asked["quantiles"]) >= 0.0).all()


@pytest.mark.parametrize("order", ["given", "cycle"])
@pytest.mark.parametrize("scales", [(1e300, -1e300), (1e-300, 1e300), (0.0, 1e300), (1.0, 1e-300)], ids=str)
def test_no_scales_of_two_outputs_give_nan(scales, order):
    X, y = table(12, 2)
    X, y = X * 1e300 / np.abs(X).max(), y * np.array(scales) / np.abs(y).max()
    model = tiny(order=order, max_epochs=1).fit(X, y)
    law = model.predict_dist(-X[:3])
    asked = {**answers(model, -X[:3]), "covariance": law.cov(), "energy": law.energy_score(y[:3])}
    asked |= {"at": law.logpdf(y[:3]), "far": law.logpdf([1e300, -1e300])}
    assert [name for name, values in asked.items() if np.isnan(values).any()] == []
    assert np.isfinite(asked["at"]).all() and np.isfinite(asked["far"]).all()


@pytest.mark.parametrize("support", [None, "positive", "range", [(0.0, 9.0)]])
def test_constant_columns_and_a_constant_y_are_fitted(support):
    X = np.tile([3.0, 0.0], (40, 1))
    model = tiny(support=support, max_epochs=60, learning_rate=1e-2).fit(X, np.full(40, 7.0))
    low, high = model.predict_interval(X)[0]
    assert low < 7.0 < high
    assert (model.predict_dist(X).pdf(7.0) > np.mean(model.predict_dist(X).pdf(np.array([[6.05], [7.95]])), 0)).all()
    assert all(np.isfinite(values).all() for values in answers(model, X[:3]).values())
    X, y = table()
    X[:, 1] = 4.0
    assert tiny().fit(X, y).score(X, y) > -10.0


def test_one_output_may_be_constant_beside_another():
    X, y = table(d=2)
    y[:, 0] = -2.0
    for order in ("given", "cycle"):
        assert np.isfinite(tiny(order=order).fit(X, y).predict_dist(X).logpdf(y)).all()


def test_twenty_rows_suffice_for_the_defaults():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1020, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=1020)
    model = OgiveRegressor(random_state=0).fit(X[:20], y[:20])
    found = answers(model, X[20:30])
    assert all(np.isfinite(values).all() for values in found.values())
    assert (np.diff(found["quantiles"], axis=1) > 0).all()
    low, high = model.predict_interval(X[20:]).T
    assert (low < high).all()
    assert 0.7 < ((low < y[20:]) & (y[20:] < high)).mean() < 0.995
    alone = np.log(np.sqrt(2 * np.pi * np.e) * y.std())  # entropy of a normal law that ignores x
    assert model.score(X[20:], y[20:]) > -alone - 0.1


def test_two_rows_are_the_fewest():
    X, y = table(2)
    assert np.isfinite(tiny().fit(X, y).predict_dist(X).logpdf(y)).all()
    assert tiny().fit(*table(), eval_set=(X[:1], y[:1])).n_iter_ == 3


def test_ten_outputs_are_fitted_by_the_default_network():
    X, y = table(100, 10)
    model = OgiveRegressor(random_state=0, max_epochs=10).fit(X, y)
    found = answers(model, X[:2])
    assert found["mean"].shape == (2, 10) and found["quantiles"].shape == (2, 10, 3)
    assert all(np.isfinite(values).all() for values in found.values())
    assert (np.diff(found["quantiles"]) > 0).all()
    np.testing.assert_allclose(found["mean"], 5.0, atol=3.0)
    normal = y.shape[1] * 0.5 * np.log(2 * np.pi * np.e * y.var())  # entropy of ten independent normal laws
    assert model.score(X, y) > -normal - 3.0


# --- keeping a model


@pytest.mark.parametrize(
    ("make", "d"),
    [
        (tiny, None),
        (lambda: tiny(n_members=4), None),
        (lambda: tiny(support=[(None, 100.0), (0.0, None)], order="cycle"), 2),
        (lambda: tiny(order=(1, 0), dropout=(0.1, 0.0), noise=[True, False], derivative="finite-difference"), 2),
        (tiny_paper, 1),
    ],
    ids=["two members", "four members", "cycle", "own order", "paper"],
)
def test_a_model_comes_back_from_its_file_to_the_bit(make, d, tmp_path):
    X, y = table(d=d)
    y = np.abs(y)
    model = make().fit(X, y)
    model.save(tmp_path / "model")
    for load in (ogive.load, OgiveRegressor.load):
        found = load(str(tmp_path / "model"))
        assert isinstance(found, OgiveRegressor) and same(found, model, X)
    np.testing.assert_array_equal(found.weights_, model.weights_)
    assert (found.n_iter_, found.n_outputs_, found.output_names_, found.n_features_in_) == (
        *(model.n_iter_, model.n_outputs_, model.output_names_), 2,
    )  # fmt: skip
    assert found.history_.keys() == model.history_.keys()
    for name, values in model.history_.items():
        np.testing.assert_array_equal(found.history_[name], values)
    assert same(found.fit(X, y), model, X)  # the parameters came along
    model.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_names_go_into_the_file_and_generators_do_not(tmp_path):
    X, y = table(d=2)
    generator = np.random.default_rng(0)
    model = tiny(random_state=generator).fit(frame_of(pd.DataFrame, X), frame_of(pl.DataFrame, y, "uv"))
    model.save(tmp_path / "model")
    found = OgiveRegressor.load(tmp_path / "model")
    assert list(found.feature_names_in_) == ["a", "b"] and found.output_names_ == ["u", "v"]
    assert found.random_state is None
    assert same(found, model, frame_of(pl.DataFrame, X))


def test_a_file_of_another_network_is_refused(fitted, tmp_path):
    path: Path = tmp_path / "model"
    fitted["one"].save(path)
    header, tensors = storage.read(path)
    own = {name: value for name, value in header.items() if name not in storage.OURS}
    wrong = (own["architecture"] | {"units": 5}, own["architecture"] | {"n_doors": 2}, None)
    for architecture in wrong:
        storage.write(path, own | {"architecture": architecture}, tensors)
        with pytest.raises(FileFormatError, match=r"must describe the network it holds; got .*Save the model again\."):
            ogive.load(path)


def test_copies_and_pickles_are_the_same_model(fitted):
    X = table()[0]
    for model in fitted.values():
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert same(other, model, X)


# --- the package


def test_public_names_are_there_and_others_are_not():
    for name in ogive.__all__:
        assert name in dir(ogive) and getattr(ogive, name) is not None
    assert ogive.metrics.__name__ == "ogive.metrics"
    with pytest.raises(AttributeError, match="module 'ogive' has no attribute 'nothing'"):
        _ = ogive.nothing


@pytest.mark.parametrize("module", [estimator, prediction])
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0
