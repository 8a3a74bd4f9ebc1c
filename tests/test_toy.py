"""The toy tasks: densities that are densities, of the points that are drawn, and the score on them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ogive.datasets import toy

TASKS = pytest.mark.parametrize("task", toy.TOYS.values(), ids=toy.TOYS)


def midpoints(low, high, n):
    return low + (high - low) / n * (np.arange(n) + 0.5)


@TASKS
@pytest.mark.parametrize("x", [-1.0, -0.4, 0.3])
def test_density_integrates_to_one(task, x):
    # Midpoint rule. Its error comes from the cells that an edge of the support cuts: these are at most
    # perimeter / step many (64 / 0.02), their errors have both signs, and none exceeds p step^2 / 2.
    axis = midpoints(-14.0, 14.0, 1400)
    assert task.pdf_grid([x], axis, axis).sum() * 0.02**2 == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("x", [-1.0, -0.4, 0.3, 1.0])
def test_ring_integrates_to_one_in_polar_coordinates(x):
    # Along a ray the ring lies between two ellipses, so the integrand is smooth: nothing is cut.
    angle = midpoints(0.0, 2.0 * np.pi, 400)[:, None]
    inner = 1.0 / np.hypot(np.cos(angle) / (4 + 2 * x), np.sin(angle) / (4 - 2 * x))
    outer = 1.0 / np.hypot(np.cos(angle) / (6 + 2 * x), np.sin(angle) / (6 - 2 * x))
    node, weight = np.polynomial.legendre.leggauss(30)
    radius = inner + (outer - inner) * (node + 1.0) / 2.0
    y = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    integrand = np.exp(toy.get("ring").logpdf(x, y)) * radius * (outer - inner) * weight / 2.0
    assert integrand.sum() * 2.0 * np.pi / 400 == pytest.approx(1.0, abs=1e-10)


@TASKS
def test_density_matches_a_histogram_of_a_million_draws(task):
    x, n, n_cells, per_cell = 0.6, 10**6, 32, 40
    y = task.draw(np.full(n, x), np.random.default_rng(0))
    edges = np.linspace(-8.0, 8.0, n_cells + 1)
    observed = np.histogram2d(y[:, 0], y[:, 1], bins=(edges, edges))[0] / n

    axis = midpoints(-8.0, 8.0, n_cells * per_cell)
    pdf = task.pdf_grid([x], axis, axis)[0]
    expected = pdf.reshape(n_cells, per_cell, n_cells, per_cell).mean(axis=(1, 3)) * 0.5**2

    # Five standard deviations of a count, which one of 1024 cells exceeds once in two thousand runs, and
    # what the midpoint rule may miss in a cell that an edge crosses: half a row of nodes of each direction.
    noise = 5.0 * np.sqrt(np.maximum(expected, 1.0 / n) / n)
    assert np.all(np.abs(observed - expected) <= noise + pdf.max() * 0.5**2 / per_cell)


@TASKS
def test_sample_draws_x_uniformly_and_y_inside_the_support(task):
    X, y = task.sample(100_000, np.random.default_rng(1))
    assert (X.shape, y.shape, X.dtype, y.dtype) == ((100_000, 1), (100_000, 2), np.float64, np.float64)
    assert stats.kstest(X[:, 0], stats.uniform(-1.0, 2.0).cdf).pvalue > 0.01
    assert np.all(np.isfinite(task.logpdf(X[:, 0], y)))


@TASKS
def test_entropy_is_the_mean_of_minus_logpdf(task):
    X, y = task.sample(400_000, np.random.default_rng(2))
    score = -task.logpdf(X[:, 0], y)
    assert task.entropy() == pytest.approx(score.mean(), abs=5.0 * stats.sem(score) + 1e-12)


def test_entropy_of_the_ring_against_quadrature():
    node, weight = np.polynomial.legendre.leggauss(40)
    x, m = node[:, None, None], 5.0 + node[None, :, None]
    t = midpoints(0.0, 2.0 * np.pi, 400)
    log_jacobian = np.log(m - 2.0 * x * np.cos(2.0 * t)).mean(axis=-1)
    expected = np.log(4.0 * np.pi) + weight @ log_jacobian @ weight / 4.0
    assert toy.get("ring").entropy() == pytest.approx(expected, abs=1e-12)


@TASKS
def test_same_seed_same_bits(task):
    def draw(seed):
        return np.hstack(task.sample(50, np.random.default_rng(seed)))

    assert np.array_equal(draw(7), draw(7))
    assert not np.array_equal(draw(7), draw(8))


def test_half_gaussian_has_standard_deviation_two():
    y = toy.get("half_gaussian").draw(np.zeros(200_000), np.random.default_rng(3))
    assert y[:, 0].min() > 0.0
    assert np.mean(y**2, axis=0) == pytest.approx([4.0, 4.0], rel=0.02)


@given(x=st.floats(-1.0, 1.0), d=st.floats(1e-9, 2.0 - 1e-9), t=st.floats(0.0, 2.0 * np.pi))
def test_ring_inverts_its_map(x, d, t):
    a, b = 4.0 + 2.0 * x + d, 4.0 - 2.0 * x + d
    density = 1.0 / (4.0 * np.pi * (b * np.cos(t) ** 2 + a * np.sin(t) ** 2))
    y = [a * np.cos(t), b * np.sin(t)]
    assert toy.get("ring").logpdf(x, y) == pytest.approx(np.log(density), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "x", "inside", "outside"),
    [
        ("squares", 0.5, [[-4.4, -0.6], [0.6, 4.4]], [[-4.6, -1.0], [1.0, 0.4], [-1.0, 1.0], [0.0, 0.0]]),
        ("half_gaussian", 0.5, [[9.0, 0.01]], [[9.0, -0.01]]),
        ("stick", 0.75, [[1.0, 5.9], [9.0, -5.9]], [[0.0, 6.1]]),
        ("ring", 0.5, [[5.1, 0.0], [0.0, 4.9]], [[4.9, 0.0], [0.0, 5.1], [0.0, 0.0]]),
    ],
)
def test_support(name, x, inside, outside):
    task = toy.get(name)
    assert np.all(np.isfinite(task.logpdf(x, inside)))
    assert np.all(task.logpdf(x, outside) == -np.inf)


@TASKS
def test_far_away_is_minus_infinity_without_a_warning(task):
    assert np.all(task.logpdf([-0.5, 0.5], [[1e200, -1e200], [1e300, 1e300]]) == -np.inf)


@TASKS
def test_axes_broadcast(task):
    x, axis1, axis2 = np.array([-0.6, 0.2]), np.linspace(-5, 5, 6), np.linspace(-4, 4, 5)
    grid = task.pdf_grid(x, axis1, axis2)
    assert grid.shape == (2, 6, 5)
    assert grid[1, 2, 3] == np.exp(task.logpdf(0.2, [axis1[2], axis2[3]]))
    assert task.draw(np.zeros((3, 4)), np.random.default_rng(0)).shape == (3, 4, 2)


@TASKS
def test_a_task_is_frozen(task):
    with pytest.raises(FrozenInstanceError):
        task.name = "other"


# The edge of half_gaussian passes through nodes of the grid: there the third digit is the rounding's.
@pytest.mark.parametrize(
    ("name", "score", "error"),
    [("squares", 0.500, 5e-4), ("half_gaussian", 0.614, 5e-3), ("stick", 0.368, 5e-4), ("ring", 0.257, 5e-4)],
)
def test_sse_of_the_zero_estimate(name, score, error):
    assert toy.sse(np.zeros((4, 64, 64)), toy.get(name)) == pytest.approx(score, abs=error)


@TASKS
def test_sse_sums_over_nodes_and_averages_over_x(task):
    truth = task.pdf_grid(toy.SSE_X, toy.SSE_AXIS, toy.SSE_AXIS)
    assert toy.sse(truth, task) == 0.0
    truth[2, 10, 20] += 3.0
    assert toy.sse(truth, task) == pytest.approx(9.0 / 4.0)


def test_errors():
    task, rng = toy.get("squares"), np.random.default_rng(0)
    X, y = task.sample(3, rng)
    with pytest.raises(ValueError, match=r"must be one of squares, half_gaussian, stick, ring; got 'circle'"):
        toy.get("circle")
    with pytest.raises(ValueError, match=r"x must lie in \[-1, 1\]; got values from -2.0 to 0.5"):
        task.draw([-2.0, 0.5], rng)
    with pytest.raises(ValueError, match=r"x must lie in \[-1, 1\]; got values from nan to nan"):
        task.logpdf([np.nan, 0.5], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"y must have a last axis of length 2; got shape \(3,\)"):
        task.logpdf(0.0, [0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="y must be finite; got NaN"):
        task.logpdf(0.0, [0.0, np.nan])
    with pytest.raises(ValueError, match=r"one axis fewer than y; got shapes \(3, 1\) and \(3, 2\)"):
        task.logpdf(X, y)
    with pytest.raises(ValueError, match=r"pdf must have shape \(4, 64, 64\); got \(64, 64\)"):
        toy.sse(np.zeros((64, 64)), task)
    with pytest.raises(ValueError, match="pdf must be finite"):
        toy.sse(np.full((4, 64, 64), np.nan), task)
