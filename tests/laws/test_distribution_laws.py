"""Laws of every network's distribution, in float64: density, CDF, quantiles and draws are one law, asked four ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from cases import CENTER, N_FEATURES, SPREAD, chains, integral, nodes, single_laws, spread_of
from scipy import stats
from torch.nn.functional import logsigmoid

from ogive.distribution import Marginal, Triangular, random_logits
from ogive.errors import NotAvailableError
from ogive.mixture import Mixture
from ogive.nn import ensemble, factors, walk
from ogive.nn.cdf import CDFNetwork
from ogive.nn.ensemble import Ensemble
from ogive.nn.factors import MemberFactor

TAILS = torch.tensor([1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9], dtype=torch.float64).logit()


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def output_of(name: str) -> int:
    return int(name.split()[-1])


# Density


def test_every_one_dimensional_density_integrates_to_one(case):
    network = case.network()
    law = network(case.rows(2))
    with torch.no_grad():
        for name, single in single_laws(law).items():
            i = output_of(name)
            total = integral(
                lambda y, single=single: single.read(y[:, None].expand(-1, 2)).log_density,
                case.support[i],
                *spread_of(network, i),
                n_panels=64 if case.is_smooth else 16_384,  # jumps hide at the edges of panels
            )
            assert total.numpy() == pytest.approx(1.0, abs=1e-6 if case.is_smooth else 1e-4), name


def test_the_joint_density_integrates_to_one(smooth_pair_case):
    case = smooth_pair_case
    network = case.network()
    law = network(case.rows(1))
    (a, wa), (b, wb) = (nodes(case.support[i], *spread_of(network, i), 60) for i in range(2))
    grid = torch.stack(torch.meshgrid(a, b, indexing="ij"), -1).reshape(-1, 1, 2)
    with torch.no_grad():
        density = law.log_prob(grid).exp().view(len(a), len(b))
    assert (wa @ density @ wb).item() == pytest.approx(1.0, abs=1e-4)


def test_the_slope_of_the_cdf_is_the_density(exact_case):
    """d F / d y by autograd; on logarithms, so that 1e-8 is relative in both tails."""
    law = exact_case.network()(exact_case.rows(3))
    for name, single in single_laws(law).items():
        y = single.icdf(TAILS[1:-1, None].expand(-1, 3)).detach().requires_grad_()
        logit, log_density = single.read(y)
        (slope,) = torch.autograd.grad(logit.sum(), y)
        found = slope.log() + logsigmoid(logit) + logsigmoid(-logit)
        torch.testing.assert_close(found, log_density, rtol=1e-8, atol=1e-8, msg=lambda text, name=name: name + text)


def test_the_determinant_of_the_chain_is_the_joint_density(exact_case):
    """The Rosenblatt transform is triangular: its log-determinant is the joint log-density."""
    law = exact_case.network()(exact_case.rows(3))
    for chain in chains(law):
        y = chain.sample(1, seeded())[0].requires_grad_()
        logits = chain.logits(y)
        log_slopes = [torch.autograd.grad(logits[:, i].sum(), y, retain_graph=True)[0][:, i].log() for i in chain.order]
        found = torch.stack(log_slopes).sum(0) + (logsigmoid(logits) + logsigmoid(-logits)).sum(1)
        torch.testing.assert_close(found, chain.log_prob(y), rtol=1e-8, atol=1e-8)


def test_the_difference_agrees_with_the_slope_to_the_error_of_the_difference(difference_case):
    """(F(y + d) - F(y - d)) / 2 d = p + d^2 p'' / 6: a tenth of the step, a hundredth of the error."""
    case = difference_case
    x = case.rows(4)
    y = case.network()(x).sample(16, seeded(1))
    with torch.no_grad():
        exact = case.network()(x).log_prob(y)
        errors = []
        for delta in (1e-3, 1e-4):
            network = case.design(delta=delta).build(seeded())
            network.double().load_state_dict(case.network().state_dict())
            errors.append((network.eval()(x).log_prob(y) - exact).abs())
    curvature = errors[0].max().item() / 1e-6
    assert errors[0].max() < 1e-2  # one of the densities may bend sharply within the wide step
    assert errors[1].max().item() <= 1.5e-8 * curvature + 1e-9
    assert errors[0].max() > 0.0


def test_a_difference_is_never_silent(case):
    """Where two floats no longer tell F(y + d) from F(y - d), the density is small but no zero."""
    if case.is_exact:
        network = case.design(delta=1e-9).build(seeded()).double()
        network.load_state_dict(case.network().state_dict())
    else:
        network = case.network()
    law = network.eval()(case.rows(2))
    for name, single in single_laws(law).items():
        with torch.no_grad():
            y = single.icdf(TAILS[:, None].expand(-1, 2))
            assert single.read(y).log_density.isfinite().all(), name


# CDF and quantiles


def test_quantiles_invert_the_cdf_out_to_the_tails(case):
    network = case.network()
    law = network(case.rows(3))
    levels = TAILS[:, None].expand(-1, 3)
    with torch.no_grad():
        for name, single in single_laws(law).items():
            y = single.icdf(levels)
            logits = single.read(y).logit
            torch.testing.assert_close(logits, levels, rtol=0, atol=1e-6, msg=lambda text, name=name: name + text)
            again = single.icdf(logits)
            scale = y.abs() + spread_of(network, output_of(name))[1]
            assert ((again - y).abs() <= 1e-6 * scale).all(), name


def test_many_levels_at_once_are_the_levels_one_by_one(chain_case):
    """A table of all rows speeds up many levels; in no order, far in the tails, some of them twice."""
    network = chain_case.network()
    law = network(chain_case.rows(3))
    levels = torch.cat([torch.linspace(-4, 4, 30, dtype=torch.float64), 4.0 * TAILS, TAILS])
    levels = levels[torch.randperm(len(levels), generator=seeded(27))][:, None].expand(-1, 3)
    with torch.no_grad():
        for name, single in single_laws(law).items():
            many, few = single.icdf(levels), torch.cat([single.icdf(part) for part in levels.split(4)])
            scale = many.abs() + spread_of(network, output_of(name))[1]
            assert ((many - few).abs() <= 1e-9 * scale).all(), name
            if chain_case.is_unbounded:
                torch.testing.assert_close(single.read(many).logit, levels, rtol=1e-9, atol=1e-8)


def test_the_inverse_of_the_chain_is_its_inverse(chain_case):
    network = chain_case.network()
    law = network(chain_case.rows(4))
    with torch.no_grad():
        y = law.sample(8, seeded(2))
        torch.testing.assert_close(
            law.inverse(law.logits(y)), y, rtol=1e-9, atol=1e-9 * network.scale_y.scale.max().item()
        )
        far = TAILS[torch.randint(0, len(TAILS), (8, 4, law.n_outputs), generator=seeded(3))]
        torch.testing.assert_close(law.logits(law.inverse(far)), far, rtol=0, atol=1e-6)


def test_the_cdf_rises_strictly_and_reaches_both_ends(case):
    law = case.network()(case.rows(2))
    levels = torch.linspace(-25, 25, 101, dtype=torch.float64)[:, None].expand(-1, 2)
    with torch.no_grad():
        for name, single in single_laws(law).items():
            y = single.icdf(levels)
            assert (y.diff(dim=0) > 0).all(), name
            assert (single.read(y).logit.diff(dim=0) > 0).all(), name
            middle = 0.5 * (y[1:] + y[:-1])
            between = single.read(middle).logit
            assert ((between > levels[:-1] - 1e-6) & (between < levels[1:] + 1e-6)).all(), name


def test_quantiles_stay_within_the_support_and_silence_beyond_it(bounded_case):
    case = bounded_case
    law = case.network()(case.rows(2))
    levels = torch.tensor([-700.0, -50.0, 0.0, 50.0, 700.0], dtype=torch.float64)[:, None].expand(-1, 2)
    with torch.no_grad():
        for name, single in single_laws(law).items():
            low, high = case.support[output_of(name)]
            y = single.icdf(levels)
            for end, sign in ((low, -1.0), (high, 1.0)):
                if end is None:
                    continue
                assert (sign * (y - end) <= 1e-12 * (1.0 + abs(end))).all(), name
                at, beyond = (
                    torch.full((1, 2), end, dtype=torch.float64),
                    torch.full((1, 2), end + sign, dtype=torch.float64),
                )
                assert single.read(beyond).log_density.eq(-math.inf).all(), name
                assert single.read(beyond).logit.eq(sign * math.inf).all(), name
                assert single.read(at).log_density.isfinite().all(), name


def test_the_log_density_far_away_is_finite(unbounded_case):
    """One thousand training ranges away, and much further."""
    law = unbounded_case.network()(unbounded_case.rows(3))
    for ranges in (1e3, 1e6, 1e30, 1e100):
        for sign in (-1.0, 1.0):
            center, spread = (torch.tensor(part[: law.n_outputs], dtype=torch.float64) for part in (CENTER, SPREAD))
            y = (center + sign * ranges * 6.0 * spread).expand(3, -1)
            with torch.no_grad():
                assert law.log_prob(y).isfinite().all(), sign * ranges
                assert law.log_prob(y).isfinite().all(), sign * ranges
                for name, single in single_laws(law).items():
                    reading = single.read(y[:, output_of(name)])
                    assert reading.log_density.isfinite().all(), name
                    assert (sign * reading.logit > 30).all(), name


def test_no_later_output_loses_its_law_when_an_earlier_one_is_impossible(chain_case):
    """Outside a declared support the joint density is zero; the later conditional CDFs are still numbers."""
    case = chain_case
    law = case.network()(case.rows(2))
    y = law.sample(1, seeded())[0]
    for i, (low, high) in enumerate(case.support):
        if low is None and high is None:
            continue
        outside = y.clone()
        outside[:, i] = low - 1.0 if low is not None else high + 1.0
        with torch.no_grad():
            assert law.log_prob(outside).eq(-math.inf).all()
            assert law.log_prob(outside[None])[0].eq(-math.inf).all()
            assert not law.logits(outside).isnan().any()


def test_an_output_at_an_end_of_its_support_leaves_the_later_ones_their_laws(chain_case):
    """Every output with an end lies exactly there: the density, the CDFs and the quantiles are numbers still."""
    case = chain_case
    law = case.network()(case.rows(2))
    levels = torch.tensor([-700.0, -40.0, 0.0, 40.0, 700.0], dtype=torch.float64)[:, None].expand(-1, 2)
    for side in (0, 1):
        y = law.sample(1, seeded())[0]
        for i, ends in enumerate(case.support):
            if ends[side] is not None:
                y[:, i] = ends[side]
        with torch.no_grad():
            assert law.log_prob(y).isfinite().all() and not law.logits(y).isnan().any()
            factor = law.first()
            for i in law.order:
                assert factor.icdf(levels).isfinite().all()
                factor = factor.then(y[:, i]) if i != law.order[-1] else factor


# The chain


def test_autoregressive_zeros_are_exact(several_outputs_case):
    """Factor i, in the one pass that computes all factors, has gradient 0.0 with respect to every later output."""
    case = several_outputs_case
    network = case.network()
    features = network.scale_x(case.rows(5))[None]
    y = network(case.rows(5)).sample(1, seeded(4))[0]
    chain = network.chain(network.scale_y(y)).clone().requires_grad_()
    reading = network.readings(features, chain)
    for part in (reading.logit, reading.log_density):
        for i in range(case.n_outputs):
            (slope,) = torch.autograd.grad(part[:, i].sum(), chain, retain_graph=True)
            assert slope[:, i + 1 :].eq(0.0).all()
            if i and part is reading.logit:
                assert slope[:, :i].abs().amax((0, 2)).gt(0.0).all()


def test_the_zeros_are_exact_in_the_users_order(chain_case):
    law = chain_case.network()(chain_case.rows(3))
    y = law.sample(1, seeded(5))[0].requires_grad_()
    for reading, i in zip(law.readings(y), range(law.n_outputs), strict=True):
        for part in reading:
            (slope,) = torch.autograd.grad(part.sum(), y, retain_graph=True)
            later = law.order[law.order.index(i) + 1 :]
            assert slope[:, list(later)].eq(0.0).all()


def test_conditions_know_nothing_of_their_own_output(several_outputs_case):
    """Not even through the trunk: what shifts the lines of factor i has no derivative by output i or later ones."""
    network = several_outputs_case.network()
    features = network.scale_x(several_outputs_case.rows(4))[None]
    m, d = network.order.shape
    chain = torch.randn(m, d, 4, generator=seeded(6), dtype=torch.float64, requires_grad=True)
    for bias in network.stack.biases(network.conditioner(features, chain[:, :-1])):
        by_factor = bias.unflatten(0, (m, d))
        for i in range(d):
            (slope,) = torch.autograd.grad(by_factor[:, i].square().sum(), chain, retain_graph=True)
            assert slope[:, i:].eq(0.0).all()
            assert slope[:, :i].ne(0.0).all()


def test_walking_the_chain_gives_the_parallel_density(case):
    law = case.network()(case.rows(4))
    y = law.sample(5, seeded(7))
    with torch.no_grad():
        walked = law.log_prob(y)
        parallel = torch.stack([law.log_prob(part) for part in y])
    torch.testing.assert_close(walked, parallel, rtol=1e-10, atol=case.within(1e-10))


def test_weights_of_members_along_the_chain_follow_bayes(chain_case):
    """F_i = sum_m w_m p_m(y_<i) F_mi / sum_m w_m p_m(y_<i), in plain numbers."""
    network = chain_case.network()
    x = chain_case.rows(4)
    law = network(x)
    y = law.sample(1, seeded(8))[0]
    with torch.no_grad():
        reading = network.readings(network.scale_x(x)[None], network.chain(network.scale_y(y)))
        scale = network.scale_y.scale[list(law.order)][:, None]
        density, cdf = reading.log_density.exp() / scale, reading.logit.sigmoid()
        weight = network.log_weights.exp()[:, None, None] * torch.cat(
            [torch.ones_like(cdf[:, :1]), density[:, :-1].cumprod(1)], 1
        )
        wanted_cdf = (weight * cdf).sum(0) / weight.sum(0)
        wanted_density = (weight * density).sum(0) / weight.sum(0)
        found = law.readings(y)
    rtol = chain_case.within(1e-10)
    for place, i in enumerate(law.order):
        torch.testing.assert_close(found[i].logit.sigmoid(), wanted_cdf[place], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(found[i].log_density.exp(), wanted_density[place], rtol=rtol, atol=0)
    torch.testing.assert_close(law.log_prob(y).exp(), wanted_density.prod(0), rtol=rtol, atol=0)


def test_a_mixture_of_orders_is_the_weighted_sum_of_its_members(cycled_case):
    network = cycled_case.network()
    x = cycled_case.rows(4)
    law = network(x)
    y = law.sample(1, seeded(9))[0]
    with torch.no_grad():
        reading = network.readings(network.scale_x(x)[None], network.chain(network.scale_y(y)))
        density = reading.log_density.sum(1).exp() / network.scale_y.scale.prod()
        wanted = (network.log_weights.exp()[:, None] * density).sum(0)
    torch.testing.assert_close(law.log_prob(y).exp(), wanted, rtol=1e-10, atol=0)


# Rows


def test_a_row_knows_nothing_of_the_rows_beside_it(case):
    network = case.network()
    x = case.rows(9)
    whole = network(x)
    y = whole.sample(1, seeded(10))[0]
    index = torch.tensor([7, 2, 2, 5])
    several = torch.cat([x[index], 100.0 * x])
    near = {"rtol": 1e-10, "atol": case.within(1e-10)}
    with torch.no_grad():
        wanted = whole.log_prob(y)
        assert torch.allclose(network(several).log_prob(torch.cat([y[index], y]))[:4], wanted[index], **near)
        for here in (slice(3, 4), slice(1, 9, 3), slice(0, 9)):
            part = whole.rows(here)
            assert part.n_rows == len(x[here])
            assert torch.allclose(part.log_prob(y[here]), wanted[here], **near)
        for i in range(whole.n_outputs):
            marginal = Marginal(whole, i, 16)
            alone = Marginal(network(x[4:5]), i, 16)
            levels = TAILS[:, None, None]
            assert torch.allclose(
                marginal.inverse(levels.expand(-1, 9, 1))[:, 4:5], alone.inverse(levels), rtol=1e-9, atol=1e-9
            )
            assert torch.allclose(marginal.rows(slice(4, 5)).log_prob(y[4:5, i : i + 1]),
                                  marginal.log_prob(y[:, i : i + 1])[4:5], **near)  # fmt: skip


def test_work_in_pieces_gives_the_whole(case, monkeypatch):
    law = case.network()(case.rows(5))
    y = law.sample(3, seeded(11))
    with torch.no_grad():
        whole = law.log_prob(y), *(law.marginal(i, 8).read(y[..., i]).logit for i in range(law.n_outputs))
        monkeypatch.setattr(factors, "LINES_AT_ONCE", 300)
        pieces = law.log_prob(y), *(law.marginal(i, 8).read(y[..., i]).logit for i in range(law.n_outputs))
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=case.within(1e-10))


def test_draws_in_pieces_are_the_draws_of_the_whole(case, monkeypatch):
    law = case.network()(case.rows(5))
    with torch.no_grad():
        whole = law.sample(8, seeded(24))
        monkeypatch.setattr(walk, "LINES_AT_ONCE", 30)
        monkeypatch.setattr(ensemble, "DRAWS_AT_ONCE", 7)
        pieces = law.sample(8, seeded(24))
    scale = case.network().scale_y.scale.max().item()
    torch.testing.assert_close(pieces, whole, rtol=1e-9, atol=1e-9 * scale)


def test_asking_changes_nothing(case):
    network = case.network()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    law = network(case.rows(3))
    with torch.no_grad():
        law.log_prob(law.sample(4, seeded(12)))
        law.marginal(law.n_outputs - 1, 16).icdf(TAILS[:, None].expand(-1, 3))
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


# Units


@pytest.mark.parametrize("factor", [1e-12, 1e9])
def test_new_units_shift_the_log_density_by_the_log_of_the_factor(case, factor):
    """At the level of the network: the same numbers with another scale."""
    network = case.network()
    other = case.design().build(seeded()).double().eval()
    other.load_state_dict(network.state_dict())
    for part in (other.scale_y.center, other.scale_y.scale, other.support):
        part.mul_(factor)
    x = case.rows(4)
    y = network(x).sample(1, seeded(13))[0]
    with torch.no_grad():
        wanted = network(x).log_prob(y) - case.n_outputs * math.log(factor)
        torch.testing.assert_close(other(x).log_prob(factor * y), wanted, rtol=1e-9, atol=case.within(1e-9))
        draws = network(x).sample(3, seeded(14)), other(x).sample(3, seeded(14))
    torch.testing.assert_close(draws[1] / factor, draws[0], rtol=1e-9, atol=1e-9 * network.scale_y.scale.max().item())


def test_float32_says_nearly_the_same(case):
    """Training sees float32; what it is told must be the law that is asked about later."""
    network = case.network()
    single = case.design().build(seeded()).eval()
    single.load_state_dict(network.state_dict())
    x = case.rows(8)
    y = network(x).sample(1, seeded(15))[0]
    tolerance = 1e-3 if case.is_exact else 0.7  # a difference over 1e-5 has two digits in float32
    with torch.no_grad():
        found, wanted = single(x).log_prob(y), network(x).log_prob(y)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)


# Draws


def test_every_draw_lies_at_the_logits_it_was_drawn_for(chain_case):
    """To a millionth or so, of one member, whose logits the generator tells again."""
    law = chain_case.network()(chain_case.rows(3))
    alone = Ensemble(law.network, law.features, slice(0, 1))
    told = seeded(25)
    torch.multinomial(torch.ones(1), 300, replacement=True, generator=told)
    asked = torch.empty(100, 3, law.n_outputs, dtype=torch.float64)
    asked[..., list(law.order)] = random_logits((100, 3, law.n_outputs), told)
    with torch.no_grad():
        found = alone.logits(alone.sample(100, seeded(25)))
    torch.testing.assert_close(found, asked, rtol=0, atol=5e-6)


def test_a_chain_walked_with_what_is_known_is_the_chain_computed_at_once(chain_case):
    network = chain_case.network()
    law = network(chain_case.rows(4))
    with torch.no_grad():
        y = law.sample(3, seeded(26))
        features = network.scale_x(chain_case.rows(4))[None].repeat(1, 1, 3)
        chain = network.chain(network.scale_y(y.flatten(0, 1)))
        at_once = network.readings(features, chain).logit
        factor = law.first().member
        for place in range(law.n_outputs):
            points = chain[:, place, None] if place else chain[:, 0].view(-1, 3, 4)
            logit = factor.read(points).logit.reshape(len(chain), -1)
            torch.testing.assert_close(logit, at_once[:, place], rtol=1e-10, atol=1e-10)
            factor = factor.then(points) if place < law.n_outputs - 1 else factor


def uniform(values) -> float:
    return stats.kstest(np.asarray(values), "uniform").pvalue


@pytest.mark.parametrize("size", [400, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_chain_of_cdfs_makes_own_draws_uniform_and_independent(chain_case, size):
    law = chain_case.network()(chain_case.rows(2))
    with torch.no_grad():
        u = law.logits(law.sample(size, seeded(16))).sigmoid().numpy()
    for row in range(2):
        for i in range(law.n_outputs):
            assert uniform(u[:, row, i]) > 1e-3
        for i in range(1, law.n_outputs):
            assert abs(stats.spearmanr(u[:, row, i], u[:, row, i - 1]).statistic) < 3.5 / math.sqrt(size)


@pytest.mark.parametrize(("size", "n_paths"), [(400, 64), pytest.param(5000, 1024, marks=pytest.mark.slow)])
def test_draws_agree_with_every_marginal_cdf(case, size, n_paths):
    law = case.network()(case.rows(2))
    with torch.no_grad():
        draws = law.sample(size, seeded(17))
        for i in range(law.n_outputs):
            u = law.marginal(i, n_paths).read(draws[..., i]).logit.sigmoid()
            assert min(uniform(u[:, 0]), uniform(u[:, 1])) > 1e-3, i


@pytest.mark.parametrize("size", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_draws_agree_with_the_joint_density(several_outputs_case, size):
    """E_p[q / (p + q)] = E_q[p / (p + q)] for any other density q, here of independent normal outputs.

    Both sides average numbers between 0 and 1, so that no draw in a gap between modes decides alone, as in E_p[q / p].
    """
    network = several_outputs_case.network()
    law = network(several_outputs_case.rows(2))
    with torch.no_grad():
        pilot = law.sample(200, seeded(18))
        q = torch.distributions.Normal(pilot.mean(0), pilot.std(0))
        ours = law.sample(size, seeded(19))
        others = q.mean + q.stddev * torch.randn(ours.shape, generator=seeded(20), dtype=torch.float64)
        log_ratio = [q.log_prob(y).sum(-1) - law.log_prob(y) for y in (ours, others)]
    below_p, below_q = log_ratio[0].sigmoid(), (-log_ratio[1]).sigmoid()
    error = ((below_p.var(0) + below_q.var(0)) / size).sqrt()
    assert ((below_p.mean(0) - below_q.mean(0)).abs() < 4.0 * error).all()
    assert (error < 0.1 * below_q.mean(0)).all()


def test_quasi_random_paths_have_the_moments_of_draws(case):
    network = case.network()
    law = network(case.rows(2))
    with torch.no_grad():
        points, log_weights = law.paths(128)
        draws = law.sample(1000, seeded(19))
    assert log_weights.exp().sum().item() == pytest.approx(1.0, abs=1e-12)
    weights = log_weights.exp()[:, None, None]
    mean = (weights * points).sum(0)
    error = draws.std(0) / math.sqrt(1000)
    assert ((mean - draws.mean(0)).abs() < 4.5 * error).all()


def test_draws_depend_on_the_generator_alone(case):
    law = case.network()(case.rows(2))
    with torch.no_grad():
        assert torch.equal(law.sample(5, seeded(1)), law.sample(5, seeded(1)))
        assert not torch.equal(law.sample(5, seeded(1)), law.sample(5, seeded(2)))
        assert torch.equal(law.paths(64)[0], law.rows(slice(None)).paths(64)[0])


def test_either_half_of_the_paths_stands_for_every_member(case):
    law = case.network()(case.rows(2))
    with torch.no_grad():
        _, log_weights = law.paths(16)
    first, second = log_weights.exp().sort().values.view(-1, 2).unbind(1), log_weights.exp().chunk(2)
    assert second[0].sum().item() == pytest.approx(0.5, abs=1e-12)
    torch.testing.assert_close(first[0], second[0].sort().values)


def test_a_factor_along_paths_is_that_of_each_row_and_path(chain_case):
    """What x alone decides is computed once a row."""
    law = chain_case.network()(chain_case.rows(3))
    for place in range(law.n_outputs):
        with torch.no_grad():
            along = law.after_paths(place, 4)
            repeated = MemberFactor(law.network, law.members, law.features.repeat(1, 1, 4), along.before)
        for one, other in zip(along.biases, repeated.biases, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


# Marginals


def test_the_first_output_of_a_chain_has_an_exact_marginal(chain_case):
    law = chain_case.network()(chain_case.rows(3))
    first = law.order[0]
    y = law.sample(4, seeded(20))[..., first]
    with torch.no_grad():
        marginal = law.marginal(first, 256)
        assert marginal.n_paths == 1
        for one, other in zip(marginal.read(y), law.first().read(y), strict=True):
            assert torch.equal(one, other)


def test_two_ways_to_average_over_paths_agree(chain_case):
    """Every member along its own paths, or the whole chain along paths of its own."""
    law = chain_case.network()(chain_case.rows(2))
    for i in law.order[1:]:
        y = law.sample(20, seeded(21))[..., i]
        with torch.no_grad():
            members, whole = law.marginal(i, 512).read(y), Triangular.marginal(law, i, 512).read(y)
        assert (members.logit.sigmoid() - whole.logit.sigmoid()).abs().max() < 5e-3
        assert (members.log_density.exp() / whole.log_density.exp() - 1.0).abs().median() < 1e-2


def test_a_marginal_is_the_integral_of_the_joint_density(smooth_pair_case):
    """To the error stated for 256 paths, about 1e-3."""
    case = smooth_pair_case
    network = case.network()
    law = network(case.rows(1))
    for i in range(2):
        other, weight = nodes(case.support[1 - i], *spread_of(network, 1 - i), 100)
        with torch.no_grad():
            marginal = law.marginal(i, 256)
            y = marginal.icdf(torch.linspace(-3, 3, 9, dtype=torch.float64)[:, None])[:, 0]
            points = torch.empty(len(y), len(other), 1, 2, dtype=torch.float64)
            points[..., 0, i], points[..., 0, 1 - i] = y[:, None], other
            joint = law.log_prob(points.view(-1, 1, 2)).exp().view(len(y), len(other))
            found = marginal.read(y[:, None]).log_density[:, 0].exp()
        wanted = joint @ weight
        torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-3 * wanted.max().item())


# What has no answer


def test_a_mixture_of_orders_refuses_what_needs_one_chain(cycled_case):
    law = cycled_case.network()(cycled_case.rows(2))
    assert isinstance(law, Mixture)
    y = law.sample(1, seeded())[0]
    with pytest.raises(
        NotAvailableError, match=r"the chain of conditional CDFs must come from one chain.*order='given'"
    ):
        law.logits(y)
    with pytest.raises(
        NotAvailableError, match="the inverse of the chain of conditional CDFs must come from one chain"
    ):
        law.inverse(y)


def test_every_case_is_what_it_says(case):
    network = case.network()
    assert isinstance(network, CDFNetwork)
    assert (network.n_members, network.n_outputs) == (len(case.order), case.n_outputs)
    assert len(network.scale_x.center) == N_FEATURES
    assert network.dtype == torch.float64
    assert isinstance(network(case.rows(1)), Triangular if case.is_chain else Mixture)
    assert network.link.bounded is not case.is_unbounded
