"""The metrics at their edges: numbers done by hand, errors, scorers, the real Prediction, steps of real columns."""

from __future__ import annotations

import doctest
import math
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import logistic, norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ogive import metrics
from ogive.distribution import Factor, Reading, Triangular
from ogive.errors import DataError, DataTypeError, NotAvailableError, NumericalError
from ogive.metrics import calibration, recording
from ogive.prediction import Prediction


class Answers:
    """A prediction that gives the answers it was made with, whatever it is asked."""

    def __init__(self, n, d=1, names=None, **answers):
        self.n, self.n_outputs = n, d
        self.output_names = names or [f"y{j}" for j in range(d)]
        for method, values in answers.items():
            setattr(self, method, lambda *_, values=values: np.asarray(values, dtype=float))

    def __len__(self):
        return self.n


# --- by hand


def test_scores_by_hand():
    p = Answers(2, 1, logpdf=[-1.0, -4.0], crps=[[1.0], [2.0]], energy_score=[3.0, 5.0], interval=[[[0, 4]], [[1, 2]]])
    y = [5.0, 1.5]
    assert metrics.nll(p, y) == 2.5
    assert metrics.nll(p, y, sample_weight=[3, 1]) == 1.75
    assert metrics.crps(p, y) == 1.5
    assert metrics.energy_score(p, y) == 4.0
    assert metrics.coverage(p, y) == 0.5
    assert metrics.interval_score(p, y, level=0.8) == pytest.approx((4 + 2 / 0.2 * 1 + 1) / 2)


def test_coverage_asks_for_the_marginal_cdf_where_there_is_one():
    p = Answers(4, 1, marginal_pit=[0.049, 0.051, 0.949, 0.951], interval=[[0, 0]] * 4)
    assert metrics.coverage(p, [9.0] * 4) == 0.5

    def refuse(y):
        raise NotAvailableError("none")

    p.marginal_pit = refuse
    assert metrics.coverage(p, [0.0, 9.0, 9.0, 9.0]) == 0.25


def test_the_pinball_loss_by_hand():
    p = Answers(1, 2, quantiles=[[[0.0, 1.0], [5.0, 6.0]]])
    loss = metrics.pinball(p, [[2.0, 4.0]], [0.1, 0.9])
    np.testing.assert_allclose(loss, [[0.1 * 2, 0.9 * 1], [0.9 * 1, 0.1 * 2]])


def test_the_ends_of_an_interval_belong_to_it():
    p = Answers(4, 1, interval=[[[0, 1]]] * 4)
    assert metrics.coverage(p, [0.0, 1.0, -1e-9, 1 + 1e-9]) == 0.5


def test_ece_by_hand():
    # Levels 0.25, 0.5, 0.75, 1: the shares at or below are 0.5, 0.75, 0.75, 1.
    assert metrics.ece_of_pit([0.1, 0.25, 0.3, 0.9], levels=4) == pytest.approx((0.25 + 0.25 + 0.0 + 0.0) / 4)
    assert metrics.ece_of_pit([0.5] * 7) == pytest.approx((0.1 + 0.2 + 0.3 + 0.4 + 0.5 + 0.4 + 0.3 + 0.2 + 0.1) / 10)
    assert metrics.ece_of_pit([0.0, 1.0], levels=1) == 0.0
    assert metrics.ece_of_pit(np.arange(1, 11) / 10) == pytest.approx(0.0, abs=1e-15)  # a value on a level is below it


def test_ece_pools_outputs_and_folds():
    pit = np.array([[0.05, 0.95], [0.45, 0.55]])
    p, y = Answers(2, 2, pit=pit), np.zeros((2, 2))
    assert metrics.ece(p, y) == metrics.ece_of_pit(pit) == metrics.ece_of_pit(pit.ravel()[::-1])
    assert metrics.ece(p, y, levels=2) == 0.0
    folds = [metrics.pit(p, y), metrics.pit(p, y)]
    assert metrics.ece_of_pit(np.concatenate(folds)) == metrics.ece_of_pit(pit)


def test_one_level_has_no_band():
    assert metrics.ece_band(50, levels=1) == 0.0


def test_a_row_of_weight_zero_does_not_count():
    assert metrics.nll(Answers(2, logpdf=[-1.0, -math.inf]), [0.0, 0.0], sample_weight=[2.0, 0.0]) == 1.0


