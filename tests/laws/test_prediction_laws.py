"""Laws of `Prediction`, the NumPy face, over every network: the same law in float64, in pieces, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import CENTER, SPREAD, Case
from scipy import stats

from ogive import pieces
from ogive import prediction as module
from ogive.errors import NotAvailableError
from ogive.prediction import Prediction

NAMES = ["a", "b", "c"]
TAILS = np.array([1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9])


@pytest.fixture(autouse=True)
def fewer_paths(monkeypatch):
    """How exact an average over paths is, the closed formulas of the oracle laws say; here they need not be many."""
    monkeypatch.setattr(module, "PATHS", 16)
    monkeypatch.setattr(module, "JOINT_PATHS", 32)


def predict(case: Case, n: int = 6) -> Prediction:
    return Prediction(case.network()(case.rows(n)), NAMES[: case.n_outputs])


def asked(p: Prediction, y: np.ndarray) -> dict[str, np.ndarray]:
    """Every question that has an answer for each row, rows first."""
    answers = {
        "logpdf": p.logpdf(y),
        "pdf": p.pdf(y),
        "logs": p.logs(y),
        "quantiles": p.quantiles([0.01, 0.5, 0.99]),
        "median": p.median(),
        "interval": p.interval(0.8),
        "mean": p.mean(),
        "var": p.var(),
        "std": p.std(),
        "cov": p.cov(),
        "mode": p.mode(),
        "crps": p.crps(y),
        "energy_score": p.energy_score(y, size=16),
    }
    for name in ("cdf", "sf", "logcdf", "logsf"):
        answers |= {name: getattr(p, name)(y), f"error of {name}": getattr(p, name)(y, return_error=True)[1]}
    if p.n_outputs == 1:
        answers |= {"ppf": p.ppf([0.1, 0.7]), "isf": p.isf([0.1, 0.7]), "ppf of one": p.ppf(0.3)}
    try:
        answers |= {"pit": p.pit(y), "inverse_pit": p.inverse_pit(np.full_like(y, 0.3))}
    except NotAvailableError:
        assert p.n_outputs > 1
    for name in p.output_names:
        answers |= {f"marginal {name} logpdf": p.marginal(name).logpdf(y[:, p.output_names.index(name)])}
        answers |= {f"marginal {name} cdf": p.marginal(name).cdf(y[:, p.output_names.index(name)])}
    return answers


def drawn(p: Prediction, seed: int = 0) -> np.ndarray:
    return p.sample(1, seed).reshape(len(p), p.n_outputs)


def test_every_answer_is_a_finite_number_for_each_row(mixed_case):
    p = predict(mixed_case)
    for name, values in asked(p, drawn(p)).items():
        assert values.dtype == np.float64, name
        assert len(values) == len(p), name
        assert np.isfinite(values).all(), name


def test_a_row_alone_answers_as_among_others(mixed_case):
    p = predict(mixed_case)
    y = drawn(p)
    whole, near = asked(p, y), mixed_case.within(1e-9)
    for i in (0, 3, -1):
        alone = asked(p[i], y[i : i + 1] if i >= 0 else y[-1:])
        for name, values in alone.items():
            np.testing.assert_allclose(values[0], whole[name][i], rtol=near, atol=near, err_msg=name)


def test_work_in_small_pieces_gives_the_same(mixed_case, monkeypatch):
    p = predict(mixed_case)
    y = drawn(p)
    whole, near = asked(p, y), mixed_case.within(1e-9)
    monkeypatch.setattr(pieces, "CELLS_AT_ONCE", 2)
    small = asked(p, y)
    for name, values in whole.items():
        np.testing.assert_allclose(small[name], values, rtol=near, atol=near, err_msg=name)


def test_slices_and_steps_are_rows(mixed_case):
    p = predict(mixed_case)
    y = drawn(p)
    whole, near = p.logpdf(y), mixed_case.within(1e-10)
    for index in (slice(2, 5), slice(None, None, 2), slice(-2, None), slice(None, None, -1), slice(4, 0, -2)):
        np.testing.assert_allclose(p[index].logpdf(y[index]), whole[index], rtol=near, atol=near)
    alone = [float(row.logpdf(y[i : i + 1])[0]) for i, row in enumerate(p)]
    np.testing.assert_allclose(alone, whole, rtol=near, atol=near)


def test_the_pit_of_draws_is_uniform_and_its_inverse_brings_them_back(chain_case):
    p = predict(chain_case, 4)
    y = p.sample(300, 1).reshape(300, 4, p.n_outputs)
    u = p.pit(y)
    for i in range(p.n_outputs):
        assert stats.kstest(u[..., i].ravel(), "uniform").pvalue > 1e-3
    inside = np.clip(u, 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(p.inverse_pit(inside), y, rtol=1e-6, atol=1e-6 * max(np.abs(y).max(), 1.0))


def test_ppf_inverts_the_cdf_out_to_the_tails(one_output_case):
    p = predict(one_output_case)
    scale = one_output_case.network().scale_y.scale.item()
    y = p.ppf(TAILS)
    np.testing.assert_allclose(p.cdf(y.T).T, np.broadcast_to(TAILS, y.shape), rtol=1e-6)
    lower, upper = y[:, :5], p.isf(TAILS[:5])
    np.testing.assert_allclose(p.cdf(lower.T), TAILS[:5, None].repeat(len(p), 1), rtol=1e-6)
    np.testing.assert_allclose(p.sf(upper.T), TAILS[:5, None].repeat(len(p), 1), rtol=1e-6)
    for k in range(5):  # ppf(cdf(y)) = y, from the side where the tail is small
        np.testing.assert_allclose(p.ppf(np.array([TAILS[k]]))[:, 0], lower[:, k], rtol=1e-6, atol=1e-6 * scale)
    assert (np.diff(y, axis=1) > 0).all()


def test_cdf_and_survival_are_two_sides_of_one_logit(one_output_case):
    p = predict(one_output_case)
    y = p.ppf(TAILS).T
    np.testing.assert_allclose(p.cdf(y) + p.sf(y), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(p.logcdf(y)), p.cdf(y), rtol=1e-12)
    np.testing.assert_allclose(np.exp(p.logsf(y)), p.sf(y), rtol=1e-12)
    np.testing.assert_allclose(p.pit(y[..., None])[..., 0], p.cdf(y), rtol=1e-12)
    assert (p.logsf(p.isf(1e-200)[None]) < -460 + 1).all()  # no 1 - F that would end at 1e-16


def test_questions_about_one_thing_agree(mixed_case):
    p = predict(mixed_case)
    y = drawn(p)
    np.testing.assert_allclose(p.logs(y), -p.logpdf(y))
    np.testing.assert_allclose(np.log(p.pdf(y)), p.logpdf(y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(p.std() ** 2, p.var(), rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(p.cov(), axis1=1, axis2=2), p.var(), rtol=1e-12)
    np.testing.assert_array_equal(p.median(), p.quantiles(0.5)[..., 0])
    np.testing.assert_array_equal(p.interval(0.9), p.quantiles([0.5 - 0.45, 0.5 + 0.45]))
    for i, name in enumerate(p.output_names):
        marginal = p.marginal(name)
        assert marginal.output_names == [name] and marginal.n_outputs == 1
        np.testing.assert_allclose(marginal.quantiles([0.1, 0.8])[:, 0], p.quantiles([0.1, 0.8])[:, i], rtol=1e-9)
        np.testing.assert_allclose(marginal.cdf(marginal.ppf([0.1, 0.8]).T).T, [[0.1, 0.8]] * len(p), rtol=1e-6)
        # Quadrature of the marginal against draws of the joint law.
        np.testing.assert_allclose(marginal.mean()[:, 0], p.mean()[:, i], atol=0.3 * marginal.std().max())


def test_each_outputs_own_cdf_is_that_of_its_marginal_and_ends_its_intervals(mixed_case):
    p = predict(mixed_case)
    y = drawn(p)
    found = p.marginal_pit(y)
    for i in range(p.n_outputs):
        np.testing.assert_allclose(found[:, i], p.marginal(i).cdf(y[:, i]), rtol=1e-9, atol=1e-12)
    for end, level in zip(np.moveaxis(p.interval(0.8), -1, 0), (0.1, 0.9), strict=True):
        np.testing.assert_allclose(p.marginal_pit(end), level, rtol=1e-6)
    np.testing.assert_allclose(p.marginal_pit(np.stack([y, y]))[1], found, rtol=1e-12)


def test_draws_kept_from_one_question_answer_the_next_alike(several_outputs_case, monkeypatch):
    p, y = predict(several_outputs_case), drawn(predict(several_outputs_case))
    kept = [p.crps(y), p.energy_score(y, 32), p.cov(), p.mode()]
    monkeypatch.setattr(pieces, "KEPT_ROWS", 0)
    p = predict(several_outputs_case)
    for one, other in zip(kept, [p.crps(y), p.energy_score(y, 32), p.cov(), p.mode()], strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_joint_cdf_is_that_of_its_outputs_and_of_its_draws(several_outputs_case, monkeypatch):
    """Outputs without an end drop out; the rest agrees with a count of draws to the errors of both."""
    monkeypatch.setattr(module, "PATHS", 256)
    monkeypatch.setattr(module, "JOINT_PATHS", 512)
    p = predict(several_outputs_case, 2)
    y = p.median() + 0.3 * p.std()
    draws = p.sample(4000, 2)
    for question, side, end in ((p.cdf, draws <= y, np.inf), (p.sf, draws > y, -np.inf)):
        found, error = question(y, return_error=True)
        share = side.all(-1).mean(0)
        assert (np.abs(found - share) < 4.0 * np.hypot(error, np.sqrt(share * (1.0 - share) / 4000)) + 1e-3).all()
        for i in range(p.n_outputs):
            alone = np.where(np.arange(p.n_outputs) == i, y, end)
            marginal = getattr(p.marginal(i), question.__name__)(y[:, i])
            found, error = question(alone, return_error=True)
            np.testing.assert_allclose(found, marginal, atol=4.0 * error.max() + 2e-3)
        np.testing.assert_array_equal(question(np.full_like(y, end)), 1.0)
        np.testing.assert_array_equal(question(np.where(np.arange(p.n_outputs) == 0, -end, y)), 0.0)


def test_log_probabilities_and_their_errors_are_those_of_probabilities(mixed_case):
    p = predict(mixed_case)
    y = drawn(p)
    for name in ("cdf", "sf"):
        value, error = getattr(p, name)(y, return_error=True)
        log_value, relative = getattr(p, "log" + name)(y, return_error=True)
        np.testing.assert_allclose(np.exp(log_value), value, rtol=1e-12)
        np.testing.assert_allclose(value * relative, error, rtol=1e-12)
        np.testing.assert_array_equal(getattr(p, name)(y), value)
        assert (error == 0.0).all() if p.n_outputs == 1 else (error >= 0.0).all()


def test_points_are_minima_of_their_scores(one_output_case):
    """The CRPS as a mean of pinball losses; the median as the minimum of the expected absolute error."""
    p = predict(one_output_case, 3)
    y = drawn(p)[:, 0]
    levels = (np.arange(400) + 0.5) / 400
    quantiles = p.ppf(levels)
    pinball = np.maximum(levels * (y[:, None] - quantiles), (levels - 1) * (y[:, None] - quantiles))
    np.testing.assert_allclose(p.crps(y)[:, 0], 2 * pinball.mean(1), rtol=1e-2, atol=2e-3 * p.std().max())
    np.testing.assert_allclose(p.mean()[:, 0], quantiles.mean(1), atol=2e-2 * p.std().max())
    assert (p.pdf(p.mode()[:, 0]) >= 0.9 * p.pdf(quantiles.T).max(0)).all()


def test_the_energy_score_of_one_output_is_its_crps(one_output_case):
    p = predict(one_output_case, 3)
    y = drawn(p)
    np.testing.assert_allclose(p.energy_score(y, size=1024), p.crps(y)[:, 0], rtol=3e-2, atol=2e-3 * p.std().max())


def test_draws_are_seeded_and_of_the_right_shape(mixed_case):
    p = predict(mixed_case, 3)
    d = p.n_outputs
    assert p.sample(4, 0).shape == ((4, 3) if d == 1 else (4, 3, d))
    np.testing.assert_array_equal(p.sample(4, 0), p.sample(4, 0))
    assert (p.sample(4, 0) != p.sample(4, 1)).any()
    assert (p.sample(4) != p.sample(4)).any()
    for size in (1, 2):  # fewer draws than members
        assert np.isfinite(p[:1].sample(size, 7)).all()


@pytest.mark.parametrize("ranges", [1e3, 1e6, 1e20, 1e100, 1e250])
def test_far_points_have_numbers_for_answers(unbounded_case, ranges):
    p = predict(unbounded_case, 2)
    for sign in (-1.0, 1.0):
        y = np.tile(np.array(CENTER[: p.n_outputs]) + sign * ranges * 6.0 * np.array(SPREAD[: p.n_outputs]), (2, 1))
        assert np.isfinite(p.logpdf(y)).all()
        assert np.isfinite(p.logpdf(y[None])).all()
        assert not np.isnan(p.energy_score(y, size=16)).any()
        np.testing.assert_allclose(p.crps(y), np.abs(y - p.mean()), rtol=0.2)
        for i, name in enumerate(p.output_names):
            np.testing.assert_array_equal(p.marginal(name).cdf(y[:, i]) > 0.5, sign > 0)
        if unbounded_case.is_chain:
            assert not np.isnan(p.pit(y)).any()


@pytest.mark.parametrize("y", [1.7e308, -1.7e308, 5e-324, 0.0])
def test_the_ends_of_what_a_float_holds(mixed_case, y):
    p = predict(mixed_case, 2)
    point = np.full((2, p.n_outputs), y)
    assert not np.isnan(p.logpdf(point)).any()
    assert not np.isnan(p.crps(point)).any()
    if mixed_case.is_chain:
        assert not np.isnan(p.pit(point)).any()


def test_outside_the_support_there_is_silence_but_no_nan(bounded_case):
    p = predict(bounded_case, 2)
    for i, (low, high) in enumerate(bounded_case.support):
        for end, step in ((low, -1.0), (high, 1.0)):
            if end is None:
                continue
            y = drawn(p)
            y[:, i] = end + step
            assert (p.logpdf(y) == -np.inf).all()
            assert (p.pdf(y) == 0.0).all()
            assert np.isfinite(p.crps(y)).all()
            assert (p.marginal(i).cdf(y[:, i]) == (step > 0)).all()
            if bounded_case.is_chain:
                assert not np.isnan(p.pit(y)).any()


def test_answers_touch_no_global_state(mixed_case):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_default_dtype()
    p = predict(mixed_case, 2)
    asked(p, drawn(p))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert torch.get_default_dtype() is before[2]
