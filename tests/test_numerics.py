"""Bracketed inversion on awkward functions, and the quasi-random points."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ogive.errors import NumericalError
from ogive.numerics import MAX_NEWTON_STEPS, bracketed_newton, sobol_points

UNIT = torch.finfo(torch.float64).eps


def f64(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def identity(t):
    return t, torch.zeros_like(t)


def cubic(t):
    """Flat at zero, where the slope vanishes."""
    return t**3, (3.0 * t**2).log()


def steep(t):
    return 1e8 * t, torch.full_like(t, math.log(1e8))


def nearly_flat(t):
    return 1e-9 * t, torch.full_like(t, math.log(1e-9))


def kinked(t):
    """Slopes 1e-6 and 1e6 side by side; from the side of the steep one, a root on the other looks close."""
    return torch.where(t < 0, 1e-6 * t, 1e6 * t), torch.where(t < 0, math.log(1e-6), math.log(1e6)).to(t)


def staircase(t):
    """Slow rises with steps of height one and width 1e-3 between them."""
    inside = 1e3 * (t - t.round())
    value = t.round() + 1e-3 * t + 0.5 * inside.tanh()
    slope = 1e-3 + 0.5e3 / inside.clamp(-300, 300).cosh() ** 2
    return value, slope.log()


def logistic_tail(t):
    """Saturates: Newton's first steps from the tail overshoot by far."""
    return t.sigmoid(), torch.nn.functional.logsigmoid(t) + torch.nn.functional.logsigmoid(-t)


def sinh(t):
    return t.sinh(), t.abs() + torch.log1p(torch.exp(-2.0 * t.abs())) - math.log(2.0)


def wrong_slope(t):
    """A slope that is off by a factor of a thousand must cost steps, not the answer."""
    return t + 0.1 * t.sin(), torch.full_like(t, math.log(1e-3))


AWKWARD = {
    "identity": (identity, f64(-3.0, 0.0, 1e-12, 7.5)),
    "cubic": (cubic, f64(-8.0, -1e-9, 1e-6, 27.0)),
    "steep": (steep, f64(-5e8, 1.0, 3e3)),
    "nearly flat": (nearly_flat, f64(-1e-9, 4e-10, 3e-8)),
    "kinked": (kinked, f64(-1e-6, -1e-9, 1e-9, 2e6)),
    "staircase": (staircase, f64(-2.3, -0.5, 0.001, 0.4999, 1.5, 3.25)),
    "logistic tail": (logistic_tail, f64(1e-9, 0.5, 0.999999)),
    "sinh": (sinh, f64(-1e100, -1.0, 1e-9, 1e200)),
    "wrong slope": (wrong_slope, f64(-2.0, 0.3, 9.0)),
}
BRACKETS = {"around": (-1.0, 1.0), "far below": (-1e3, -999.0), "far above": (50.0, 50.5), "one point": (2.0, 2.0)}


def solved(rising, target, root, reach) -> bool:
    """Near enough in t, or in value: next to a kink a value of 1e-9 can be far in t, and t a unit far in value."""
    step = 4.0 * UNIT**0.5 * reach
    near = (rising(root - step)[0] <= target) & (rising(root + step)[0] >= target)
    return bool((near | ((rising(root)[0] - target).abs() <= 1e-8 * target.abs().clamp_min(1.0))).all())


@pytest.mark.parametrize("bracket", BRACKETS)
@pytest.mark.parametrize("name", AWKWARD)
def test_every_awkward_function_is_inverted_from_every_bracket(name, bracket):
    rising, target = AWKWARD[name]
    low, high = (torch.full_like(target, end) for end in BRACKETS[bracket])
    if name == "sinh":
        low, high = low.clamp(-700, 700), high.clamp(-700, 700)  # beyond, it leaves the range of a float
    root = bracketed_newton(rising, target, low, high)
    # The root is settled to its scale, which is the larger of |t| and the bracket it was found in.
    reach = torch.maximum(root.abs().clamp_min(1.0), (root - low).abs() + (root - high).abs())
    assert solved(rising, target, root, reach)


@pytest.mark.parametrize("bracket", BRACKETS)
@pytest.mark.parametrize("name", ["identity", "steep", "nearly flat", "logistic tail"])
def test_smooth_functions_are_inverted_to_the_last_digits(name, bracket):
    rising, target = AWKWARD[name]
    low, high = (torch.full_like(target, end) for end in BRACKETS[bracket])
    root = bracketed_newton(rising, target, low, high)
    reach = torch.maximum(root.abs().clamp_min(1.0), (root - low).abs() + (root - high).abs())
    step = 32.0 * UNIT * reach
    assert bool((rising(root - step)[0] <= target).all())
    assert bool((rising(root + step)[0] >= target).all())