def test_answers_without_axes_of_length_one_are_understood():
    p = Answers(3, 1, crps=[1.0, 2.0, 3.0], interval=[[0, 1]] * 3, quantiles=[1.0, 2.0, 3.0])
    assert metrics.crps(p, [0.0] * 3) == 2.0
    assert metrics.coverage(p, [0.5, 0.5, 2.0]) == pytest.approx(2 / 3)
    assert metrics.pinball(p, [1.0, 2.0, 3.0], 0.5) == 0.0


def test_data_frames_are_matched_by_name():
    class Echo(Answers):
        def pit(self, y):
            return y

    p = Echo(2, 2, names=["a", "b"])
    frame = pd.DataFrame({"b": [0.3, 0.4], "other": [9.0, 9.0], "a": [0.1, 0.2]})
    np.testing.assert_array_equal(metrics.pit(p, frame), [[0.1, 0.3], [0.2, 0.4]])


def test_a_lost_cell_counts_by_its_density_but_never_above_one_over_its_volume():
    lost = {"pit": [[1.0, 1.0]]}
    assert metrics.rounded_nll(Answers(1, 2, logpdf=[-3.0], **lost), [[0.0, 0.0]], [0.1, 0.5]) == 3.0
    spike = metrics.rounded_nll(Answers(1, 2, logpdf=[50.0], **lost), [[0.0, 0.0]], [0.1, 0.5])
    assert spike == pytest.approx(math.log(0.1 * 0.5))


# --- steps


def test_steps_of_columns():
    rng = np.random.default_rng(0)
    columns = {
        0.1: np.round(rng.normal(20, 9, 400), 1),
        1e-4: np.round(rng.normal(1, 0.4, 400), 4),
        1.0: rng.poisson(2.0, 400).astype(float),
        1e-2: np.round(np.exp(rng.normal(6, 3, 400)), 2),  # prices: from cents to millions
        0.25: rng.integers(0, 4, 400) / 4,
        1000.0: 1e9 + 1000.0 * rng.integers(0, 90, 400),
        1 / 60: rng.integers(0, 1440, 400) / 60,
    }
    np.testing.assert_allclose(metrics.recording_step(np.stack(list(columns.values()), 1)), list(columns), rtol=1e-9)


def test_a_step_need_not_be_a_gap():
    assert metrics.recording_step([0.0, 2.0, 5.0]).tolist() == [1.0]
    assert metrics.recording_step([0.6, 1.0, 1.6]) == pytest.approx([0.2])
    assert metrics.recording_step([3, 7, 7]).tolist() == [4.0]


def test_a_stray_value_does_not_hide_the_step():
    rng = np.random.default_rng(0)
    y = np.r_[np.round(rng.normal(20, 9, 700), 2), 6.36, 6.37]
    for stray in ([6.366], [math.pi] * 40, [6.36 + 1e-7, 31.23456]):
        assert metrics.recording_step(np.r_[y, stray]) == pytest.approx([0.01])
    mostly_whole = np.r_[np.arange(30.0), np.arange(30.0) + 0.5]  # and half of the values are no strays
    assert metrics.recording_step(mostly_whole).tolist() == [0.5]


def test_the_rounding_of_a_step_does_not_add_up():
    """Standardised prices: gaps are up to a million steps, and the step is known from small gaps to few digits."""
    for seed in range(20):
        y = np.round(np.exp(np.random.default_rng(seed).normal(6, 2, 300)), 2)
        assert metrics.recording_step((y - y.mean()) / y.std()) * y.std() == pytest.approx([0.01])


def test_a_step_outlives_float32():
    y = np.round(np.random.default_rng(0).normal(20, 9, 400), 1)
    for column in (y, y / y.std()):
        found = metrics.recording_step(column.astype(np.float32))
        assert found == pytest.approx(metrics.recording_step(column), rel=1e-5)


def test_a_step_at_the_ends_of_the_number_line():
    k = np.arange(9.0)
    assert metrics.recording_step(1e300 * k) == pytest.approx([1e300])
    assert metrics.recording_step([-1.7e308, 0.0, 1.7e308]) == pytest.approx([1.7e308])
    assert metrics.recording_step(5e-324 * k).tolist() == [5e-324]
    assert metrics.recording_step([1.0, np.nextafter(1.0, 2.0)]).tolist() == [2.0**-52]


# --- errors

