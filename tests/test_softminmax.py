"""The soft min-max: derivatives, the plain formula it must equal, the bounds on its slope, the hard bracket."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ogive.nn.softminmax import hard_bracket, hard_inverse, soft_min_max, soft_min_max_of_lines

SHAPES = [(1, 1, 1, 1, 1), (2, 3, 4, 5, 6), (3, 8, 2, 1, 4), (1, 1, 5, 2, 3), (2, 6, 1, 3, 1)]


def network(shape, spread=1.0, dtype=torch.float64, seed=0):
    """point (f, q, n), bias (f, u, g, n) and log_weight (f, u, g)."""
    f, u, g, q, n = shape
    generator = torch.Generator().manual_seed(seed)

    def normal(*size):
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    return normal(f, q, n), spread * normal(f, u, g, n), spread * normal(f, u, g)


def plain_of_lines(value, log_slope):
    """The formula of the docstring for lines (..., u, g, q, n), from plain operations."""
    share, top = value.log_softmax(-4), value.logsumexp(-4)
    group_share = (-top).log_softmax(-3)
    return -(-top).logsumexp(-3), (group_share + (share + log_slope).logsumexp(-4)).logsumexp(-3)


def plain(point, bias, log_weight):
    weight = log_weight[..., None, None]
    value = weight.exp() * point[:, None, None] + bias[..., None, :]
    return plain_of_lines(value, weight.expand_as(value))


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_finite_differences(shape):
    given = [part.requires_grad_() for part in network(shape)]
    assert torch.autograd.gradcheck(soft_min_max, given)


@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_gradients_with_one_part_frozen(frozen):
    """Training asks for none with respect to the point, inversion for none but that."""
    given = [part.requires_grad_(k != frozen) for k, part in enumerate(network((2, 3, 2, 2, 3)))]
    assert torch.autograd.gradcheck(soft_min_max, given)


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_the_plain_formula(shape):
    fast, slow = ([part.clone().requires_grad_() for part in network(shape, 2.0)] for _ in range(2))
    cotangents = torch.randn(2, *fast[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for parts, function in ((fast, soft_min_max), (slow, plain)):
        torch.autograd.backward(list(function(*parts)), list(cotangents))
    for mine, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-11, atol=1e-11)


def test_a_second_derivative_is_refused_rather_than_wrong():
    """Its slope is there to be differentiated once; the curvature would miss what the forward pass kept."""
    point, bias, log_weight = network((1, 2, 2, 1, 3))
    value, _ = soft_min_max(point.requires_grad_(), bias, log_weight)
    (slope,) = torch.autograd.grad(value.square().sum(), point, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        slope.sum().backward()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("exponent", [-20, -7, 0, 7, 20])
@pytest.mark.parametrize("spread", [0.1, 3.0, 20.0])
def test_value_and_slope_are_those_of_the_plain_formula_at_extremes(dtype, tolerance, exponent, spread):
    """|y| to 1e6, slopes from e^-20 to e^20; powers of two keep the lines the same in any order of rounding."""
    point, bias, log_weight = network((3, 8, 8, 4, 5), dtype=dtype)
    point = point.sign() * 2.0**exponent
    log_weight = (spread * log_weight).clamp(-20, 20)
    found, wanted = tuple(soft_min_max(point, bias, log_weight)), plain(point, bias, log_weight)
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", [(2, 3, 2, 1, 3), (1, 2, 2, 3, 2, 2)])
def test_lines_of_any_value_and_slope_have_the_plain_formulas_jet_and_gradients(shape):
    generator = torch.Generator().manual_seed(0)
    value, log_slope = (2.0 * torch.randn(2, *shape, generator=generator, dtype=torch.float64)).unbind()
    torch.testing.assert_close(
        tuple(soft_min_max_of_lines(value, log_slope.exp())), plain_of_lines(value, log_slope), rtol=1e-12, atol=1e-12
    )
    parts = [value.requires_grad_(), log_slope.exp().requires_grad_()]
    assert torch.autograd.gradcheck(soft_min_max_of_lines, parts)


@given(
    point=arrays(float, (1, 3, 2), elements=st.floats(-1e6, 1e6)),
    bias=arrays(float, (1, 3, 4, 2), elements=st.floats(-1e6, 1e6)),
    log_weight=arrays(float, (1, 3, 4), elements=st.floats(-20, 20)),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_the_slope_lies_between_the_flattest_and_the_steepest_line(point, bias, log_weight, dtype):
    point, bias, log_weight = (torch.tensor(part, dtype=dtype) for part in (point, bias, log_weight))
    value, log_slope = soft_min_max(point, bias, log_weight)
    slack = 100 * torch.finfo(dtype).eps
    assert value.isfinite().all()
    assert (log_slope >= log_weight.min() - slack).all()
    assert (log_slope <= log_weight.max() + slack).all()


@given(
    point=st.floats(-1e30, 1e30),
    gap=st.floats(1e-6, 1e6),
    log_weight=arrays(float, (1, 2, 3), elements=st.floats(-10, 10)),
    bias=arrays(float, (1, 2, 3, 1), elements=st.floats(-50, 50)),
)
def test_it_never_falls(point, gap, log_weight, bias):
    points = torch.tensor([[[point], [point + gap]]], dtype=torch.float64)
    value, _ = soft_min_max(points, torch.tensor(bias), torch.tensor(log_weight))
    rounding = 64 * torch.finfo(torch.float64).eps * (1.0 + value.abs().max())
    assert value[0, 1, 0] >= value[0, 0, 0] - rounding


def test_equal_lines_have_a_closed_form():
    u, g = 5, 3
    point, bias, log_weight = torch.full((1, 1, 1), 0.7), torch.full((1, u, g, 1), 0.2), torch.full((1, u, g), 0.5)
    value, log_slope = soft_min_max(point, bias, log_weight)
    assert value.item() == pytest.approx(math.exp(0.5) * 0.7 + 0.2 + math.log(u) - math.log(g), rel=1e-6)
    assert log_slope.item() == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("reach", [1.0, 30.0, 3e3, 1e20])
def test_it_is_the_same_jet_where_no_gradients_are_wanted(dtype, reach):
    """Near zero, where no largest line is taken off, and far from it, one beside the other."""
    point, bias, log_weight = (part.to(dtype) for part in network((2, 3, 4, 2, 40), 2.0, seed=7))
    point = reach * point.sign() * point.abs() ** 3
    wanted = soft_min_max(point, bias, log_weight)
    with torch.no_grad():
        found = soft_min_max(point, bias, log_weight)
    longest = 1.0 + bias.abs().max() + (log_weight.exp().amax((1, 2))[:, None, None] * point.abs())
    rounding = 16.0 * torch.finfo(dtype).eps * longest
    assert ((found.value - wanted.value).abs() <= rounding).all()
    near = rounding < 1e-3
    assert ((found.log_slope - wanted.log_slope).abs() <= 8.0 * rounding)[near].all()
    assert found.log_slope.isfinite().all()


def test_nan_stays_nan_without_gradients():
    point, bias, log_weight = network((1, 2, 2, 1, 3))
    point[..., 1] = math.nan
    with torch.no_grad():
        value, log_slope = soft_min_max(point, bias, log_weight)
    assert value.isnan().flatten().tolist() == log_slope.isnan().flatten().tolist() == [False, True, False]


@pytest.mark.parametrize("spread", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_hard_bracket_holds_the_root(shape, spread):
    _, bias, log_weight = network(shape, spread, seed=3)
    f, _, _, q, n = shape
    target = 30.0 * torch.randn(f, q, n, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    low, high = hard_bracket(target, bias, log_weight)
    below, above = (soft_min_max(end, bias, log_weight).value for end in (low, high))
    rounding = 1e-12 * (1.0 + target.abs() + bias.abs().max())
    assert (below <= target + rounding).all()
    assert (above >= target - rounding).all()
    flattest = (-log_weight).exp().amax((1, 2))[:, None, None]
    units, groups = log_weight.shape[1:]
    assert (high - low <= (math.log(units) + math.log(groups)) * flattest * (1 + 1e-6) + 1e-9).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_hard_inverse_inverts_the_hard_minimum_of_maxima(shape):
    _, bias, log_weight = network(shape, 1.0, seed=5)
    f, _, _, q, n = shape
    target = 10.0 * torch.randn(f, q, n, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    point = hard_inverse(target, bias, log_weight)
    line = log_weight.exp()[..., None, None] * point[:, None, None] + bias[..., None, :]
    torch.testing.assert_close(line.amax(1).amin(1), target, rtol=1e-11, atol=1e-11)


def test_inputs_are_left_as_they_were():
    parts = network((2, 3, 4, 5, 6))
    before = [part.clone() for part in parts]
    soft_min_max(*parts)
    hard_bracket(parts[0], *parts[1:])
    for part, copy in zip(parts, before, strict=True):
        assert torch.equal(part, copy)


def test_no_gradient_is_a_denormal_number():
    point, bias, log_weight = network((2, 8, 8, 1, 256), spread=15.0, dtype=torch.float32)
    jet = soft_min_max(point, bias.requires_grad_(), log_weight)
    (grad,) = torch.autograd.grad((jet.value + jet.log_slope).sum(), bias)
    assert bool((grad == 0).any())  # lines so far from the winning one that they would have been denormal
    assert not bool(((grad != 0) & (grad.abs() < torch.finfo(torch.float32).tiny)).any())
