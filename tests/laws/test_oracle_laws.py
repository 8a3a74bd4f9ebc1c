"""What is written once for every law, put to chains of normal laws, whose answers are closed formulas.

Marginals by quasi-random paths, integrals of one output, moments and scores from draws, and `Prediction` on top.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import log_ndtr

from ogive.distribution import Distribution, Factor, Marginal, Reading, Triangular
from ogive.draws import crps_of_draws, densest_draw, energy_of_draws, moments_of_draws
from ogive.mixture import Mixture, MixtureLaw
from ogive.prediction import Prediction
from ogive.quadrature import Quadrature


class NormalFactor(Factor):
    """Output i given the earlier outputs of a normal vector with unit variances and correlation rho between any two."""

    def __init__(self, law: NormalChain, known: list[torch.Tensor]) -> None:
        self.law, self.known = law, known
        i, k = law.order[len(known)], [law.order[j] for j in range(len(known))]
        gain = law.covariance[i, k] @ torch.linalg.inv(law.covariance[k][:, k])
        shift = sum((gain[j] * (y - law.mean[:, k[j]]) for j, y in enumerate(known)), torch.zeros(()).double())
        self.mean = law.mean[:, i] + shift
        self.spread = (law.covariance[i, i] - gain @ law.covariance[k, i]).sqrt()

    def read(self, y: torch.Tensor) -> Reading:
        z = ((y - self.mean) / self.spread).numpy()
        logit = torch.from_numpy(np.asarray(log_ndtr(z) - log_ndtr(-z)))
        return Reading(logit, torch.from_numpy(np.asarray(stats.norm.logpdf(z))) - self.spread.log())

    def bracket(self, logit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        middle = self.mean.expand_as(logit)
        return middle - self.spread, middle + self.spread

    def then(self, y: torch.Tensor) -> Factor:
        return NormalFactor(self.law, [*self.known, y])


class NormalChain(Triangular):
    """A normal law for each row, with one covariance for all."""

    def __init__(self, mean: torch.Tensor, covariance: torch.Tensor, order: tuple[int, ...]) -> None:
        self.mean, self.covariance, self.order = mean.double(), covariance.double(), order
        self.n_rows, self.n_outputs = mean.shape

    def first(self) -> Factor:
        return NormalFactor(self, [])

    def rows(self, index: slice) -> Distribution:
        return NormalChain(self.mean[index], self.covariance, self.order)


SPREAD = torch.tensor([2.0, 0.5, 10.0])
CORRELATION = torch.tensor([[1.0, 0.8, -0.5], [0.8, 1.0, 0.1], [-0.5, 0.1, 1.0]])
COVARIANCE = CORRELATION * SPREAD * SPREAD[:, None]
MEAN = torch.tensor([[0.0, 1.0, -20.0], [3.0, -2.0, 5.0]])
ORDERS = [(0, 1, 2), (2, 0, 1)]


def chain(d: int, order: tuple[int, ...] | None = None) -> NormalChain:
    return NormalChain(MEAN[:, :d], COVARIANCE[:d, :d], order or tuple(range(d)))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def exact_crps(y, mean, spread):
    z = (y - mean) / spread
    return spread * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / math.sqrt(math.pi))


# Chains


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_of_factors_is_its_joint_law(order):
    law = chain(3, order)
    y = law.sample(6, seeded())
    for row in range(2):
        joint = stats.multivariate_normal(MEAN[row].numpy(), COVARIANCE.numpy())
        np.testing.assert_allclose(law.log_prob(y)[:, row], joint.logpdf(y[:, row].numpy()), rtol=1e-9)
    torch.testing.assert_close(law.inverse(law.logits(y)), y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_draws_have_the_right_moments(order):
    draws = (chain(3, order).sample(20_000, seeded()) - MEAN) / SPREAD
    for row in range(2):
        np.testing.assert_allclose(draws[:, row].mean(0), np.zeros(3), atol=0.03)
        np.testing.assert_allclose(torch.cov(draws[:, row].T), CORRELATION, atol=0.04)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("output", range(3))
def test_marginals_over_256_paths(order, output):
    """The CDF to a few thousandths; the density of a narrow conditional law is rougher in its tails."""
    marginal = Marginal(chain(3, order), output, 256)
    exact = stats.norm(MEAN[:, output].numpy(), SPREAD[output].item())
    levels = np.array([0.01, 0.1, 0.5, 0.9, 0.99])[:, None]
    y = torch.from_numpy(exact.ppf(levels))[..., None]
    np.testing.assert_allclose(marginal.logits(y)[..., 0].sigmoid(), np.broadcast_to(levels, (5, 2)), atol=3e-3)
    np.testing.assert_allclose(marginal.log_prob(y), exact.logpdf(y[..., 0].numpy()), atol=0.15)
    np.testing.assert_allclose(
        marginal.log_prob(y).exp(), exact.pdf(y[..., 0].numpy()), atol=0.05 / SPREAD[output].item()
    )
    again = marginal.inverse(marginal.logits(y))
    torch.testing.assert_close(again, y, rtol=1e-9, atol=1e-9)
    assert marginal.law.n_paths == (1 if order[0] == output else 256)


def test_a_marginal_draws_from_the_joint_law():
    marginal = Marginal(chain(3), 2, 16)
    assert torch.equal(marginal.sample(5, seeded())[..., 0], chain(3).sample(5, seeded())[..., 2])
    draws, log_weights = marginal.paths(64)
    assert draws.shape == (64, 2, 1) and log_weights.exp().sum().item() == pytest.approx(1.0)
    part = marginal.rows(slice(1, 2))
    assert part.n_rows == 1
    y = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
    torch.testing.assert_close(part.log_prob(y[:, 1:]), marginal.log_prob(y)[:, 1:], rtol=1e-12, atol=1e-12)
    assert marginal.marginal(0, 99) is marginal.law


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shift", [-1.5, 0.0, 1.0])
def test_the_joint_cdf_of_normal_outputs(order, shift):
    """To 4.5 of the standard errors that are told, which are themselves within a hundredth of the smaller side."""
    p = Prediction(chain(3, order), list("abc"))
    away = shift * SPREAD.numpy()
    exact = stats.multivariate_normal(np.zeros(3), COVARIANCE.numpy(), abseps=1e-10, releps=1e-6, seed=0)
    for question, y in ((p.cdf, MEAN.numpy() + away), (p.sf, MEAN.numpy() - away)):
        found, error = question(y, return_error=True)
        assert (np.abs(found - exact.cdf(away)) < 4.5 * error + 1e-9).all()
        assert (error < (0.01 if shift >= 0.0 else 0.5) * exact.cdf(away)).all()
    below = np.array([-np.inf, MEAN[0, 1], 3.0])
    np.testing.assert_array_equal(p.cdf(below), 0.0)
    np.testing.assert_array_equal(p.logcdf(below, return_error=True), [[-np.inf] * 2, [0.0] * 2])


@pytest.mark.parametrize("order", ORDERS)
def test_a_box_is_the_difference_of_its_corners(order):
    law, points = chain(3, order), torch.rand(4096, 2, generator=seeded(), dtype=torch.float64)
    low, high = (MEAN.double() + SPREAD * torch.tensor(z) for z in ([-0.3, -1.0, 0.2], [1.2, math.inf, 0.9]))
    found = law.log_box(low, high, points).exp()
    z = [(end[0] - MEAN[0]) / SPREAD for end in (low, high)]
    exact = stats.multivariate_normal(np.zeros(3), CORRELATION.numpy(), seed=0).cdf(z[1], lower_limit=z[0])
    assert ((found.mean(0) - exact).abs() < 4.0 * found.std(0) / 64.0).all()
    assert law.log_box(low, low, points).isneginf().all()


# Mixtures


def mixture() -> tuple[Mixture, np.ndarray]:
    shares = torch.tensor([0.2, 0.8], dtype=torch.float64)
    parts = [chain(2), NormalChain(MEAN[:, 1:], 9.0 * COVARIANCE[1:, 1:], (1, 0))]
    return Mixture(parts, shares.log()), shares.numpy()


def test_a_mixture_is_the_weighted_sum_of_its_parts():
    law, shares = mixture()
    y = law.sample(50, seeded())
    by_part = np.stack([part.log_prob(y).exp().numpy() for part in law.parts])
    np.testing.assert_allclose(law.log_prob(y).exp(), np.tensordot(shares, by_part, 1), rtol=1e-12)


def test_a_mixture_draws_from_each_part_in_its_share():
    """The parts of row 0 lie about 20 spreads apart in the second output."""
    law, shares = mixture()
    draws = law.sample(20_000, seeded())[:, 0, 1]
    assert (draws > -5.0).double().mean().item() == pytest.approx(shares[0] + 0.8 * stats.norm.sf(15 / 30), abs=0.012)


def test_a_mixtures_marginal_is_the_mixture_of_marginals():
    law, shares = mixture()
    single = law.marginal(1, 256)
    assert isinstance(single, MixtureLaw)
    y = torch.linspace(-40, 10, 9, dtype=torch.float64)[:, None].expand(-1, 2)
    means = [MEAN[:, 1].numpy(), MEAN[:, 2].numpy()]
    exact = sum(w * stats.norm.cdf(y.numpy(), m, s) for w, m, s in zip(shares, means, (0.5, 30.0), strict=True))
    np.testing.assert_allclose(single.read(y).logit.sigmoid(), exact, atol=2e-3)
    levels = torch.tensor([-6.0, 0.0, 6.0], dtype=torch.float64)[:, None].expand(-1, 2)
    torch.testing.assert_close(single.read(single.icdf(levels)).logit, levels, rtol=0, atol=1e-8)


def test_a_mixtures_joint_cdf_is_the_mixture_of_joint_cdfs():
    law, shares = mixture()
    y = np.array([[0.5, 2.0], [-1.0, 6.0]])
    found, error = Prediction(law, ["a", "b"]).cdf(y, return_error=True)
    parts = zip(shares, [MEAN[:, :2], MEAN[:, 1:]], [COVARIANCE[:2, :2], 9.0 * COVARIANCE[1:, 1:]], strict=True)
    exact = sum(w * np.array([stats.multivariate_normal(m, c).cdf(at) for m, at in zip(mean.numpy(), y, strict=True)])
                for w, mean, c in parts)  # fmt: skip
    assert (np.abs(found - exact) < 4.5 * error + 1e-9).all() and (error < 0.01).all()


def test_a_mixtures_paths_carry_the_shares_of_its_parts():
    law, shares = mixture()
    draws, log_weights = law.paths(128)
    of_halves = log_weights.exp().view(2, 2, -1)
    np.testing.assert_allclose(of_halves.sum(-1).numpy(), [shares / 2, shares / 2])
    wanted = shares[0] * MEAN[:, :2] + shares[1] * MEAN[:, 1:]
    for half, weights in zip(draws.chunk(2), of_halves.flatten(1), strict=True):
        np.testing.assert_allclose(2.0 * (weights[:, None, None] * half).sum(0), wanted, atol=0.5)
    np.testing.assert_allclose((log_weights.exp()[:, None, None] * draws).sum(0), wanted, atol=0.05)
    assert law.rows(slice(1, 2)).n_rows == 1


# Integrals of one output


def test_integrals_of_one_normal_output():
    rule = Quadrature(chain(1).first(), 2, torch.empty(0, dtype=torch.float64))
    np.testing.assert_allclose(rule.mean(), MEAN[:, 0], atol=1e-4)
    np.testing.assert_allclose(rule.variance(), [4.0, 4.0], rtol=2e-4)
    np.testing.assert_allclose(rule.entropy(), stats.norm.entropy(scale=2.0), rtol=2e-4)
    np.testing.assert_allclose(rule.expect(rule.nodes**2), MEAN[:, 0] ** 2 + 4.0, rtol=1e-3)
    np.testing.assert_allclose(rule.densest(), MEAN[:, 0], atol=0.3)


@pytest.mark.parametrize("place", [-30.0, -3.0, 0.0, 0.01, 2.0, 500.0])
def test_the_crps_of_one_normal_output(place):
    law = chain(1).first()
    y = MEAN[:, 0].double() + 2.0 * place
    rule = Quadrature(law, 2, torch.empty(0, dtype=torch.float64), through=y)
    np.testing.assert_allclose(rule.crps(y), exact_crps(y.numpy(), MEAN[:, 0].numpy(), 2.0), rtol=1e-4)


def test_integrals_find_a_needle_beside_a_haystack():
    """One part in five lies within a thousandth of the width of the rest."""
    shares = torch.tensor([0.2, 0.8], dtype=torch.float64)
    parts = [
        NormalChain(torch.zeros(2, 1), torch.tensor([[1e-6]]), (0,)),
        NormalChain(torch.ones(2, 1), torch.ones(1, 1), (0,)),
    ]
    law = Mixture(parts, shares.log()).marginal(0, 1)
    rule = Quadrature(law, 2, torch.empty(0, dtype=torch.float64))
    np.testing.assert_allclose(rule.mean(), 0.8, rtol=1e-4)
    np.testing.assert_allclose(rule.variance(), 0.8 * 1.0 + 0.16, rtol=1e-3)
    np.testing.assert_allclose(rule.densest(), 0.0, atol=5e-3)


@pytest.mark.parametrize("place", [-1.0, 0.0, 1e-6, 0.01, 0.9, 3.0])
@pytest.mark.parametrize("width", [1e-6, 1e-2])
def test_the_crps_of_a_needle_beside_a_haystack(place, width):
    """Of a normal mixture: Grimit et al., "The continuous ranked probability score for circular variables" (2006)."""
    means, scales, shares = np.array([0.0, 1.0]), np.array([width, 1.0]), np.array([0.2, 0.8])

    def distance(mean, scale):
        """E |Z| for a normal Z."""
        return mean * (2 * stats.norm.cdf(mean / scale) - 1) + 2 * scale * stats.norm.pdf(mean / scale)

    apart = distance(means - means[:, None], np.hypot(scales, scales[:, None]))
    exact = shares @ distance(place - means, scales) - 0.5 * shares @ apart @ shares
    needle, haystack = (
        NormalChain(torch.full((1, 1), m), torch.tensor([[s * s]]), (0,)) for m, s in zip(means, scales, strict=True)
    )
    p = Prediction(Mixture([needle, haystack], torch.tensor(shares).log()), ["out"])
    np.testing.assert_allclose(p.crps(np.array([place])), exact, rtol=1e-4)


# Integrals from draws


@pytest.mark.parametrize("order", ORDERS)
def test_moments_from_512_paths(order):
    found = moments_of_draws(chain(3, order), 512)
    np.testing.assert_allclose((found[..., 0] - MEAN) / SPREAD, np.zeros((2, 3)), atol=5e-3)
    for row in range(2):
        np.testing.assert_allclose(found[row, :, 1:] / (SPREAD * SPREAD[:, None]), CORRELATION, atol=3e-2)


def test_the_densest_draw_is_near_the_mode():
    found = densest_draw(chain(2), 512)
    assert ((found - MEAN[:, :2]).abs() < 0.5 * SPREAD[:2]).all()


def test_the_crps_from_draws():
    law = chain(2)
    y = torch.tensor([[1.0, 1.2], [-4.0, 3.0]], dtype=torch.float64)
    found = crps_of_draws(law, y, 512)
    np.testing.assert_allclose(found, exact_crps(y.numpy(), MEAN[:, :2].numpy(), SPREAD[:2].numpy()), rtol=1e-2)


def test_the_energy_score_of_two_independent_outputs():
    """At the centre of a round normal law: E|Y| = sqrt(pi / 2), and E|Y - Y'| = sqrt(pi)."""
    law = NormalChain(torch.zeros(1, 2), torch.eye(2), (0, 1))
    exact = math.sqrt(math.pi / 2) - 0.5 * math.sqrt(math.pi)
    assert energy_of_draws(law, torch.zeros(1, 2).double(), 512).item() == pytest.approx(exact, rel=1e-2)
    assert energy_of_draws(law, torch.zeros(1, 2).double(), 1).item() > 0.0