ANY = Answers(3, 1, logpdf=[0, 0, 0], quantiles=[0, 0, 0], interval=[[0, 1]] * 3)
TWO = Answers(3, 2, names=["a", "b"], logpdf=[0, 0, 0])
ZERO = [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: metrics.nll(ANY, [0.0, 0.0]), DataError, r"y must have shape \(3, 1\) or \(3,\), .*; got \(2,\)"),
        (lambda: metrics.nll(ANY, [ZERO]), DataError, r"y must have shape \(3, 1\) or \(3,\), .*; got \(1, 3\)"),
        (lambda: metrics.nll(ANY, 0.0), DataError, r"y must have shape .* got \(\)"),
        (lambda: metrics.nll(TWO, ZERO), DataError, r"y must have shape \(3, 2\), as the prediction; got \(3,\)"),
        (lambda: metrics.nll(Answers(0), []), DataError, "y must have at least one row; got none"),
        (
            lambda: metrics.nll(ANY, [0.0, math.nan, math.inf]),
            DataError,
            r"y must be finite; got NaN or infinity in 2 of 3 rows \(first: row 1\)",
        ),
        (
            lambda: metrics.nll(ANY, ["a", "b", "c"]),
            DataTypeError,
            r"^y must be numeric; got could not convert string to float: [^;]*'a'[^;]*\. Encode it as numbers\.$",
        ),
        (
            lambda: metrics.nll(ANY, [None, object(), 1]),
            DataTypeError,
            r"^y must be numeric; got float\(\) argument must be [^;]* not '\w+'\. Encode it as numbers\.$",
        ),
        (lambda: metrics.nll(TWO, pd.DataFrame({"a": ZERO, "c": ZERO})), DataError, r"columns \['a', 'b'\]; got"),
        (
            lambda: metrics.nll(ANY, ZERO, sample_weight=[1.0]),
            DataError,
            r"sample_weight must have shape \(3,\); got \(1,\)",
        ),
        (lambda: metrics.nll(ANY, ZERO, sample_weight=[1, 1, -2]), DataError, "sample_weight .* got -2.0 to 1.0"),
        (lambda: metrics.nll(ANY, ZERO, sample_weight=ZERO), DataError, "positive somewhere; got 0.0 to 0.0"),
        (lambda: metrics.nll(ANY, ZERO, sample_weight=[1, math.nan, 1]), DataError, "sample_weight must be finite"),
        (
            lambda: metrics.nll(ANY, ZERO, sample_weight=["1", "2", "3"]),
            DataTypeError,
            "sample_weight must be real numbers; got dtype <U1",
        ),
        (
            lambda: metrics.nll(ANY, ZERO, sample_weight=[[1], [1, 2], [3]]),
            DataTypeError,
            "sample_weight must be real numbers; got setting an array",
        ),
        (
            lambda: metrics.nll(Answers(3, logpdf=[0.0]), ZERO),
            DataError,
            r"prediction.logpdf must answer in shape \(3,\); got \(1,\)",
        ),
        (
            lambda: metrics.crps(Answers(3, 2, crps=np.zeros((2, 3))), np.zeros((3, 2))),
            DataError,
            r"prediction.crps must answer in shape \(3, 2\); got \(2, 3\)",
        ),
        (
            lambda: metrics.nll(Answers(3, logpdf=[0.0, 0.0, math.nan]), ZERO),
            NumericalError,
            r"prediction.logpdf must give numbers; got NaN in 1 of 3 rows \(first: row 2\)",
        ),
        (lambda: metrics.coverage(ANY, ZERO, level=90), DataError, "level must lie strictly .* got 90"),
        (lambda: metrics.coverage(ANY, ZERO, level=1.0), DataError, "level must lie strictly .* got 1.0"),
        (lambda: metrics.interval_score(ANY, ZERO, level=0.0), DataError, "level must lie strictly .* got 0.0"),
        (lambda: metrics.ece_band(9, quantile=math.nan), DataError, "quantile must lie strictly .* got nan"),
        (lambda: metrics.pinball(ANY, ZERO, 1.0), DataError, "q must be one level or a list .* got 1.0"),
        (lambda: metrics.pinball(ANY, ZERO, []), DataError, r"q must be one level or a list .* got \[\]"),
        (lambda: metrics.pinball(ANY, ZERO, [[0.5]]), DataError, r"q must be one level or a list .* got \[\[0.5\]\]"),
        (lambda: metrics.ece_of_pit([0.5, 1.5]), DataError, r"pit must lie in \[0, 1\]; got 0.5 to 1.5"),
        (lambda: metrics.ece_of_pit([0.5, math.nan]), DataError, r"pit must lie in \[0, 1\]; got nan to nan"),
        (lambda: metrics.ece_of_pit([]), DataError, r"pit must lie in \[0, 1\]; got no values"),
        (lambda: metrics.ece_of_pit([0.5], levels=0), DataError, "levels must be a whole number, 1 or more; got 0"),
        (lambda: metrics.ece_band(2.5), DataError, "n must be a whole number, 1 or more; got 2.5"),
        (lambda: metrics.ece_band(9, n_simulations=0), DataError, "n_simulations must be a whole number"),
        (lambda: metrics.rounded_nll(ANY, ZERO, 0.0), DataError, "step must be one positive number or 1 .* got 0.0"),
        (lambda: metrics.rounded_nll(ANY, ZERO, math.inf), DataError, "step must be one positive number"),
        (
            lambda: metrics.rounded_nll(TWO, np.zeros((3, 2)), [0.1] * 3),
            DataError,
            r"step must be one positive number or 2 of them, one per output; got \[0.1, 0.1, 0.1\]",
        ),
        (lambda: metrics.recording_step([1.0, math.nan]), DataError, r"y must be a finite array .* with 1 values"),
        (lambda: metrics.recording_step(3.0), DataError, r"y must be a finite array .* got shape \(\)"),
        (
            lambda: metrics.recording_step([[1.0, 5.0], [2.0, 5.0]]),
            DataError,
            "y must take two values or more; got 1 in output 1",
        ),
        (lambda: metrics.scorer("nll"), DataError, "name must be one of neg_nll, .*; got 'nll'"),
        (
            lambda: metrics.scorer("neg_nll")(LinearRegression(), [[0.0]], [0.0]),
            DataTypeError,
            "estimator must have predict_dist; got a LinearRegression",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- scikit-learn


class NormalRegression(RegressorMixin, BaseEstimator):
    """Least squares with normal errors of one size, widened by a factor."""

    def __init__(self, widen=1.0):
        self.widen = widen

    def fit(self, X, y):
        self.line_ = LinearRegression().fit(X, y)
        self.spread_ = np.std(y - self.line_.predict(X))
        return self

    def predict(self, X):
        return self.line_.predict(X)

    def predict_dist(self, X):
        mean, spread = self.predict(X), self.widen * self.spread_
        ends = np.stack([mean - 1.6448536269514722 * spread, mean + 1.6448536269514722 * spread], -1)
        p = Answers(len(mean), 1, interval=ends[:, None])
        p.logpdf = lambda y: norm.logpdf(y[:, 0], mean, spread)
        p.pit = lambda y: norm.cdf(y, mean[:, None], spread)

        def crps(y):
            z = (y[:, 0] - mean) / spread
            return spread * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))

        p.crps = p.energy_score = crps
        return p


