"""The parts of a network: layers against their formulas, links against theirs, masks, and the description of it all."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch.nn.functional import logsigmoid

from ogive.distribution import Reading
from ogive.errors import DataError
from ogive.nn.architecture import Architecture
from ogive.nn.jet import Jet
from ogive.nn.linear import Condition
from ogive.nn.links import BoundaryLink, CentralDifference, LogisticLink, TruncatedLink
from ogive.nn.monotone import HardMinMaxLayer, LinearLayer, RisingNorm, SoftMinMaxLayer, SquashLayer
from ogive.numerics import bracketed_newton

OPEN = (None, None)
INFINITY = torch.tensor(math.inf)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def design(**changes) -> Architecture:
    sizes = {"n_features": 3, "hidden": (6,), "units": 3, "groups": 2}
    return Architecture(**({"order": ((0, 1),) * 2, "support": (OPEN,) * 2} | sizes | changes))


# Layers


def layer(kind, n_in=1, n_out=1, units=3, groups=2):
    made = kind((2, 2), n_in, n_out, units, groups, 5, seeded()).double()
    bias = made.bias(Condition(normal(4, 5, 7)))
    return made, bias


def lines(made, bias, below):
    """All lines (f, n_out, u, g, q, n), written out."""
    n_out, units, groups = made.shape
    weight = made.log_weight.exp().view(4, n_out, units, groups, made.n_in, 1, 1)
    return (weight * below.value[:, None, None, None]).sum(4) + bias.view(4, n_out, units, groups, 1, -1)


def with_slopes(made, bias, point):
    """A jet by autograd: the layer's value, and the log of its derivative by a point that moves all features."""
    point = point.clone().requires_grad_()
    value = torch.cat([point, 2.0 * point], 1)[:, : made.n_in]
    log_slope = torch.tensor([1.0, 2.0], dtype=torch.float64).log()[: made.n_in].view(1, -1, 1, 1)
    below = Jet(value, log_slope.expand_as(value))
    jet = made(below, bias)
    slopes = [torch.autograd.grad(part.sum(), point, retain_graph=True)[0] for part in jet.value.unbind(1)]
    return below, jet, torch.cat(slopes, 1)


@pytest.mark.parametrize("n_in", [1, 2])
@pytest.mark.parametrize("n_out", [1, 3])
@pytest.mark.parametrize("kind", [SoftMinMaxLayer, HardMinMaxLayer, SquashLayer, LinearLayer])
def test_a_layers_slope_is_the_derivative_of_its_value(kind, n_in, n_out):
    units, groups = (3, 2) if kind in (SoftMinMaxLayer, HardMinMaxLayer) else (1, 1)
    made, bias = layer(kind, n_in, n_out, units, groups)
    _, jet, slopes = with_slopes(made, bias, 3.0 * normal(4, 1, 6, 7, seed=2))
    assert jet.value.shape == jet.log_slope.shape == (4, n_out, 6, 7)
    torch.testing.assert_close(jet.log_slope.exp(), slopes, rtol=1e-10, atol=0)


@pytest.mark.parametrize("n_in", [1, 2])
def test_values_follow_their_formulas(n_in):
    point = normal(4, 1, 6, 7, seed=3)
    for kind, formula in {
        SoftMinMaxLayer: lambda v: -torch.logsumexp(-torch.logsumexp(v, 2), 2),
        HardMinMaxLayer: lambda v: v.amax(2).amin(2),
        SquashLayer: lambda v: (v.tanh() + 0.1 * v).flatten(1, 3),
        LinearLayer: lambda v: v.flatten(1, 3),
    }.items():
        units, groups = (3, 2) if kind in (SoftMinMaxLayer, HardMinMaxLayer) else (1, 1)
        made, bias = layer(kind, n_in, 3, units, groups)
        below, jet, _ = with_slopes(made, bias, point)
        torch.testing.assert_close(jet.value, formula(lines(made, bias, below)), rtol=1e-12, atol=1e-12)


def test_the_soft_layer_lies_within_a_logarithm_of_the_hard_one():
    made, bias = layer(SoftMinMaxLayer, units=5, groups=4)
    hard = HardMinMaxLayer((2, 2), 1, 1, 5, 4, 5, seeded()).double()
    hard.load_state_dict(made.state_dict())
    below = Jet(normal(4, 1, 6, 7), torch.zeros(4, 1, 6, 7, dtype=torch.float64))
    gap = made(below, bias).value - hard(below, bias).value
    assert (gap <= math.log(5)).all() and (gap >= -math.log(4)).all()


