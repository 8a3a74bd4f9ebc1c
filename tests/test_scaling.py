"""The first layer: standardised features with far values drawn in, and the affine map of the outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ogive.nn.scaling import FeatureScaling, OutputScaling

ANY = st.floats(allow_nan=False, allow_infinity=False, width=64)
TABLES = arrays(float, st.tuples(st.integers(2, 5), st.just(2)), elements=ANY)


def f64(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def fitted(kind, values):
    scaling = kind(len(values[0]))
    scaling.fit(f64(values))
    return scaling


def test_features_are_standardised_and_drawn_in():
    x = np.random.default_rng(0).normal(7.0, 3.0, (500, 2))
    z = (x - x.mean(0)) / x.std(0)
    found = fitted(FeatureScaling, x)(f64(x))
    np.testing.assert_allclose(found.mT, z / np.sqrt(1.0 + (z / 8.0) ** 2), rtol=1e-12)


def test_features_within_two_deviations_move_by_under_three_per_cent():
    scaling = FeatureScaling(1)
    x = torch.linspace(-2, 2, 101, dtype=torch.float64)[:, None]
    assert ((scaling(x).mT - x).abs() <= 0.031 * x.abs()).all()


@pytest.mark.parametrize("far", [1e3, 1e30, 1e300, 1.7e308])
def test_an_outlier_of_any_size_stays_within_reach(far):
    scaling = fitted(FeatureScaling, [[1e-300], [3e-300]])
    assert scaling(f64([[far], [-far]]))[0].tolist() == pytest.approx([8.0, -8.0])


def test_features_keep_their_order():
    x = torch.linspace(-100, 100, 401, dtype=torch.float64)[:, None]
    assert (FeatureScaling(1)(x)[0].diff() > 0).all()


def test_a_constant_column_is_centred_and_left_at_its_scale():
    scaling = fitted(FeatureScaling, [[0.1, 1e300], [0.1, 1e300], [0.1, 1e300]])
    assert scaling.scale.tolist() == [1.0, 1.0]
    assert scaling(f64([[0.1, 1e300]])).tolist() == [[0.0], [0.0]]
    outputs = fitted(OutputScaling, [[0.1], [0.1], [0.1]])
    assert outputs.scale.tolist() == [1.0] and outputs(f64([[0.1]])).tolist() == [[0.0]]
    assert outputs.log_jacobian.tolist() == [0.0]


@pytest.mark.parametrize("factor", [1e-300, 1e-12, 1.0, 2.0**40, 1e300])
def test_units_do_not_matter(factor):
    y = np.random.default_rng(1).normal(4.0, 2.0, (100, 1))
    scaling = fitted(OutputScaling, factor * y)
    np.testing.assert_allclose(scaling(f64(factor * y)), (y - y.mean()) / y.std(), rtol=1e-9, atol=1e-9)
    assert scaling.log_jacobian.item() == pytest.approx(-math.log(y.std()) - math.log(factor), rel=1e-12)


def test_a_small_spread_on_a_large_value_keeps_its_digits():
    y = 1e12 + np.arange(8.0)[:, None]
    found = fitted(OutputScaling, y)(f64(y))
    np.testing.assert_allclose(found.diff(dim=0), 1.0 / np.arange(8.0).std(), rtol=1e-12)


def test_a_range_goes_to_minus_one_and_one():
    scaling = OutputScaling(2)
    scaling.fit_range(f64([-2.0, -1e308]), f64([6.0, 1e308]))
    np.testing.assert_allclose(scaling(f64([[-2.0, -1e308], [6.0, 1e308], [2.0, 0.0]])), [[-1, -1], [1, 1], [0, 0]])
    assert scaling.log_jacobian[0].item() == pytest.approx(-math.log(4.0))


@given(table=TABLES, new=TABLES)
def test_any_finite_table_gives_finite_numbers(table, new):
    for kind in (FeatureScaling, OutputScaling):
        scaling = fitted(kind, table)
        assert scaling.center.isfinite().all() and scaling.scale.isfinite().all()
        assert (scaling.scale > 0).all()
        for values in (table, new):
            assert scaling(f64(values)).isfinite().all()
    assert fitted(FeatureScaling, table)(f64(new)).abs().max() <= 8.0


@given(table=arrays(float, (4, 1), elements=st.floats(-1e6, 1e6)))
def test_own_rows_have_mean_nought_and_deviation_one(table):
    scaling = fitted(OutputScaling, table)
    z = scaling(f64(table))
    if np.ptp(table) > max(1e-6 * np.abs(table).max(), 1e-300):  # below, floats have no digits left
        assert z.mean().item() == pytest.approx(0.0, abs=1e-6)
        assert z.std(unbiased=False).item() == pytest.approx(1.0, rel=1e-6)


def test_float32_rows_are_scaled_in_float64():
    scaling = fitted(FeatureScaling, [[16777216.0], [16777218.0]])
    assert scaling(torch.tensor([[16777218.0]])).dtype == torch.float64
