"""Laws of the metrics, on predictions whose answers are exact formulas of SciPy's distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.stats import logistic, norm

from ogive import metrics


class Independent:
    """n rows of d independent outputs with one standard SciPy law, shifted and scaled: loc and scale (n, d)."""

    def __init__(self, law, loc, scale):
        self.law = law
        self.loc, self.scale = np.broadcast_arrays(np.asarray(loc, float), np.asarray(scale, float))
        self.output_names = [f"out{j}" for j in range(self.n_outputs)]

    n_outputs = property(lambda self: self.loc.shape[1])

    def __len__(self):
        return len(self.loc)

    def times(self, c, shift=0.0):
        """The law of c Y + shift, for c > 0."""
        return Independent(self.law, c * self.loc + shift, c * self.scale)

    def rows(self, index):
        return Independent(self.law, self.loc[index], self.scale[index])

    def _standard(self, y):
        assert y.shape == self.loc.shape  # every prediction may count on (n, d)
        return (y - self.loc) / self.scale

    def logpdf(self, y):
        return (self.law.logpdf(self._standard(y)) - np.log(self.scale)).sum(1)

    def pit(self, y):
        return self.law.cdf(self._standard(y))

    def logcdf(self, y):
        return self.law.logcdf(self._standard(y))[:, 0]

    def logsf(self, y):
        return self.law.logsf(self._standard(y))[:, 0]

    def quantiles(self, q):
        return self.loc[..., None] + self.scale[..., None] * self.law.ppf(q)

    def interval(self, coverage):
        return self.quantiles(np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]))

    def crps(self, y):
        z = self._standard(y)
        if self.law is norm:
            return self.scale * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / math.sqrt(math.pi))
        return self.scale * (z - 2.0 * logistic.logcdf(z) - 1.0)

    def energy_score(self, y):
        if self.n_outputs == 1:
            return self.crps(y)[:, 0]
        draws = stats.qmc.MultivariateNormalQMC(np.zeros(self.n_outputs), rng=0).random(256)
        draws = self.loc[:, None] + self.scale[:, None] * self.law.ppf(norm.cdf(draws))  # (n, s, d)
        near = np.linalg.norm(draws - y[:, None], axis=-1).mean(1)
        halves = np.linalg.norm(draws[:, 0::2] - draws[:, 1::2], axis=-1).mean(1)
        return near - 0.5 * halves


class CorrelatedNormal(Independent):
    """Two standard normal outputs with correlation rho, first output first in the chain; same in each row."""

    def __init__(self, n, rho):
        super().__init__(norm, np.zeros((n, 2)), np.ones((n, 2)))
        self.rho = rho

    def _chain(self, y):
        return np.stack([y[:, 0], (y[:, 1] - self.rho * y[:, 0]) / math.sqrt(1.0 - self.rho**2)], 1)

    def logpdf(self, y):
        return norm.logpdf(self._chain(y)).sum(1) - 0.5 * math.log(1.0 - self.rho**2)

    def pit(self, y):
        return norm.cdf(self._chain(y))

    def energy_score(self, y):
        z = stats.qmc.MultivariateNormalQMC(np.zeros(4), rng=0).random(512)
        first, second = (
            np.stack([a, self.rho * a + math.sqrt(1.0 - self.rho**2) * b], 1)
            for a, b in ((z[:, 0], z[:, 1]), (z[:, 2], z[:, 3]))
        )
        near = np.linalg.norm(first - y[:, None], axis=-1).mean(1)
        return near - 0.5 * np.linalg.norm(first - second, axis=-1).mean()


@dataclass(frozen=True)
class Case:
    law: object
    d: int

    def prediction(self, n=40):
        rng = np.random.default_rng(self.d)
        return Independent(self.law, rng.normal(size=(n, self.d)), rng.uniform(0.3, 3.0, size=(n, self.d)))

    def outcomes(self, prediction, seed=0):
        rng = np.random.default_rng(seed)
        return prediction.loc + prediction.scale * self.law.ppf(rng.uniform(size=prediction.loc.shape))

    def __str__(self):
        return f"{self.law.name}-{self.d}"


CASES = [Case(norm, 1), Case(logistic, 1), Case(norm, 2), Case(logistic, 3)]
cases = pytest.mark.parametrize("case", CASES, ids=str)

# Each as metric(prediction, y, unit): the unit in which a recording step is measured.
JOINT = {
    "nll": lambda p, y, unit: metrics.nll(p, y),
    "energy_score": lambda p, y, unit: metrics.energy_score(p, y),
    "ece": lambda p, y, unit: metrics.ece(p, y),
    "rounded_nll": lambda p, y, unit: metrics.rounded_nll(p, y, 0.25 * unit),
}
PER_OUTPUT = {
    "crps": lambda p, y, unit: metrics.crps(p, y),
    "interval_score": lambda p, y, unit: metrics.interval_score(p, y, level=0.8),
    "pinball": lambda p, y, unit: metrics.pinball(p, y, q=0.3),
    "coverage": lambda p, y, unit: metrics.coverage(p, y, level=0.8),
}
METRICS = JOINT | PER_OUTPUT
every_metric = pytest.mark.parametrize("name", METRICS)


def same(law, n, loc=0.0, scale=1.0):
    """One law for each of n rows, one output."""
    return Independent(law, np.full((n, 1), loc), np.full((n, 1), scale))


def middles(n):
    """Levels whose mean under f is the midpoint rule for the integral of f over (0, 1)."""
    return (np.arange(n) + 0.5) / n


# --- what every metric keeps


@every_metric
@cases
def test_it_does_not_depend_on_the_order_of_rows_nor_on_their_number(case, name):
    prediction = case.prediction()
    y, index = case.outcomes(prediction), np.random.default_rng(1).permutation(40)
    found = METRICS[name](prediction, y, 1.0)
    assert METRICS[name](prediction.rows(index), y[index], 1.0) == pytest.approx(found, rel=1e-12)
    twice = np.r_[index, index]
    assert METRICS[name](prediction.rows(twice), y[twice], 1.0) == pytest.approx(found, rel=1e-12)


@every_metric
@cases
@given(log_c=st.floats(-12.0, 12.0), shift=st.floats(-3.0, 3.0))
def test_a_change_of_units(case, name, log_c, shift):
    """Scores in the units of y scale, log scores shift by log c an output, shares stay."""
    c, prediction = math.exp(log_c), case.prediction(10)
    y = case.outcomes(prediction)
    found, scaled = METRICS[name](prediction, y, 1.0), METRICS[name](prediction.times(c, c * shift), c * (y + shift), c)
    if name in ("nll", "rounded_nll"):
        assert scaled == pytest.approx(found + case.d * log_c, rel=1e-9, abs=1e-9)
    elif name in ("ece", "coverage"):
        assert scaled == pytest.approx(found, abs=1e-12)
    else:
        assert scaled == pytest.approx(c * found, rel=1e-8)


@every_metric
@given(n=st.integers(1, 6), d=st.integers(1, 3), q=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3))
def test_shapes(name, n, d, q):
    prediction = Independent(logistic, np.zeros((n, d)), np.ones((n, d)))
    y = np.linspace(-1.0, 1.0, n * d).reshape(n, d)
    found = METRICS[name](prediction, y, 1.0)
    assert np.shape(found) == (() if name in JOINT else (d,))
    assert np.asarray(found).dtype == np.float64
    frame = pd.DataFrame(y, columns=prediction.output_names)
    for written in (y.tolist(), np.asfortranarray(y), frame, frame[frame.columns[::-1]], pl.from_pandas(frame)):
        np.testing.assert_array_equal(METRICS[name](prediction, written, 1.0), found)
    assert metrics.pit(prediction, y).shape == (n, d)
    assert metrics.pinball(prediction, y, q).shape == (d, len(q))
    if d == 1:
        for flat in (y[:, 0], y[:, 0].tolist(), pd.Series(y[:, 0]), pl.Series(y[:, 0])):
            number = METRICS[name](prediction, flat, 1.0)
            assert isinstance(number, float)
            assert number == np.ravel(found)[0]
        assert metrics.pit(prediction, y[:, 0]).shape == (n, 1)
        assert metrics.pinball(prediction, y[:, 0], q).shape == (len(q),)


@every_metric
def test_integers_are_numbers(name):
    prediction = same(logistic, 3)
    assert METRICS[name](prediction, [-1, 0, 2], 1.0) == METRICS[name](prediction, [-1.0, 0.0, 2.0], 1.0)


# --- proper scores

PROPER = {
    **{name: METRICS[name] for name in ("nll", "crps", "energy_score", "interval_score")},
    **{f"pinball {q}": lambda p, y, unit, q=q: metrics.pinball(p, y, q) for q in (0.05, 0.3, 0.5, 0.9)},
}


@pytest.mark.parametrize("truth", [norm, logistic], ids=lambda law: law.name)
@pytest.mark.parametrize("name", PROPER)
def test_no_other_law_scores_better_than_the_truth(name, truth):
    """The expected score is an integral over the truth's levels; rivals differ by far more than its error."""
    u = middles(4000)
    y = truth.ppf(u)

    def expected(law, loc=0.0, scale=1.0):
        return PROPER[name](same(law, len(u), loc, scale), y, 1.0)

    best = expected(truth)
    other = logistic if truth is norm else norm
    rivals = [(truth, 0.3, 1.0), (truth, -0.3, 1.0), (truth, 0.0, 0.7), (truth, 0.0, 1.5), (other, 0.2, 1.0)]
    quantile = name.startswith("pinball")
    for law, loc, scale in rivals:
        if not (quantile and abs(loc + scale * law.ppf(float(name[8:])) - truth.ppf(float(name[8:]))) < 0.05):
            assert expected(law, loc, scale) > best + 1e-4