def test_the_squash_layer_reaches_both_infinities():
    made, bias = layer(SquashLayer, 1, 4, 1, 1)
    far = torch.tensor([-1e6, 1e6], dtype=torch.float64).view(1, 1, 2, 1).expand(4, 1, 2, 7)
    jet = made(Jet(far, torch.zeros_like(far)), bias)
    assert (jet.value[:, :, 0] < -1e3).all() and (jet.value[:, :, 1] > 1e3).all()
    assert jet.log_slope.isfinite().all()


def test_the_norm_standardises_by_its_first_point_and_remembers():
    norm = RisingNorm((2, 2), 3).double().train()
    jet = Jet(5.0 + 2.0 * normal(4, 3, 2, 400), torch.zeros(4, 3, 2, 400, dtype=torch.float64))
    out = norm(jet)
    assert out.value[:, :, 0].mean(-1).abs().max() < 1e-12
    torch.testing.assert_close(out.value[:, :, 0].var(-1, unbiased=False), torch.ones(4, 3).double(), rtol=1e-4, atol=0)
    slope = (out.value[..., 1, :] - out.value[..., 0, :]) / (jet.value[..., 1, :] - jet.value[..., 0, :])
    torch.testing.assert_close(out.log_slope[:, :, 0].exp(), slope, rtol=1e-9, atol=0)
    for _ in range(200):
        norm(jet)
    norm.eval()
    torch.testing.assert_close(norm(jet).value, out.value, rtol=1e-6, atol=1e-6)
    # In evaluation a row does not see the others.
    alone = norm(Jet(jet.value[..., 3:4], jet.log_slope[..., 3:4]))
    torch.testing.assert_close(alone.value, norm(jet).value[..., 3:4], rtol=1e-12, atol=1e-12)


# Links


def rising(point):
    """O(t) = t + e^t: unbounded on both sides."""
    return Jet(point + point.exp(), torch.log1p(point.exp()))


def ends(low, high):
    return tuple(torch.full((1, 1, 1), end, dtype=torch.float64) for end in (low, high))


def fraction(value, low, high):
    return (value - low) / (high - low)


POINTS = torch.linspace(-0.9, 1.4, 9, dtype=torch.float64).view(1, 3, 3)


@pytest.mark.parametrize(
    ("link", "low", "high", "cdf"),
    [
        (LogisticLink(), -math.inf, math.inf, lambda o, low, high: o.sigmoid()),
        (TruncatedLink(), -1.0, math.inf, lambda o, low, high: (o.sigmoid() - low.sigmoid()) / (1 - low.sigmoid())),
        (TruncatedLink(), -math.inf, 1.5, lambda o, low, high: o.sigmoid() / high.sigmoid()),
        (
            TruncatedLink(),
            -1.0,
            1.5,
            lambda o, low, high: (o.sigmoid() - low.sigmoid()) / (high.sigmoid() - low.sigmoid()),
        ),
        (BoundaryLink(), -1.0, 1.5, lambda o, *ends: fraction(o, *ends)),
    ],
)
def test_links_follow_their_formulas(link, low, high, cdf):
    def direct(point):
        values = (rising(torch.as_tensor(end, dtype=torch.float64)).value for end in (max(low, -50), min(high, 50)))
        return cdf(rising(point).value, *values)

    reading = link.read(rising, POINTS, ends(low, high))
    torch.testing.assert_close(reading.logit.sigmoid(), direct(POINTS), rtol=1e-10, atol=0)
    point = POINTS.clone().requires_grad_()
    (density,) = torch.autograd.grad(direct(point).sum(), point)
    torch.testing.assert_close(reading.log_density.exp(), density, rtol=1e-9, atol=0)
    mass = link.log_mass(rising, POINTS - 0.05, POINTS + 0.05, ends(low, high))
    torch.testing.assert_close(mass.exp(), direct(POINTS + 0.05) - direct(POINTS - 0.05), rtol=1e-9, atol=0)
    target = link.target(rising, reading.logit, ends(low, high))
    torch.testing.assert_close(target, rising(POINTS).value, rtol=1e-9, atol=1e-12)
    assert link.bounded is not isinstance(link, LogisticLink)