def test_the_energy_score_from_draws():
    """One output: the CRPS. Far away: the distance less a half of the mean distance of two draws."""
    y = torch.tensor([[1.0], [-4.0]], dtype=torch.float64)
    np.testing.assert_allclose(
        energy_of_draws(chain(1), y, 512), exact_crps(y[:, 0].numpy(), MEAN[:, 0].numpy(), 2.0), rtol=1e-2
    )
    round_law = NormalChain(torch.zeros(1, 2), torch.eye(2), (0, 1))
    far = torch.tensor([[3e3, 4e3]], dtype=torch.float64)
    assert energy_of_draws(round_law, far, 512).item() == pytest.approx(5e3 - 0.5 * math.sqrt(math.pi), abs=2e-2)


# The NumPy face


def test_a_prediction_says_what_the_closed_formulas_say():
    p = Prediction(chain(1), ["out"])
    exact = stats.norm(MEAN[:, 0].numpy(), 2.0)
    y = np.array([0.3, -7.0])
    for name in ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"):
        np.testing.assert_allclose(getattr(p, name)(y), getattr(exact, name)(y), rtol=1e-9, err_msg=name)
    q = np.array([1e-9, 0.3, 0.5, 1 - 1e-9])
    np.testing.assert_allclose(p.ppf(q), exact.ppf(q[:, None]).T, rtol=1e-8)
    np.testing.assert_allclose(p.isf(q), exact.isf(q[:, None]).T, rtol=1e-8)
    np.testing.assert_allclose(p.isf(1e-300), exact.isf(1e-300), rtol=1e-8)
    np.testing.assert_allclose(p.interval(0.8)[:, 0], np.stack(exact.interval(0.8), 1), rtol=1e-8)
    np.testing.assert_allclose(p.median()[:, 0], exact.median(), atol=1e-8)
    np.testing.assert_allclose(p.logs(y), -exact.logpdf(y), rtol=1e-9)
    np.testing.assert_allclose(p.crps(y)[:, 0], exact_crps(y, MEAN[:, 0].numpy(), 2.0), rtol=1e-4)
    np.testing.assert_allclose(p.mean()[:, 0], exact.mean(), atol=1e-3)
    np.testing.assert_allclose(p.std()[:, 0], exact.std(), rtol=1e-3)