def test_no_other_law_scores_better_on_recorded_values():
    """rounded_nll is proper for the rounded y: the sum over cells is exact, no draws."""
    step, cells = 0.8, np.arange(-15, 16)
    y = step * cells
    weight = norm.cdf(y + step / 2) - norm.cdf(y - step / 2)

    def expected(loc, scale):
        each = [metrics.rounded_nll(same(norm, 1, loc, scale), [v], step) for v in y]
        return float(np.dot(weight, each))

    best = expected(0.0, 1.0)
    assert best == pytest.approx(stats.entropy(weight[weight > 0.0]) + math.log(step), abs=1e-12)
    for loc, scale in ((0.2, 1.0), (-0.2, 1.0), (0.0, 0.8), (0.0, 1.2), (0.1, 1.1)):
        assert expected(loc, scale) > best + 1e-3


def test_the_truth_pays_what_theory_says():
    """Entropy, E|Y - Y'| / 2, and the width of the interval with its tails' mean excess."""
    u = middles(200_000)
    for law, entropy, half_distance in ((norm, norm.entropy(), 1.0 / math.sqrt(math.pi)), (logistic, 2.0, 1.0)):
        y, truth = law.ppf(u), same(law, len(u))
        assert metrics.nll(truth, y) == pytest.approx(entropy, abs=1e-4)
        assert metrics.crps(truth, y) == pytest.approx(half_distance, abs=1e-4)
        assert metrics.energy_score(truth, y) == pytest.approx(half_distance, abs=1e-4)
    # E score = -(2 / alpha) (E[Y; Y < l] - E[Y; Y > u]), and for the normal E[Y; Y > u] is the density at u.
    y, truth = norm.ppf(u), same(norm, len(u))
    expected = 2.0 / 0.1 * 2.0 * norm.pdf(norm.ppf(0.95))
    assert metrics.interval_score(truth, y, level=0.9) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["nll", "energy_score"])
