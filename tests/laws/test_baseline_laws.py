"""Laws of the baselines: every estimator, in one and two outputs, is put to what holds of any conditional density."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from scipy import stats

from ogive import baselines
from ogive.baselines.mdn import NormalMixture
from ogive.distribution import Triangular
from ogive.errors import NotAvailableError

N = 240


@dataclass(frozen=True)
class Subject:
    """A baseline, small and briefly trained, on d outputs in units far from standard ones."""

    name: str
    d: int
    settings: dict = field(default_factory=dict, hash=False)

    def __str__(self):
        return "-".join([self.name, *map(str, self.settings.values()), str(self.d)])

    @property
    def chain(self):
        """Whether its conditional CDFs are exact: always for one output."""
        return self.d == 1 or not (self.mixed or self.orders)

    @property
    def mixed(self):
        """Whether its outputs all depend on one another."""
        return self.name in ("MAF", "NSF", "NSFEnsemble", "RNF") and self.settings.get("order") != "given"

    @property
    def orders(self):
        """Whether it averages chains of several orders."""
        return self.name == "DDN" and self.settings.get("n_orders") != 1

    def estimator(self, seed=0):
        for library in {"MAF": ["zuko"], "NSF": ["zuko"], "NSFEnsemble": ["zuko"], "Boosted": ["ngboost"]}.get(
            self.name, []
        ):
            pytest.importorskip(library, reason=f"{self.name} is built by {library}, an extra of `ogive[bench]`")
        small = {"n_trees": 40} if self.name == "Boosted" else {"max_epochs": 12, "hidden": (24,)}
        return baselines.BASELINES[self.name](random_state=seed, **small, **self.settings)

    def data(self):
        rng = np.random.default_rng(self.d)
        X = rng.normal(size=(N, 2))
        y = X[:, :1] + 0.6 * rng.normal(size=(N, self.d)) + 0.3 * X[:, 1:] * rng.normal(size=(N, 1))
        return X, 50.0 + 8.0 * y

    @functools.cached_property
    def fitted(self):
        return FITTED.setdefault(str(self), self.estimator().fit(*self.data()))

    def prediction(self, n=6):
        return self.fitted.predict_dist(self.data()[0][:n])

    def law(self, n=6):
        return self.prediction(n)._law

    def draws(self, n=6, size=5):
        """Points (size, n, d), drawn from the law."""
        return self.law(n).sample(size, torch.Generator().manual_seed(1))


FITTED: dict[str, object] = {}
KINDS = [
    ("MDN", {}),
    ("MAF", {}),
    ("NSF", {}),
    ("NSF", {"order": "given", "transforms": 3}),
    ("NSFEnsemble", {"n_members": 2}),
    ("NSFEnsemble", {"n_members": 3, "order": "given"}),
    ("RNF", {}),
    ("DDN", {"bins": 64, "n_orders": 1}),
    ("DDN", {"bins": 32}),
    ("Boosted", {}),
]
SUBJECTS = [Subject(name, d, settings) for name, settings in KINDS for d in (1, 2)]
CHAINS = [baseline for baseline in SUBJECTS if baseline.chain]
MIXED = [baseline for baseline in SUBJECTS if not baseline.chain and baseline.mixed]
SEVERAL_ORDERS = [baseline for baseline in SUBJECTS if not baseline.chain and baseline.orders]
every = pytest.mark.parametrize("baseline", SUBJECTS, ids=str)
chains = pytest.mark.parametrize("baseline", CHAINS, ids=str)
mixed = pytest.mark.parametrize("baseline", MIXED, ids=str)
several_orders = pytest.mark.parametrize("baseline", SEVERAL_ORDERS, ids=str)


def grid(baseline):
    """Midpoints of equal cells over all of the probability, as nodes (k, d), and a cell's size; of a DDN its bins."""
    _, y = baseline.data()
    low, high, points = y.mean() - 90.0, y.mean() + 90.0, 4000 if baseline.d == 1 else 150
    ends = [(low, high)] * baseline.d
    if baseline.name == "DDN":
        network = baseline.fitted._law_at
        ends, points = network.support.T.tolist(), network.bins
    widths = [(high - low) / points for low, high in ends]
    axes = [low + (np.arange(points) + 0.5) * width for (low, _), width in zip(ends, widths, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 1, baseline.d), np.prod(widths)


@every
def test_the_density_integrates_to_one(baseline):
    nodes, cell = grid(baseline)
    mass = cell * baseline.prediction(2).pdf(np.repeat(nodes, 2, 1)).sum(0)
    kinks = 2e-3 if baseline.d == 1 else 1e-2  # of splines, on a grid of this fineness
    np.testing.assert_allclose(mass, 1.0, atol=1e-9 if baseline.name == "DDN" else kinks)


@every
def test_draws_fall_where_the_density_is(baseline):
    nodes, cell = grid(baseline)
    p = baseline.prediction(1)
    mass = cell * p.pdf(nodes)[:, 0]
    draws = p.sample(4000, random_state=3).reshape(4000, baseline.d)
    middle = np.median(draws, 0)
    edge = 0.5 * cell ** (1.0 / baseline.d) * draws.std() ** -1  # half a cell at the box's sides
    share = (draws < middle).all(1).mean()
    np.testing.assert_allclose(share, mass[(nodes[:, 0] < middle).all(1)].sum(), atol=0.03 + edge)


@every
def test_quasi_random_draws_have_the_moments_of_random_ones(baseline):
    p = baseline.prediction(3)
    draws = p.sample(4000, random_state=4).reshape(4000, 3, baseline.d)
    error = 5.0 * draws.std(0) / np.sqrt(4000)
    assert (np.abs(p.mean() - draws.mean(0)) < error + 0.02 * draws.std(0)).all()
    np.testing.assert_allclose(p.std(), draws.std(0), rtol=0.12)


def test_quasi_random_draws_of_a_normal_mixture_have_its_moments():
    log_weights = torch.tensor([[0.3, 0.7], [1.0, 0.0]], dtype=torch.float64).log()
    means = torch.tensor([[0.0, 1.0], [4.0, -2.0]], dtype=torch.float64).expand(2, 2, 2)
    roots = torch.tensor([[[1.0, 0.0], [0.5, 2.0]], [[0.1, 0.0], [-1.0, 0.3]]], dtype=torch.float64).expand(2, 2, 2, 2)
    draws, even = NormalMixture(log_weights, means, roots).paths(1024)
    assert even.exp().sum().item() == pytest.approx(1.0)
    for row, weights in enumerate(log_weights.exp()):
        mean = weights @ means[row]
        away = means[row] - mean
        covariance = torch.einsum("k,kij->ij", weights, roots[row] @ roots[row].mT + away[:, :, None] * away[:, None])
        for part, tolerance in ((draws[:, row], 0.02), (draws[:512, row], 0.04), (draws[512:, row], 0.04)):
            np.testing.assert_allclose(part.mean(0), mean, atol=tolerance)
            np.testing.assert_allclose(torch.cov(part.T), covariance, atol=4.0 * tolerance)


@every
def test_quantiles_are_those_of_draws(baseline):
    p = baseline.prediction(3)
    draws = p.sample(4000, random_state=5).reshape(4000, 3, baseline.d)
    below = (draws[..., None] <= p.quantiles([0.1, 0.5, 0.9])).mean(0)
    np.testing.assert_allclose(below, np.broadcast_to([0.1, 0.5, 0.9], below.shape), atol=0.035)


@every
def test_scores_are_those_of_draws(baseline):
    p, y = baseline.prediction(3), baseline.data()[1][:3]
    draws = p.sample(4000, random_state=6).reshape(4000, 3, baseline.d)
    crps = np.abs(draws - y).mean(0) - 0.5 * np.abs(draws[::2] - draws[1::2]).mean(0)
    np.testing.assert_allclose(p.crps(y), crps, atol=0.06 * draws.std())
    near = np.linalg.norm(draws - y, axis=-1).mean(0)
    energy = near - 0.5 * np.linalg.norm(draws[::2] - draws[1::2], axis=-1).mean(0)
    np.testing.assert_allclose(p.energy_score(y), energy, atol=0.06 * draws.std())


@chains
def test_the_density_is_the_slope_of_the_cdf(baseline):
    law = baseline.law()
    assert isinstance(law, Triangular)
    for i in range(baseline.d):
        y = baseline.draws()
        here = y[..., i].clone().requires_grad_()
        points = torch.stack([here if j == i else y[..., j] for j in range(baseline.d)], -1)
        reading = law.readings(points)[i]
        (slope,) = torch.autograd.grad(reading.logit.sum(), here)
        torch.testing.assert_close(slope.log(), reading.log_slope.detach(), rtol=1e-6, atol=1e-6)


@chains
def test_the_chain_multiplies_to_the_joint_density(baseline):
    law, y = baseline.law(), baseline.draws()
    with torch.no_grad():
        torch.testing.assert_close(Triangular.log_prob(law, y), law.log_prob(y), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(Triangular.logits(law, y), law.logits(y), rtol=1e-9, atol=1e-9)


@chains
def test_the_inverse_inverts_out_to_the_tails(baseline):
    law = baseline.law()
    levels = torch.tensor([1e-9, 1e-3, 0.3, 0.5, 0.9, 1.0 - 1e-9], dtype=torch.float64).logit()
    logits = levels[:, None, None].expand(-1, law.n_rows, baseline.d)
    with torch.no_grad():
        torch.testing.assert_close(law.logits(law.inverse(logits)), logits, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(Triangular.inverse(law, logits), law.inverse(logits), rtol=1e-6, atol=1e-6)
        y = baseline.draws()
        torch.testing.assert_close(law.inverse(law.logits(y)), y, rtol=1e-7, atol=1e-7)


@chains
def test_the_pit_of_own_draws_is_uniform(baseline):
    p = baseline.prediction(4)
    draws = p.sample(500, random_state=8).reshape(500, 4, baseline.d)
    for column in p.pit(draws).reshape(-1, baseline.d).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3


@chains
def test_an_output_does_not_see_those_after_it(baseline):
    p, y = baseline.prediction(), baseline.draws().numpy()
    moved = y.copy()
    moved[..., -1] += 1.0
    np.testing.assert_array_equal(p.pit(y)[..., :-1], p.pit(moved)[..., :-1])


@mixed
def test_mixed_outputs_refuse_conditional_cdfs_and_say_why(baseline):
    p, y = baseline.prediction(2), baseline.data()[1][:2]
    for ask in (p.pit, p.inverse_pit, p.marginal(0).cdf, p.marginal(1).logpdf):
        with pytest.raises(NotAvailableError, match=r"outputs are mixed\. Ask for logpdf, sample, quantiles"):
            ask(np.full_like(y, 0.5) if ask == p.inverse_pit else y[:, 0] if ask not in (p.pit,) else y)


@several_orders
def test_an_average_of_several_orders_refuses_conditional_cdfs_and_keeps_the_marginals(baseline):
    p, y = baseline.prediction(2), baseline.data()[1][:2]
    for ask in (p.pit, p.inverse_pit):
        with pytest.raises(
            NotAvailableError,
            match=r"taken in one order; got a DDN that averages 2 orders\. .* with n_orders=1\.$",
        ):
            ask(np.full_like(y, 0.5))
    q = p.quantiles([0.1, 0.5, 0.9])
    for j in range(baseline.d):
        for k, level in enumerate([0.1, 0.5, 0.9]):
            np.testing.assert_allclose(p.marginal(j).cdf(q[:, j, k]), level, atol=1e-6)


@mixed
def test_draws_refuse_levels_beyond_them(baseline):
    with pytest.raises(NotAvailableError, match=r"level must lie among those of 51\d draws"):
        baseline.prediction(2).quantiles(1e-6)


@every
def test_scaling_y_shifts_the_log_density(baseline):
    X, y = baseline.data()
    other = baseline.estimator().fit(X, 4.0 * y).predict_dist(X[:9]).logpdf(4.0 * y[:9])
    own = baseline.fitted.predict_dist(X[:9]).logpdf(y[:9])
    np.testing.assert_allclose(other, own - baseline.d * np.log(4.0), rtol=1e-6, atol=1e-6)


@every
def test_a_seed_fixes_every_bit_and_nothing_global_moves(baseline):
    def everywhere():
        return torch.get_rng_state().tolist(), np.random.get_state()[1].tolist(), random.getstate()

    X, y = baseline.data()
    before, checked = everywhere(), torch.distributions.Distribution._validate_args
    again = baseline.estimator().fit(X, y)
    p = again.predict_dist(X[:5])
    p.sample(3, random_state=0)
    assert everywhere() == before
    assert torch.distributions.Distribution._validate_args is checked
    np.testing.assert_array_equal(p.logpdf(y[:5]), baseline.prediction(5).logpdf(y[:5]))
    other = baseline.estimator(seed=1).fit(X, y).predict_dist(X[:5])
    assert (other.logpdf(y[:5]) != p.logpdf(y[:5])).all()


@every
def test_a_row_does_not_see_the_others(baseline):
    p, y = baseline.prediction(6), baseline.data()[1][:6]
    np.testing.assert_allclose(p[2:4].logpdf(y[2:4]), p.logpdf(y)[2:4], rtol=1e-10)
    np.testing.assert_allclose(p[3].mean(), p.mean()[3:4], rtol=1e-8)


@every
def test_shapes_follow_y(baseline):
    X, y = baseline.data()
    given = y[:, 0] if baseline.d == 1 else y
    model = baseline.fitted if baseline.d > 1 else baseline.estimator().fit(X, given)
    assert model.predict(X[:7]).shape == given[:7].shape
    assert model.sample(X[:7], 3, random_state=0).shape == (3, *given[:7].shape)
    np.testing.assert_allclose(model.score(X[:7], given[:7]), model.predict_dist(X[:7]).logpdf(y[:7]).mean())