@pytest.fixture(scope="module")
def line():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, X @ [1.0, -2.0] + 0.5 * rng.normal(size=300)


NAMES = ["neg_nll", "neg_crps", "neg_energy_score", "neg_interval_score", "neg_ece"]


@pytest.mark.parametrize("name", NAMES)
def test_a_grid_search_finds_the_honest_spread(line, name):
    search = GridSearchCV(NormalRegression(), {"widen": [0.3, 1.0, 3.0]}, scoring=metrics.scorer(name), cv=3).fit(*line)
    assert search.best_params_ == {"widen": 1.0}
    metric = getattr(metrics, name.removeprefix("neg_"))
    assert search.score(*line) == -metric(search.best_estimator_.predict_dist(line[0]), line[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_scorer_passes_through_a_pipeline_and_a_pickle(line, name):
    scorer = pickle.loads(pickle.dumps(metrics.scorer(name)))
    pipeline = make_pipeline(StandardScaler(), "passthrough", make_pipeline(StandardScaler(), NormalRegression()))
    alone = cross_val_score(NormalRegression(), *line, scoring=scorer, cv=3)
    assert cross_val_score(pipeline, *line, scoring=scorer, cv=3) == pytest.approx(alone, rel=1e-9)
    assert (alone < 1.0).all()


def test_several_scorers_at_once(line):
    scoring = {name: metrics.scorer(name) for name in NAMES}
    search = GridSearchCV(NormalRegression(), {"widen": [0.5, 1.0]}, scoring=scoring, refit="neg_crps", cv=3).fit(*line)
    assert search.best_params_ == {"widen": 1.0}


# --- the real Prediction


class LogisticFactor(Factor):
    """Y_i given y_<i is logistic around half of the output before it, with unit scale."""

    def __init__(self, center, left):
        self.center, self.left = center, left

    def read(self, y):
        z = y - self.center
        return Reading(z, torch.nn.functional.logsigmoid(z) + torch.nn.functional.logsigmoid(-z))

    def bracket(self, logit):
        return self.center + logit - 1.0, self.center + logit + 1.0

    def then(self, y):
        return LogisticFactor(0.5 * y, self.left - 1)


class LogisticChain(Triangular):
    def __init__(self, center, d):
        self.center, self.n_rows, self.n_outputs, self.order = center, len(center), d, tuple(range(d))

    def first(self):
        return LogisticFactor(self.center, self.n_outputs)

    def rows(self, index):
        return LogisticChain(self.center[index], self.n_outputs)


@pytest.fixture(scope="module")
def center():
    return torch.linspace(-2.0, 2.0, 60, dtype=torch.float64)


def test_the_real_prediction_of_one_output(center):
    p = Prediction(LogisticChain(center, 1), ["y"])
    z = logistic.ppf(np.random.default_rng(0).uniform(size=60))
    y = z + center.numpy()
    assert metrics.nll(p, y) == pytest.approx(-logistic.logpdf(z).mean(), rel=1e-9)
    assert metrics.crps(p, y) == pytest.approx((z - 2.0 * logistic.logcdf(z) - 1.0).mean(), rel=1e-3)
    assert metrics.energy_score(p, y) == pytest.approx(metrics.crps(p, y), rel=0.02)
    np.testing.assert_allclose(metrics.pit(p, y)[:, 0], logistic.cdf(z), rtol=1e-9)
    assert metrics.ece(p, y) == metrics.ece_of_pit(logistic.cdf(z)) < metrics.ece_band(60, quantile=0.999)
    high = logistic.ppf(0.95)
    assert metrics.coverage(p, y) == (np.abs(z) <= high).mean()
    outside = np.maximum(np.abs(z) - high, 0.0)
    assert metrics.interval_score(p, y) == pytest.approx((2.0 * high + 20.0 * outside).mean(), rel=1e-6)
    assert metrics.pinball(p, y, 0.5) == pytest.approx(0.5 * np.abs(z).mean(), rel=1e-6)
    mass = logistic.cdf(z + 0.05) - logistic.cdf(z - 0.05)
    assert metrics.rounded_nll(p, pd.DataFrame({"y": y}), 0.1) == pytest.approx(-np.log(mass / 0.1).mean(), rel=1e-6)
    assert metrics.rounded_nll(p, y + 900.0, 0.1) == pytest.approx(metrics.nll(p, y + 900.0), rel=1e-5)


def test_the_real_prediction_of_several_outputs(center):
    p = Prediction(LogisticChain(center, 3), ["a", "b", "c"])
    z = logistic.ppf(np.random.default_rng(0).uniform(size=(60, 3)))
    y = np.empty((60, 3))
    y[:, 0] = z[:, 0] + center.numpy()
    for j in (1, 2):
        y[:, j] = z[:, j] + 0.5 * y[:, j - 1]
    assert metrics.nll(p, y) == pytest.approx(-logistic.logpdf(z).sum(1).mean(), rel=1e-9)
    np.testing.assert_allclose(metrics.pit(p, y), logistic.cdf(z), rtol=1e-9)
    step = np.array([0.1, 1.0, 2.0])
    mass = logistic.cdf(z + step / 2) - logistic.cdf(z - step / 2)
    assert metrics.rounded_nll(p, y, step) == pytest.approx(-np.log(mass / step).sum(1).mean(), rel=1e-9)
    for metric in (metrics.crps, metrics.coverage, metrics.interval_score):
        assert metric(p, y).shape == (3,)
        assert np.isfinite(metric(p, y)).all()
    assert 0.0 < metrics.energy_score(p, y) < 10.0
    assert metrics.nll(p, y + 1e6) < math.inf
    assert metrics.rounded_nll(p, y + 1e6, 0.1) == pytest.approx(metrics.nll(p, y + 1e6), rel=1e-3)


@pytest.mark.parametrize("module", [calibration, recording], ids=lambda module: module.__name__)
def test_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