def test_joint_scores_see_the_dependence(name):
    """The truth has correlation 0.8; marginals alone cannot tell its rivals. Over seeds a score varies by 2e-4."""
    n, rho = 4096, 0.8
    z = stats.qmc.MultivariateNormalQMC(np.zeros(2), rng=1).random(n)
    y = np.stack([z[:, 0], rho * z[:, 0] + math.sqrt(1.0 - rho**2) * z[:, 1]], 1)
    scores = {r: METRICS[name](CorrelatedNormal(n, r), y, 1.0) for r in (rho, 0.0, -0.5, 0.98)}
    assert all(scores[r] > scores[rho] + 0.005 for r in scores if r != rho)
    if name == "nll":
        assert scores[rho] == pytest.approx(2.0 * norm.entropy() + 0.5 * math.log(1.0 - rho**2), abs=0.01)


@cases
def test_crps_is_twice_the_integral_of_the_pinball_loss(case):
    prediction = case.prediction(5)
    y = case.outcomes(prediction)
    t, weight = np.polynomial.legendre.leggauss(400)
    t, weight = 0.5 * (t + 1.0), 0.5 * weight
    q = t**3 * (10.0 - 15.0 * t + 6.0 * t**2)  # flat at both ends, where quantiles run away
    slope = 30.0 * t**2 * (1.0 - t) ** 2
    integral = 2.0 * metrics.pinball(prediction, y, q) @ (weight * slope)
    np.testing.assert_allclose(integral, metrics.crps(prediction, y), rtol=1e-4)


