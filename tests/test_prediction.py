"""What is special to predictions: rows and outputs by name and place, no rows, and what cannot be asked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from ogive.errors import DataError, NotAvailableError
from ogive.nn.architecture import Architecture
from ogive.prediction import Prediction

OPEN = (None, None)
LAWS = {
    "line": Architecture(2, ((0,),) * 2, (OPEN,), units=3, groups=3, hidden=(8,)),
    "interval": Architecture(2, ((0,),) * 2, ((-2.0, 9.0),), units=3, groups=3, hidden=(8,)),
    "pair": Architecture(2, ((1, 0),) * 2, (OPEN,) * 2, units=3, groups=3, hidden=(8,)),
    "cycled pair": Architecture(2, ((0, 1), (1, 0)), (OPEN,) * 2, units=3, groups=3, hidden=(8,)),
}


def predict(name: str) -> Prediction:
    """Four rows of an untrained network."""
    generator = torch.Generator().manual_seed(0)
    network = LAWS[name].build(generator, torch.float64).eval()
    x = torch.randn(4, 2, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        return Prediction(network(x), ["a", "b"][: network.n_outputs])


@pytest.mark.parametrize("name", ["line", "interval", "pair", "cycled pair"])
def test_no_rows_have_no_answers(name):
    p = predict(name)[0:0]
    d = p.n_outputs
    y = np.empty((0, d))
    assert len(p) == 0 and list(p) == []
    assert p.logpdf(y).shape == p.energy_score(y).shape == (0,)
    assert p.logpdf(np.empty((3, 0, d))).shape == (3, 0)
    assert p.pdf_grid(*[[0.1, 0.2]] * d).shape == (0, *[2] * d)
    assert p.quantiles([0.1, 0.5, 0.9]).shape == (0, d, 3)
    assert p.mean().shape == p.var().shape == p.mode().shape == p.crps(y).shape == (0, d)
    assert p.cov().shape == (0, d, d)
    assert p.sample(5, 0).shape == ((5, 0) if d == 1 else (5, 0, d))
    assert p.cdf(y).shape == p.sf(y).shape == p.marginal(0).cdf(np.empty(0)).shape == (0,)
    assert p.logcdf(y, return_error=True).shape == (2, 0)
    if name != "cycled pair":
        assert p.pit(y).shape == p.inverse_pit(y).shape == (0, d)


def test_rows_are_taken_by_place_mask_and_list():
    p = predict("pair")
    y = p.sample(1, 0)[0]
    whole = p.logpdf(y)
    for index in (1, -1, np.int64(2), [3, 0], np.array([True, False, True, False]), slice(1, 3)):
        np.testing.assert_allclose(p[index].logpdf(np.atleast_2d(y[index])), np.atleast_1d(whole[index]), rtol=1e-12)
    for place in (4, -5):
        with pytest.raises(IndexError, match=rf"row must lie in 0\.\.3; got {place}\."):
            p[place]


POINTWISE = ("logpdf", "pdf", "logs", "cdf", "sf", "logcdf", "logsf")


def test_one_output_needs_no_axis_and_a_scalar_is_for_every_row():
    p = predict("line")
    y = p.sample(3, 0)
    for question in (getattr(p, name) for name in POINTWISE):
        whole = question(y)
        assert whole.shape == (3, 4) and whole.dtype == np.float64
        np.testing.assert_array_equal(question(y[..., None]), whole)
        np.testing.assert_allclose(question(y[1]), whole[1], rtol=1e-12)
        np.testing.assert_allclose(question(y[1][:, None]), whole[1], rtol=1e-12)
        np.testing.assert_allclose(question(0.3), question(np.full(4, 0.3)), rtol=1e-12)
    assert p.pit(y).shape == p.inverse_pit(p.pit(y)).shape == (3, 4, 1)
    np.testing.assert_allclose(p.inverse_pit(0.3)[:, 0], p.ppf(0.3), rtol=1e-12)
    assert p.crps(0.3).shape == p.crps(y[0]).shape == (4, 1) and p.energy_score(0.3).shape == (4,)


def test_draws_come_before_rows_and_outputs():
    p = predict("pair")
    y = p.sample(3, 0)
    for question in (getattr(p, name) for name in POINTWISE):
        whole = question(y)
        assert whole.shape == (3, 4)
        np.testing.assert_allclose(whole, [question(part) for part in y], rtol=1e-10)
    u = p.pit(y)
    assert u.shape == (3, 4, 2)
    np.testing.assert_allclose(p.inverse_pit(u), y, rtol=1e-9, atol=1e-9)


def test_frames_are_matched_by_name():
    p = predict("pair")
    y = p.sample(1, 0)[0]
    frame = pd.DataFrame({"b": y[:, 1], "other": 7.0, "a": y[:, 0]}, index=[9, 3, 5, 1])
    for name in (*POINTWISE, "pit", "crps", "energy_score"):
        np.testing.assert_array_equal(getattr(p, name)(frame), getattr(p, name)(y), err_msg=name)
    u = pd.DataFrame(p.pit(y), columns=["a", "b"])
    np.testing.assert_array_equal(p.inverse_pit(u[["b", "a"]]), p.inverse_pit(p.pit(y)))
    np.testing.assert_array_equal(p.marginal("b").cdf(frame["b"]), p.marginal("b").cdf(y[:, 1]))
    with pytest.raises(DataError, match=r"y must have the columns \['a', 'b'\]; got no 'b'\. Rename its columns\."):
        p.logpdf(frame[["a"]])


@pytest.mark.parametrize("name", LAWS)
def test_answers_have_the_shapes_of_the_contract(name):
    p = predict(name)
    d, y = p.n_outputs, p.sample(1, 0).reshape(4, p.n_outputs)
    assert [len(row) for row in p] == [1] * len(p) and len(p[1:3]) == 2
    shapes = {name: (4, d) for name in ("mean", "var", "std", "median", "mode")}
    shapes |= {"cov": (4, d, d), "interval": (4, d, 2)}
    assert {name: getattr(p, name)().shape for name in shapes} == shapes
    assert p.quantiles([0.1, 0.5, 0.9]).shape == (4, d, 3) and p.crps(y).shape == (4, d)
    assert p.logpdf(y).shape == p.cdf(y).shape == p.energy_score(y).shape == (4,)
    assert p.cdf(y, return_error=True).shape == (2, 4)
    if d == 1:
        assert p.ppf(0.3).shape == p.isf(0.3).shape == (4,)
        assert p.ppf([0.3, 0.4]).shape == p.isf([0.3, 0.4]).shape == (4, 2)


@pytest.mark.parametrize("size", [-1, 2.5, "7", None])
def test_sizes_that_no_sample_has(size):
    with pytest.raises(DataError, match=r"size must be a whole number from 0; got .*\. Use 100\."):
        predict("line").sample(size)


def test_no_draws_are_no_error():
    assert predict("pair").sample(0, 1).shape == (0, 4, 2) and predict("line").sample(0, 1).shape == (0, 4)


def test_a_prediction_says_what_it_is():
    assert repr(predict("pair")) == "Prediction(n_rows=4, outputs=['a', 'b'])"


def test_outputs_are_named_or_counted():
    p = predict("pair")
    y = p.sample(1, 0)[0]
    for j, name in enumerate(p.output_names):
        for output in (name, j, j - 2, np.int64(j)):
            assert p.marginal(output).output_names == [name]
            np.testing.assert_array_equal(p.marginal(output).cdf(y[:, j]), p.marginal(name).cdf(y[:, j]))
    one = predict("line")
    assert one.marginal("a") is one


@pytest.mark.parametrize("output", [2, -3, 0.5, None])
def test_places_that_no_output_has(output):
    with pytest.raises(DataError, match=r"output must lie in 0\.\.1; got .*\. Use its name or index\."):
        predict("pair").marginal(output)


def test_names_that_no_output_has():
    with pytest.raises(DataError, match=r"output must be one of \['a', 'b'\]; got 'z'\. Use its name or index\."):
        predict("pair").marginal("z")


@pytest.mark.parametrize("question", ["ppf", "isf"])
def test_questions_about_one_output_are_refused_for_more(question):
    with pytest.raises(
        NotAvailableError,
        match=rf"{question} must be asked of one output; got 2\. Use quantiles\.",
    ):
        getattr(predict("pair"), question)(0.5)


def test_a_mixture_of_chains_has_no_pit():
    p = predict("cycled pair")
    for question, name in ((p.pit, "the chain of conditional CDFs"), (p.inverse_pit, "the inverse of the chain")):
        with pytest.raises(
            NotAvailableError, match=f"{name}.* must come from one chain .* got a Mixture that has none"
        ):
            question(np.full((4, 2), 0.5))


@pytest.mark.parametrize("score", ["crps", "energy_score"])
def test_scores_take_one_point_a_row(score):
    with pytest.raises(DataError, match=r"y must hold one point a row; got leading axes \(3,\)\. Score them one at a"):
        getattr(predict("pair"), score)(np.zeros((3, 4, 2)))


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, -0.5, np.nan])
def test_coverages_that_no_interval_has(coverage):
    with pytest.raises(DataError, match=r"coverage must lie strictly between 0 and 1; got .*\. Use 0\.9 for 90 %\."):
        predict("line").interval(coverage)


def test_levels_that_no_quantile_has():
    with pytest.raises(DataError, match=r"q must lie strictly between 0 and 1; got 1\.0"):
        predict("line").ppf([0.5, 1.0])
    with pytest.raises(DataError, match=r"u must lie strictly between 0 and 1; got 0\.0"):
        predict("pair").inverse_pit(np.zeros((4, 2)))


def test_infinite_points_are_the_ends_of_the_law():
    p = predict("line")
    np.testing.assert_array_equal(p.cdf(np.inf), 1.0)
    np.testing.assert_array_equal(p.sf(np.inf), 0.0)
    np.testing.assert_array_equal(p.logcdf(-np.inf), -np.inf)
    np.testing.assert_array_equal(p.pdf(-np.inf), 0.0)
    np.testing.assert_array_equal(p.crps(np.inf), np.inf)
    np.testing.assert_array_equal(p.energy_score(-np.inf), np.inf)
