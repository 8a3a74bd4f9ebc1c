"""What is special to one baseline: formulas against oracles, the shared training, refusals, optional libraries."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from ogive import baselines
from ogive.baselines.ddn import Deconvolution, Refiner
from ogive.baselines.fitting import BaselineNetwork, NeuralBaseline, held_back
from ogive.baselines.mdn import NormalMixture, normal_logit, normal_quantile
from ogive.baselines.radial import RadialBijection
from ogive.errors import DataError, NumericalError

SMALL = {"max_epochs": 4, "hidden": (8,), "random_state": 0}
NEEDS = {"MAF": "zuko", "NSF": "zuko", "NSFEnsemble": "zuko", "Boosted": "ngboost"}


def table(n=120, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, :1] + 0.5 * rng.normal(size=(n, d))


def small(name, **settings):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"{name} is built by {NEEDS[name]}, an extra of `ogive[bench]`")
    brief = {"n_trees": 5, "random_state": 0} if name == "Boosted" else SMALL
    return baselines.BASELINES[name](**(brief | settings))


every_name = pytest.mark.parametrize("name", baselines.BASELINES)


# Normal mixtures


def test_normal_logit_and_quantile_agree_with_scipy_out_to_the_tails():
    z = np.array([-37.0, -8.0, -1.0, 0.0, 0.5, 6.0, 20.0, 37.0])
    logit = normal_logit(torch.tensor(z))
    np.testing.assert_allclose(logit, stats.norm.logcdf(z) - stats.norm.logsf(z), rtol=1e-12)
    np.testing.assert_allclose(normal_quantile(logit), z, rtol=1e-12)


def mixture(n=2, k=3, d=3):
    generator = torch.Generator().manual_seed(0)
    logits, means, roots = (
        torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((n, k), (n, k, d), (n, k, d, d))
    )
    roots = roots.tril(-1) + torch.diag_embed(roots.diagonal(dim1=-2, dim2=-1).exp())
    return NormalMixture(logits.log_softmax(-1), means, roots)


def test_a_normal_mixture_is_that_of_scipy():
    law = mixture()
    y = law.sample(4, torch.Generator().manual_seed(0))
    found = law.log_prob(y)
    for row in range(2):
        covariances = law.roots[row] @ law.roots[row].mT
        parts = [stats.multivariate_normal(m, c) for m, c in zip(law.means[row], covariances, strict=True)]
        weights = law.log_weights[row].exp().tolist()
        density = sum(w * part.pdf(y[:, row]) for w, part in zip(weights, parts, strict=True))
        np.testing.assert_allclose(found[:, row], np.log(density), rtol=1e-10)


def test_a_conditional_cdf_of_a_normal_mixture_is_the_integral_of_its_density():
    law = mixture(n=1, d=2)
    y = torch.tensor([[0.3, -0.4]], dtype=torch.float64)

    def joint(t):
        return float(law.log_prob(torch.tensor([[0.3, t]], dtype=torch.float64)).exp())

    below, whole = (integrate.quad(joint, -40.0, end, points=[-5.0, -0.4, 3.0])[0] for end in (-0.4, 40.0))
    assert float(law.logits(y)[0, 1].sigmoid()) == pytest.approx(below / whole, rel=1e-7)


# Radial flow


def radial(seed, d, n_maps=4):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    alpha = (2.0 * normal(3, n_maps)).exp()
    beta = alpha * ((2.0 * normal(3, n_maps)).exp() - 1.0)
    return RadialBijection(normal(3, d), normal(3, d), alpha, beta, normal(3, n_maps, d))


@given(st.integers(0, 10_000), st.integers(1, 4), st.floats(0.0, 8.0))
def test_a_radial_flow_is_inverted_in_closed_form(seed, d, reach):
    flow = radial(seed, d)
    y = reach * torch.randn(3, d, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    z, _ = flow.normalise(y)
    torch.testing.assert_close(flow.restore(z), y, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(flow.normalise(flow.restore(y))[0], y, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_slopes_of_a_radial_flow_sum_to_its_log_determinant(d):
    flow = radial(1, d)
    y = torch.randn(3, d, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda t: flow.normalise(t)[0], y)
    each = torch.stack([jacobian[row, :, row] for row in range(3)])
    torch.testing.assert_close(flow.normalise(y)[1].sum(-1), torch.linalg.slogdet(each).logabsdet)


def test_a_radial_map_leaves_its_centre_in_place():
    flow = radial(3, 2, n_maps=1)
    centre = flow.location + flow.centre[:, 0] * flow.log_scale.exp()
    z, log_slopes = flow.normalise(centre)
    torch.testing.assert_close(z, flow.centre[:, 0])
    assert log_slopes.isfinite().all()
    torch.testing.assert_close(flow.restore(flow.centre[:, 0]), centre)


# Deconvolutional density network


def test_a_histogram_is_read_and_inverted_exactly():
    X, y = table()
    model = small("DDN", bins=16, support=[(-4.0, 4.0)]).fit(X, y)
    p = model.predict_dist(X[:3])
    edges = np.linspace(-4.0, 4.0, 17)
    density = p.pdf(np.repeat(0.5 * (edges[1:] + edges[:-1])[:, None, None], 3, 1))
    cdf = p.cdf(np.repeat(edges[:, None, None], 3, 1))
    np.testing.assert_allclose(cdf[1:], np.cumsum(0.5 * density, 0), atol=1e-12)
    np.testing.assert_allclose(p.ppf([1e-12, 0.2, 0.999])[:, 0], -4.0, atol=1e-6)
    np.testing.assert_allclose(p.cdf(p.ppf([0.2])), 0.2, rtol=1e-12)


def test_beyond_its_support_a_histogram_is_zero_and_its_cdf_flat():
    X, y = table()
    p = small("DDN", bins=16, support=[(-4.0, 4.0)]).fit(X, y).predict_dist(X[:2])
    assert (p.logpdf([-4.5, 4.5]) == -math.inf).all()
    np.testing.assert_array_equal(p.cdf([-4.5, 4.5]), [0.0, 1.0])
    assert np.isfinite(p.logpdf([-4.0, 4.0])).all()
    assert np.isfinite(p.crps([-4.5, 4.5])).all()


def test_the_range_of_a_histogram_is_that_of_training_a_little_widened():
    X, y = table()
    low, high = small("DDN").fit(X, y)._law_at.support[:, 0].tolist()
    reach = 0.05 * (y.max() - y.min())
    assert (low, high) == pytest.approx((y.min() - reach, y.max() + reach))


def test_a_deconvolution_moves_by_two_cells_when_its_input_moves_by_one():
    step = Deconvolution(4)
    row = torch.zeros(1, 10, 4)
    row[0, 4] = torch.arange(4.0)
    found, moved = step(row), step(row.roll(1, 1))
    torch.testing.assert_close(found.roll(2, 1), moved)
    touched = (found - step(torch.zeros_like(row))).abs().sum(-1)[0] > 0
    assert touched.nonzero()[:, 0].tolist() == [6, 7, 8, 9, 10, 11]  # kernel six, stride two
    assert found.shape == (1, 20, 2)


def test_the_divergence_of_codes_is_that_of_normals_and_noise_comes_only_with_a_generator():
    refiner = Refiner(3, (8,), codes=5, channels=2, bins=32)
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    logits, divergence = refiner(x, None)
    mean, log_scale = refiner.encoder(x).chunk(2, -1)
    exact = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, log_scale.exp()), torch.distributions.Normal(0.0, 1.0)
    ).sum(-1)
    torch.testing.assert_close(divergence, exact)
    assert torch.equal(logits, refiner(x, None)[0])
    assert not torch.equal(logits, refiner(x, torch.Generator())[0])


# Flows and their ensemble


def test_an_ensemble_of_flows_is_the_mean_of_its_members_densities():
    X, y = table(d=2)
    model = small("NSFEnsemble", n_members=3).fit(X, y)
    members = [network(torch.tensor(X[:5])).log_prob(torch.tensor(y[:5])) for network in model._law_at.networks]
    np.testing.assert_allclose(model.predict_dist(X[:5]).pdf(y[:5]), torch.stack(members).exp().mean(0), rtol=1e-12)
    assert not torch.allclose(members[0], members[1])
    assert len(model.history_["validation"]) == 3


def test_zukos_flow_is_left_as_it_is():
    flows = pytest.importorskip("zuko", reason="NSF is built by zuko, an extra of `ogive[bench]`").flows
    X, y = table(d=3)
    network = small("NSF", transforms=3, hidden=(16, 16)).fit(X, y)._law_at
    twin = flows.NSF(3, 2, transforms=3, hidden_features=(16, 16)).double()
    twin.transform.transforms.load_state_dict(network.maps.state_dict())
    z = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = network.scaled_features(torch.tensor(X[:6]))
    torch.testing.assert_close(-network.loss(features, z, None), twin(features).log_prob(z))


# Boosted trees


def test_boosting_keeps_the_covariance_of_its_library():
    X, y = table(n=200, d=2)
    y = y * [3.0, 0.1] + [10.0, -5.0]
    model = small("Boosted", n_trees=30).fit(X, y)
    booster, n_trees, scale_y = model._law_at.args
    assert n_trees == model.n_trees_ <= 30
    found = booster.pred_dist(X[:4], max_iter=n_trees)
    scale = scale_y.scale.numpy()
    p = model.predict_dist(X[:4])
    exact = [stats.multivariate_normal(m, c) for m, c in zip(found.loc, found.cov, strict=True)]
    at = (y[:4] - scale_y.center.numpy()) / scale
    log_density = [law.logpdf(point) - np.log(scale).sum() for law, point in zip(exact, at, strict=True)]
    np.testing.assert_allclose(p.logpdf(y[:4]), log_density, rtol=1e-6)


# Training


class Line(BaselineNetwork):
    """Loss by a script: what the trainer sees as the validation loss of each epoch."""

    def __init__(self, script):
        super().__init__(2, 1)
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.script, self.epoch = script, -1

    def loss(self, features, outputs, generator):
        if generator is None:
            self.epoch += 1
            self.seen = [*getattr(self, "seen", []), float(self.weight.detach())]
            return torch.full((len(features),), self.script[min(self.epoch, len(self.script) - 1)])
        return (self.weight - 1.0).expand(len(features))

    def law(self, features):
        raise NotImplementedError


class Scripted(NeuralBaseline):
    def __init__(self, script, patience=3, max_epochs=50):
        super().__init__((), 1e-3, max_epochs, patience, 0)
        self.script = script

    def _network(self, features, targets):
        return Line(self.script)


def test_training_stops_when_patience_is_out_and_keeps_the_best_weights():
    model = Scripted([3.0, 2.0, 1.0, 1.5, 1.2, 1.1, 0.0]).fit(*table())
    network = model._law_at
    assert len(model.history_["validation"]) == 6  # the seventh, better still, is never seen
    assert float(network.weight) == pytest.approx(network.seen[2])
    assert network.seen[2] != network.seen[5]


def test_training_stops_at_the_last_epoch():
    assert len(Scripted([1.0], max_epochs=2).fit(*table()).history_["train"]) == 2


def test_a_nan_in_validation_is_an_error():
    with pytest.raises(NumericalError, match=r"got NaN in epoch 2\. Lower learning_rate"):
        Scripted([1.0, math.nan]).fit(*table())


@pytest.mark.parametrize(("n", "held"), [(2, 1), (9, 1), (100, 10), (205, 20)])
def test_a_tenth_of_the_rows_is_held_back(n, held):
    learn, hold = held_back(n, torch.Generator())
    assert len(hold) == held
    assert sorted([*learn.tolist(), *hold.tolist()]) == list(range(n))


def test_the_history_is_in_the_units_of_y():
    X, y = table()
    small_y, large_y = (small("MDN").fit(X, c * y).history_ for c in (1.0, 16.0))
    for name in ("train", "validation"):
        np.testing.assert_allclose(large_y[name], small_y[name] + math.log(16.0), rtol=1e-5)


@pytest.mark.parametrize("name", ["MDN", "MAF", "NSF", "RNF", "DDN"])
def test_a_constant_feature_and_a_constant_output_are_no_trouble(name):
    X, y = table(d=2)
    X[:, 1], y[:, 1] = 3.0, -7.0
    p = small(name).fit(X, y).predict_dist(X[:3])
    assert np.isfinite(p.logpdf(y[:3])).all()


# As an estimator


@every_name
def test_it_clones_and_pickles(name):
    X, y = table(d=2)
    model = small(name).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_dist(X[:3]).logpdf(y[:3]), model.predict_dist(X[:3]).logpdf(y[:3]))


@pytest.mark.parametrize("name", ["MDN", "RNF"])
def test_it_is_a_scikit_learn_estimator(name):
    results = check_estimator(small(name, max_epochs=40, learning_rate=1e-2), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}


@every_name
def test_unfitted_it_says_so(name):
    with pytest.raises(NotFittedError):
        small(name).predict_dist(np.zeros((1, 2)))


def test_a_failed_fit_leaves_nothing_half_fitted():
    X, y = table()
    model = small("MDN", max_epochs=0)
    with pytest.raises(DataError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict_dist(X)


@every_name
def test_rows_of_x_and_y_must_pair_up(name):
    X, y = table()
    with pytest.raises(DataError, match=r"X and y must have one length; got 120 and 119 rows"):
        small(name).fit(X, y[1:])


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("MDN", "max_epochs"),
        ("MDN", "patience"),
        ("MDN", "components"),
        ("NSF", "transforms"),
        ("NSFEnsemble", "n_members"),
        ("RNF", "transforms"),
        ("DDN", "codes"),
        ("DDN", "n_orders"),
        ("Boosted", "n_trees"),
    ],
)
def test_a_setting_must_be_at_least_one(name, setting):
    with pytest.raises(DataError, match=rf"{setting} must be at least 1; got 0"):
        small(name, **{setting: 0}).fit(*table())


@pytest.mark.parametrize(
    ("name", "settings", "d", "message"),
    [
        ("NSF", {"order": "cycle"}, 1, r"order must be 'alternate' or 'given'; got 'cycle'"),
        ("DDN", {"bins": 100}, 1, r"bins must be 16 times a power of two; got 100"),
        ("DDN", {"bins": 8}, 1, r"bins must be 16 times a power of two; got 8"),
        ("DDN", {"support": "positive"}, 1, r"y must lie in its support"),
        ("DDN", {"support": [(-9.0, None)]}, 1, r"support must be finite at both ends"),
        ("DDN", {"support": [(-9.0, 9.0)]}, 2, r"support must have one \(low, high\) pair per output"),
    ],
)
def test_a_wrong_setting_says_what_to_do(name, settings, d, message):
    with pytest.raises(DataError, match=message):
        small(name, **settings).fit(*table(d=d))


def test_boosting_refuses_outputs_that_do_not_vary_apart():
    X, y = table()
    with pytest.raises(DataError, match=r"outputs that vary apart from one another; got 1 of 2"):
        small("Boosted").fit(X, np.concatenate([y, 2.0 * y + 1.0], 1))


# Optional libraries


def test_importing_baselines_loads_no_optional_library():
    code = "import sys, ogive.baselines as b; b.BASELINES; print([m for m in ('zuko', 'ngboost') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("name", "library"), NEEDS.items())
def test_a_missing_library_is_named_with_the_way_to_install_it(monkeypatch, name, library):
    for module in [library, "zuko.flows"]:
        monkeypatch.setitem(sys.modules, module, None)
    brief = {"n_trees": 5} if name == "Boosted" else SMALL
    with pytest.raises(ImportError, match=rf"{library} must be installed .* pip install 'ogive\[bench\]'"):
        baselines.BASELINES[name](**brief).fit(*table())


def test_names_and_classes_agree():
    assert all(baselines.BASELINES[name] is getattr(baselines, name) for name in baselines.BASELINES)
    with pytest.raises(AttributeError, match="no attribute 'XGB'"):
        _ = baselines.XGB