def test_crps_is_the_integral_it_says():
    prediction, y = same(logistic, 1, 0.4, 1.7), 2.0
    below = integrate.quad(lambda t: logistic.cdf(t, 0.4, 1.7) ** 2, -80.0, y)[0]
    above = integrate.quad(lambda t: logistic.sf(t, 0.4, 1.7) ** 2, y, 80.0)[0]
    assert metrics.crps(prediction, [y]) == pytest.approx(below + above, rel=1e-8)


@cases
def test_a_weight_is_a_repetition(case):
    prediction = case.prediction()
    y, times = case.outcomes(prediction), np.random.default_rng(2).integers(0, 4, 40)
    index = np.repeat(np.arange(40), times)
    weighted = metrics.nll(prediction, y, sample_weight=times)
    assert weighted == pytest.approx(metrics.nll(prediction.rows(index), y[index]), rel=1e-12)
    assert metrics.nll(prediction, y, sample_weight=0.3 * times) == pytest.approx(weighted, rel=1e-12)


# --- calibration


@cases
def test_the_truth_is_calibrated(case):
    """Quantiles at the middles of n equal cells: every share is exact, up to a value on a level."""
    n = 1000
    prediction = Independent(case.law, np.zeros((n, case.d)), np.ones((n, case.d)))
    y = np.repeat(case.law.ppf(middles(n))[:, None], case.d, 1)
    assert metrics.ece(prediction, y) == pytest.approx(0.0, abs=1e-12)
    for level in (0.1, 0.5, 0.9, 0.95):
        np.testing.assert_allclose(metrics.coverage(prediction, y, level), level, atol=1.001 / n)
    drawn = case.outcomes(case.prediction(2000), seed=3)
    assert metrics.ece(case.prediction(2000), drawn) < metrics.ece_band(2000 * case.d, quantile=0.999)
    pit = metrics.pit(case.prediction(2000), drawn)
    assert stats.kstest(pit.ravel(), "uniform").pvalue > 1e-3


def test_ece_of_a_law_that_is_too_wide():
    """Y standard normal, predicted with twice the spread: P(PIT <= q) = Phi(2 Phi^-1(q))."""
    y = norm.ppf(middles(100_000))
    q = np.arange(1, 10) / 10
    expected = np.abs(norm.cdf(2.0 * norm.ppf(q)) - q).sum() / 10
    assert metrics.ece(same(norm, len(y), 0.0, 2.0), y) == pytest.approx(expected, abs=1e-5)
    covered = 2.0 * norm.cdf(2.0 * norm.ppf(0.95)) - 1.0
    assert metrics.coverage(same(norm, len(y), 0.0, 2.0), y) == pytest.approx(covered, abs=1e-4)


@given(n=st.integers(1, 400), quantile=st.sampled_from([0.05, 0.5, 0.95]))
def test_the_band_is_the_binomial_one(n, quantile):
    """With two levels the ECE is |B / n - 1/2| / 2 for a fair binomial B, whose law is known."""
    half = np.abs(np.arange(n + 1) / n - 0.5) / 2.0
    order = np.argsort(half, kind="stable")
    cumulative = stats.binom.pmf(np.arange(n + 1), n, 0.5)[order].cumsum()
    # 4,000 simulations know a level to 0.008 (one error), so five errors either way.
    low, high = (half[order][np.searchsorted(cumulative, quantile + error)] for error in (-0.04, 0.04))
    assert low <= metrics.ece_band(n, levels=2, quantile=quantile, n_simulations=4000) <= high