@given(
    slope=st.floats(1e-6, 1e6),
    bend=st.floats(0.0, 0.99),
    target=st.floats(-1e6, 1e6),
    start=st.integers(-1000, 1000),
    width=st.floats(0.0, 1e3),
)
def test_any_rising_function_is_inverted_from_any_bracket(slope, bend, target, start, width):
    def rising(t):
        return slope * (t + bend * t.sin()), (slope * (1.0 + bend * t.cos())).log()

    low, high = f64(start), f64(start + width)
    root = bracketed_newton(rising, f64(target), low, high)
    assert solved(rising, f64(target), root, root.abs() + (root - low).abs() + (root - high).abs() + 1.0)


def test_a_jump_across_the_target_is_found_to_the_float():
    def jump(t):
        return torch.where(t < 0.3, t - 5.0, t + 5.0), torch.zeros_like(t)

    root = bracketed_newton(jump, f64(0.0), f64(-1.0), f64(1.0))
    assert root.item() == pytest.approx(0.3, abs=1e-14)


def test_a_flat_stretch_at_the_target_gives_a_point_of_it():
    """Exactly on the target with no slope, Newton's step is nought over nought."""

    def flat(t):
        return torch.where(t.abs() < 1.0, 0.0, t), torch.where(t.abs() < 1.0, -math.inf, 0.0).to(t)

    root = bracketed_newton(flat, f64(0.0), f64(-4.0), f64(3.0))
    assert abs(root.item()) <= 1.0


def test_elements_do_not_wait_for_or_change_one_another():
    target = f64(-2.3, 0.001, 0.4999, 3.25)
    low, high = torch.full_like(target, -9.0), torch.full_like(target, 9.0)
    together = bracketed_newton(staircase, target, low, high)
    alone = torch.cat([bracketed_newton(staircase, t[None], f64(-9.0), f64(9.0)) for t in target])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-9)


def test_a_tolerance_saves_steps_and_is_kept():
    """In units of the value, so that it means the same on a steep stretch and on a flat one."""
    calls = {0.0: 0, 1.0: 0}
    for tolerance in calls:

        def counted(t, tolerance=tolerance):
            calls[tolerance] += 1
            return sinh(t)

        root = bracketed_newton(counted, f64(1e4), f64(0.0), f64(20.0), tolerance=tolerance)
        assert math.sinh(root.item()) == pytest.approx(1e4, rel=1e-12, abs=1e-4 * tolerance)
    assert calls[1.0] < calls[0.0]


@pytest.mark.parametrize("start", [-30.0, 9.9, 9.0, math.nan, math.inf])
def test_a_start_saves_steps_and_changes_no_root(start):
    points = []

    def watched(t):
        points.append(t.item())
        return sinh(t)

    root = bracketed_newton(watched, f64(1e4), f64(0.0), f64(20.0), start=f64(start), holds=True)
    assert root.item() == pytest.approx(math.asinh(1e4), abs=1e-12)
    assert points[0] == (start if 0.0 <= start <= 20.0 else 10.0)  # and the ends of a bracket that holds stay unasked


def test_float32_settles_too():
    root = bracketed_newton(steep, torch.tensor([3e3]), torch.tensor([-1.0]), torch.tensor([1.0]))
    assert root.dtype == torch.float32
    assert root.item() == pytest.approx(3e-5, abs=1e-6)


@pytest.mark.parametrize("where", ["everywhere", "within", "target"])
def test_nan_is_an_error(where):
    def rising(t):
        value = torch.full_like(t, math.nan) if where == "everywhere" else t
        return torch.where((t > 0.2) & (t < 0.4), math.nan, value) if where == "within" else value, torch.zeros_like(t)

    target = f64(math.nan if where == "target" else 0.3, 0.1)
    with pytest.raises(NumericalError, match=f"inversion must settle within {MAX_NEWTON_STEPS} steps; got .* of 2"):
        bracketed_newton(rising, target, f64(-1.0, -1.0), f64(1.0, 1.0))


@pytest.mark.parametrize(("target", "end"), [(-0.5, "low"), (1.5, "high")])
def test_a_target_beyond_the_range_is_an_error(target, end):
    with pytest.raises(NumericalError, match=f"inversion must start from a bracket; got 1 targets beyond every {end}"):
        bracketed_newton(logistic_tail, f64(target, 0.5), f64(-1.0, -1.0), f64(1.0, 1.0))


@pytest.mark.parametrize("n_dims", [1, 2, 5])
def test_sobol_points_lie_inside_and_fill_the_cube(n_dims):
    points = sobol_points(256, n_dims)
    assert points.shape == (256, n_dims) and points.dtype == torch.float64
    assert bool(((points > 0) & (points < 1)).all()) and bool(points.logit().isfinite().all())
    for column in points.unbind(1):  # a net: one point in each of 256 equal cells
        assert sorted((column * 256).floor().long().tolist()) == list(range(256))


def test_sobol_points_are_the_same_at_every_call_and_differ_by_seed():
    assert torch.equal(sobol_points(64, 3), sobol_points(64, 3))
    assert not torch.equal(sobol_points(64, 3), sobol_points(64, 3, seed=1))
    assert sobol_points(64, 0).shape == (64, 0)