@pytest.mark.parametrize("order", ORDERS)
def test_a_joint_prediction_says_what_the_closed_formulas_say(order):
    p = Prediction(chain(3, order), list("abc"))
    y = np.array([[0.3, 1.1, -15.0], [2.0, -2.5, 0.0]])
    mean, spread = MEAN.numpy(), SPREAD.numpy()
    exact = stats.norm(mean, spread)
    np.testing.assert_allclose(p.crps(y), exact_crps(y, mean, spread), rtol=2e-2)
    np.testing.assert_allclose(p.mean() / spread, mean / spread, atol=5e-3)
    np.testing.assert_allclose(p.var(), np.broadcast_to(spread**2, (2, 3)), rtol=3e-2)
    np.testing.assert_allclose(p.quantiles([0.1, 0.9])[..., 1] / spread, exact.ppf(0.9) / spread, atol=3e-2)
    np.testing.assert_allclose(p.inverse_pit(p.pit(y)), y, rtol=1e-9, atol=1e-12)
    first = order[0]
    np.testing.assert_allclose(p.pit(y)[:, first], exact.cdf(y)[:, first], rtol=1e-9)
    np.testing.assert_allclose(p.marginal("c").cdf(y[:, 2]), exact.cdf(y)[:, 2], atol=2e-3)