def test_the_band_is_seeded_and_shrinks_like_a_root():
    assert metrics.ece_band(300) == metrics.ece_band(300, random_state=0) != metrics.ece_band(300, random_state=1)
    assert metrics.ece_band(300, random_state=np.random.default_rng(0)) == metrics.ece_band(300)
    assert metrics.ece_band(40_000) / metrics.ece_band(400) == pytest.approx(0.1, rel=0.05)
    # Mean of |N(0, q (1 - q) / n)| over the levels, which the docstring rounds to 0.3.
    q = np.arange(1, 11) / 10
    mean = math.sqrt(2.0 / math.pi) * np.sqrt(q * (1.0 - q)).mean()
    bands = [metrics.ece_band(10_000, quantile=level, n_simulations=4000) for level in middles(50)]
    assert np.mean(bands) * 100.0 == pytest.approx(mean, rel=0.02)


# --- recorded values


@given(y=st.floats(-30.0, 30.0), step=st.floats(1e-6, 10.0), scale=st.floats(0.5, 5.0))
def test_the_probability_of_a_cell_of_a_normal(y, step, scale):
    """On the lower side SciPy's CDF is exact to rounding; the upper side is its mirror image."""
    found = metrics.rounded_nll(same(norm, 1, 0.0, scale), [y], step)
    assert found == pytest.approx(metrics.rounded_nll(same(norm, 1, 0.0, scale), [-y], step), rel=1e-9, abs=1e-9)
    low, high = (-abs(y) - step / 2) / scale, (-abs(y) + step / 2) / scale
    mass = norm.cdf(high) - norm.cdf(low)
    if mass > 1e-300:
        tolerance = 1e-9 + 1e-14 * norm.cdf(high) / mass + 1e-14 * (1.0 + abs(y)) / step
        assert found == pytest.approx(math.log(step) - math.log(mass), abs=tolerance)


@pytest.mark.parametrize("y", [-2000.0, -800.0, 800.0, 2000.0])
def test_the_probability_of_a_cell_where_the_cdf_has_rounded_to_zero_or_one(y):
    """The logistic law's tail is e^-|y|, so the cell holds e^-|y| 2 sinh(step / 2)."""
    for step in (0.01, 1.0, 5.0):
        expected = abs(y) - math.log(2.0 * math.sinh(step / 2.0)) + math.log(step)
        assert metrics.rounded_nll(same(logistic, 1), [y], step) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("step", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-30, 1e-300])
@pytest.mark.parametrize("case", [*CASES, None], ids=str)
def test_narrow_cells_give_the_density(case, step):
    prediction = CorrelatedNormal(40, 0.7) if case is None else case.prediction()
    y = CASES[2].outcomes(prediction) if case is None else case.outcomes(prediction)
    y[0] += 30.0  # far in the upper tail, where the PIT of several outputs has rounded to one
    found = metrics.rounded_nll(prediction, y, step)
    assert found == pytest.approx(metrics.nll(prediction, y), abs=step + 1e-6)


def test_a_cell_narrower_than_the_spacing_of_floats_gives_the_density():
    """Next to 1e8 floats are 1.5e-8 apart: the ends of the cell are not where they should be."""
    prediction = same(logistic, 1, 1e8, 1e-3)
    assert metrics.rounded_nll(prediction, [1e8], 2e-8) == pytest.approx(metrics.nll(prediction, [1e8]), rel=1e-12)


def test_wide_cells_of_several_outputs_follow_the_chain():
    """P(Y1 in its cell) P(Y2 in its cell | Y1 = y1), from SciPy's conditional normals."""
    rho, y, step = 0.7, np.array([[0.4, -0.9], [-1.0, 1.5], [2.0, 2.5]]), np.array([0.5, 1.2])
    first = norm.cdf(y[:, 0] + 0.25) - norm.cdf(y[:, 0] - 0.25)
    law = norm(rho * y[:, 0], math.sqrt(1.0 - rho**2))
    second = law.cdf(y[:, 1] + 0.6) - law.cdf(y[:, 1] - 0.6)
    expected = -np.log(first * second / step.prod()).mean()
    assert metrics.rounded_nll(CorrelatedNormal(3, rho), y, step) == pytest.approx(expected, rel=1e-12)