@pytest.mark.parametrize("link", [LogisticLink(), TruncatedLink(), BoundaryLink()])
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_the_central_difference_is_the_papers(link, delta):
    low, high = (-math.inf, math.inf) if not link.bounded else (-1.0, 1.5)
    by_difference = CentralDifference(link, delta)
    reading = by_difference.read(rising, POINTS, ends(low, high))
    above, below = (link.read(rising, POINTS + step, ends(low, high)).logit.sigmoid() for step in (delta, -delta))
    torch.testing.assert_close(reading.log_density.exp(), (above - below) / (2 * delta), rtol=1e-9, atol=0)
    exact = link.read(rising, POINTS, ends(low, high))
    assert torch.equal(reading.logit, exact.logit)
    assert (reading.log_density - exact.log_density).abs().max() < 20 * delta**2
    assert by_difference.bounded is link.bounded
    levels = torch.zeros(1, 1, 3, dtype=torch.float64)
    targets = (kind.target(rising, levels, ends(low, high)) for kind in (by_difference, link))
    assert torch.equal(*targets)
    mass = by_difference.log_mass(rising, POINTS - 0.1, POINTS + 0.1, ends(low, high))
    assert torch.equal(mass, link.log_mass(rising, POINTS - 0.1, POINTS + 0.1, ends(low, high)))


def test_a_difference_too_fine_for_the_floats_is_their_resolution():
    """In float32, t + 5e-6 and t - 5e-6 are one number from t = 100 on; the density must not be nought there."""
    point = torch.full((1, 1, 1), 1e3)

    def flat(t):
        return Jet(t, torch.zeros_like(t))

    reading = CentralDifference(LogisticLink(), 5e-6).read(flat, point, (-INFINITY, INFINITY))
    assert reading.log_density.isfinite().all()
    one = torch.ones(1, 1, 1)
    assert CentralDifference(BoundaryLink(), 1e-9).read(flat, 0.5 * one, (-one, one)).log_density.isfinite().all()


@pytest.mark.parametrize("link", [TruncatedLink(), BoundaryLink()])
def test_beyond_the_ends_there_is_nothing(link):
    point = torch.tensor([-1.1, -1.0, 1.5, 1.6], dtype=torch.float64).view(1, 4, 1)
    reading = link.read(rising, point, ends(-1.0, 1.5))
    assert reading.logit.flatten().tolist() == [-math.inf, -math.inf, math.inf, math.inf]
    assert reading.log_density.isfinite().flatten().tolist() == [False, True, True, False]


@pytest.mark.parametrize("link", [TruncatedLink(), BoundaryLink()])
@pytest.mark.parametrize("level", [-700.0, -30.0, 30.0, 700.0])
def test_quantiles_are_numbers_where_the_cdf_next_to_an_end_runs_out_of_floats(link, level):
    """Within the support, but so near to its end that O and O at the end are one number."""

    def reading(t):
        found = link.read(lambda t: Jet(9.0 + 1e-3 * t, torch.full_like(t, math.log(1e-3))), t, ends(-1.0, 1.0))
        return found.logit, found.log_slope

    assert reading(torch.full((1, 1, 1), -1.0 + 1e-14, dtype=torch.float64))[0].isneginf().all()
    found = bracketed_newton(reading, torch.full((1, 1, 1), level, dtype=torch.float64), *ends(-1.0, 1.0))
    assert found.item() == pytest.approx(math.copysign(1.0, level), abs=1e-11) and abs(found.item()) <= 1.0


def test_a_readings_log_slope_is_that_of_its_logit():
    value = normal(1, 3, 4)
    reading = Reading(value, logsigmoid(value) + logsigmoid(-value) + 0.7)
    torch.testing.assert_close(reading.log_slope, torch.full_like(value, 0.7))


# Noise and boundaries


def test_noise_shifts_the_point_and_its_boundaries_alike():
    """The same noise on y and both ends leaves y inside, and the density what it would be with all three moved."""
    network = design(support=((-1.0, 2.0), (0.0, 1.0))).build(seeded(), torch.float64)
    network.scale_y.fit_range(*network.support)
    features, chain = normal(1, 3, 5), normal(2, 2, 5, seed=4).tanh()
    shift = 7.0 + normal(2, 2, 5, seed=5)
    reading = network.readings(features, chain + shift, shift=shift)
    assert reading.log_density.isfinite().all()
    near_end = network.readings(features, torch.full_like(chain, -1.0) + shift, shift=shift)
    assert near_end.logit.lt(-30).all()
    unmoved = network.readings(features, chain + shift)
    assert unmoved.log_density.eq(-math.inf).all()


# The network


@pytest.mark.parametrize("order", [((0, 1, 2),) * 2, ((2, 0, 1),) * 2, ((0, 1, 2), (1, 2, 0), (2, 0, 1))])
def test_the_chain_puts_outputs_into_each_members_order(order):
    network = design(order=order, support=(OPEN,) * 3).build(seeded())
    scaled = normal(4, 3)
    chain = network.chain(scaled)
    for member, own in enumerate(order):
        assert torch.equal(chain[member], scaled[:, list(own)].mT)
    several = normal(len(order), 4, 3, seed=6)
    for member, own in enumerate(order):
        assert torch.equal(network.chain(several)[member], several[member][:, list(own)].mT)
    part = slice(1, 2)
    assert torch.equal(network.chain(scaled, part), chain[part])


@pytest.mark.parametrize(("hidden", "conditions"), [((6,), ()), ((2,), ()), ((9, 4), ()), (None, (4, 3))])
@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_any_width_serves_any_number_of_outputs(hidden, conditions, d):
    layers = (1,) if hidden else (2, 1)
    made = design(
        order=(tuple(range(d)),) * 2, support=(OPEN,) * d, hidden=hidden, conditions=conditions, layers=layers
    )
    law = made.build(seeded(), torch.float64).eval()(normal(3, 3))
    y = law.sample(2, seeded(1))
    assert law.log_prob(y).shape == (2, 3) and law.log_prob(y).isfinite().all()
    torch.testing.assert_close(law.inverse(law.logits(y)), y, rtol=1e-8, atol=1e-8)


def test_some_members_alone_are_those_members():
    network = design().build(seeded(), torch.float64)
    features, chain = normal(1, 3, 5), normal(2, 2, 5, seed=7)
    whole = network.readings(features, chain)
    for part in (slice(0, 1), slice(1, 2)):
        for one, other in zip(network.readings(features, chain[part], part), whole, strict=True):
            torch.testing.assert_close(one, other[part], rtol=1e-12, atol=1e-12)


def test_the_papers_layers_have_the_papers_sizes():
    """Features [16, 16, 1], conditions [8, 8, 2], and 32 groups of 32 units to a layer, shared among its features."""
    made = design(layers=(16, 16, 1), conditions=(8, 8, 2), hidden=None, norm=True, units=32, groups=32)
    network = made.build(seeded())
    assert [layer.shape for layer in network.stack.layers] == [(16, 32, 2), (16, 32, 2), (1, 32, 32)]
    assert [layer.n_in for layer in network.stack.layers] == [1, 16, 16]
    assert network.conditioner.widths == [8, 8, 2]
    assert [norm.log_gain.shape[2] for norm in network.stack.norms] == [16, 16, 1]


@pytest.mark.parametrize(
    ("support", "kind"),
    [
        ((OPEN, OPEN), LogisticLink),
        (((0.0, None), OPEN), TruncatedLink),
        (((0.0, 1.0), OPEN), TruncatedLink),
        (((0.0, 1.0), (2.0, 3.0)), BoundaryLink),
    ],
)
def test_the_support_chooses_the_link(support, kind):
    assert type(design(support=support).build(seeded()).link) is kind
    network = design(support=support, delta=1e-5).build(seeded())
    assert type(network.link) is CentralDifference and type(network.link.link) is kind


@pytest.mark.parametrize(
    "changes",
    [{}, {"support": ((0.0, None), (None, 3.5)), "delta": 5e-6}, {"hidden": None, "conditions": (4,), "norm": True}],
)
def test_a_description_survives_json(changes):
    made = design(**changes)
    again = Architecture.from_dict(json.loads(json.dumps(made.as_dict())))
    assert again == made
    network, other = made.build(seeded()), again.build(seeded())
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("order", [((0, 1), (1, 0), (1, 0)), ((0, 1), (0, 1), (1, 0))])
def test_orders_that_do_not_go_round_are_refused(order):
    with pytest.raises(DataError, match="order must go round the members, member k as member k mod 2; got "):
        design(order=order)


def test_members_differ_and_seeds_repeat():
    one, same, other = (design().build(seeded(k)) for k in (0, 0, 1))
    for a, b, c in zip(one.parameters(), same.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert a.numel() == 0 or torch.equal(a, torch.zeros_like(a)) or not torch.equal(a, c)
    weight = one.stack.layers[0].log_weight
    assert not torch.equal(weight[0], weight[1]) and not torch.equal(weight[:, 0], weight[:, 1])


def test_building_touches_no_global_generator():
    before = torch.get_rng_state()
    design(norm=True).build(seeded())
    assert torch.equal(torch.get_rng_state(), before)