@cases
def test_independent_outputs_add_up(case):
    prediction = case.prediction()
    y = case.outcomes(prediction)
    alone = [
        metrics.rounded_nll(Independent(case.law, prediction.loc[:, [j]], prediction.scale[:, [j]]), y[:, j], 0.3 + j)
        for j in range(case.d)
    ]
    assert metrics.rounded_nll(prediction, y, 0.3 + np.arange(case.d)) == pytest.approx(sum(alone), rel=1e-9)


def test_cells_share_one_unit_of_probability():
    step = 0.7
    each = [metrics.rounded_nll(same(logistic, 1, 0.2, 1.3), [step * k], step) for k in range(-90, 91)]
    assert np.sum(step * np.exp(np.negative(each))) == pytest.approx(1.0, abs=1e-12)


@given(log_spread=st.floats(-300.0, 3.0), d=st.integers(1, 3), away=st.sampled_from([0.0, 0.2, 0.4]))
def test_a_spike_earns_no_more_than_its_cell(log_spread, d, away):
    """As the predicted law closes in on the recorded value the NLL falls for ever, this does not."""
    step, spread = 0.1, 10.0**log_spread
    prediction = Independent(logistic, np.full((4, d), 0.3), np.full((4, d), spread))
    y = np.full((4, d), 0.3 + away * step)
    found = metrics.rounded_nll(prediction, y, step)
    assert found >= d * math.log(step) - 1e-12
    if log_spread < -3.0:
        assert found == pytest.approx(d * math.log(step), abs=1e-4)
        assert away or metrics.nll(prediction, y) < found


def test_a_value_outside_a_declared_support_has_no_likelihood():
    prediction = same(stats.expon, 2)
    assert metrics.rounded_nll(prediction, [1.0, -3.0], 0.5) == math.inf == metrics.nll(prediction, [1.0, -3.0])
    edge = metrics.rounded_nll(prediction, [0.0, 0.0], 0.5)  # half of the cell lies outside
    assert edge == pytest.approx(-math.log(-math.expm1(-0.25) / 0.5), rel=1e-12)


@given(
    step=st.sampled_from([1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 1 / 3, 1.0, 2.5, 24.5, 1000.0]),
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(60, 300),
    spread=st.integers(2, 2000),
    offset=st.sampled_from([0.0, 0.5, -7.3]),
    unit=st.floats(1e-9, 1e9),
)
def test_a_grid_shows_its_step_in_every_unit(step, seed, n, spread, offset, unit):
    """Enough rows to hold two neighbours, or two gaps without a common factor, with near certainty."""
    k = np.random.default_rng(seed).integers(0, spread + 1, n)
    k[:2] = 0, 1
    y = step * (k + offset)
    np.testing.assert_allclose(metrics.recording_step(y), step, rtol=1e-9)
    np.testing.assert_allclose(metrics.recording_step(unit * y), unit * step, rtol=1e-9)
    np.testing.assert_allclose(metrics.recording_step((y - y.mean()) / y.std()) * y.std(), step, rtol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 300))
def test_a_continuous_law_shows_its_smallest_gap(seed, n):
    y = np.random.default_rng(seed).normal(size=n)
    found = metrics.recording_step(y)[0]
    # With a handful of gaps a common measure can turn up by chance; it then is a smaller step, never a larger.
    assert found == pytest.approx(np.diff(np.sort(y)).min(), rel=1e-6) or (n < 10 and found < np.diff(np.sort(y)).min())


def test_a_prediction_is_only_read():
    prediction = CASES[2].prediction()
    y = CASES[2].outcomes(prediction)
    for array in (y, prediction.loc, prediction.scale):
        array.flags.writeable = False
    for metric in METRICS.values():
        metric(prediction, y, 1.0)
