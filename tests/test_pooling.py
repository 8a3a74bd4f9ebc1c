"""Pooling of members: weights of regimes, and the sharpness of outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_expit

from ogive.nn.architecture import Architecture
from ogive.pooling import PRIOR, pool_members, regime_log_weights, sharpen
from ogive.training import Rows

OPEN = ((None, None),)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def weigh_case(n: int, regimes: list[int]):
    design = Architecture(2, ((0,),) * len(regimes), OPEN, units=3, groups=3, hidden=(8, 8))
    network = design.build(seeded(3), torch.float64)
    rows = Rows(
        torch.randn(2, n, generator=seeded(4), dtype=torch.float64),
        torch.randn(n, 1, generator=seeded(5), dtype=torch.float64),
        torch.rand(n, generator=seeded(6), dtype=torch.float64),
    )
    log_density = network.readings(rows.features[None], network.chain(rows.outputs)).log_density.sum(1).detach()
    return network, rows, log_density.exp().numpy()


def test_weights_follow_the_likelihood_of_rows_held_back():
    """Twenty steps of expectation-maximisation from equal weights, on the rows that both regimes have held back."""
    network, rows, density = weigh_case(60, [0, 1, 0])
    hold = torch.stack([torch.arange(0, 40), torch.arange(10, 50), torch.arange(20, 60)])
    found = regime_log_weights(network, rows, hold, [0, 1, 0]).exp()
    common = np.arange(10, 50)
    first = np.where(
        common < 20, density[0, 10:50], np.where(common < 40, density[[0, 2], 10:50].mean(0), density[2, 10:50])
    )
    each, row_weights = np.stack([first, density[1, 10:50]]), rows.weights[10:50].numpy()
    weights = np.full((2, 1), 0.5)
    for _ in range(13):  # a third of the forty rows
        share = weights * each / (weights * each).sum(0)
        weights = (share * row_weights).sum(1, keepdims=True) / row_weights.sum()
    assert found.numpy() == pytest.approx([weights[0, 0] / 2, weights[1, 0], weights[0, 0] / 2], abs=1e-12)


def test_without_rows_to_judge_by_weights_stay_equal():
    network, rows, _ = weigh_case(6, [0, 1])
    hold = torch.tensor([[0, 1], [2, 3]])
    assert regime_log_weights(network, rows, hold, [0, 1]).tolist() == pytest.approx([-math.log(2)] * 2)
    assert regime_log_weights(network, rows, hold, [0, 0]).tolist() == pytest.approx([-math.log(2)] * 2)


def test_sharpness_is_the_most_likely_one_under_its_prior():
    """Against a search over the penalised likelihood, written out from logits and slopes with SciPy."""
    network, rows, _ = weigh_case(60, [0, 1])
    rows = Rows(rows.features, 0.3 * rows.outputs, rows.weights)
    hold = torch.arange(60).expand(2, -1)
    reading = network.readings(rows.features[None], network.chain(rows.outputs))
    logit, log_slope = (part[:, 0].detach().numpy() for part in (reading.logit, reading.log_slope))
    weight = (rows.weights / rows.weights.mean()).numpy()

    def penalised(log_a: float) -> float:
        z = logit * np.exp(log_a)
        density = np.exp(log_expit(z) + log_expit(-z) + log_slope + log_a).mean(0)
        return 0.5 * PRIOR * log_a**2 - float((np.log(density) * weight).sum())

    sharpen(network, rows, hold, [0, 1])
    wanted = minimize_scalar(penalised, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-10}).x
    assert abs(wanted) > 0.05
    assert network.stack.log_sharpness.flatten().tolist() == pytest.approx([wanted, wanted], abs=1e-4)


def test_each_output_has_a_sharpness_of_its_own_in_whatever_order():
    """The second output is drawn from the network's own law made four times as sharp; members meet it in any place."""
    network = Architecture(1, ((0, 1), (1, 0)), OPEN * 2, units=3, groups=3, hidden=(8, 8)).build(
        seeded(1), torch.float64
    )
    x = torch.randn(3000, 1, generator=seeded(2), dtype=torch.float64)
    y = network(x).sample(1, seeded(3))[0]
    middle = network(x).paths(64)[0].mean(0)
    y[:, 1] = middle[:, 1] + 0.25 * (y[:, 1] - middle[:, 1])
    rows = Rows(network.scale_x(x), y, torch.ones(len(x), dtype=torch.float64))
    sharpen(network, rows, torch.arange(len(x)).expand(2, -1), [0, 0])
    found = network.stack.log_sharpness
    assert torch.equal(found[0], found[1].flip(0))
    assert found[0, 1] > 0.5 + found[0, 0].abs()


def test_a_network_sharp_as_it_should_be_stays_as_it_is():
    network = Architecture(1, ((0,),), OPEN, units=3, groups=3, hidden=(8, 8)).build(seeded(1), torch.float64)
    x = torch.randn(4000, 1, generator=seeded(2), dtype=torch.float64)
    y = network(x).sample(1, seeded(3))[0]
    rows = Rows(network.scale_x(x), y, torch.ones(len(x), dtype=torch.float64))
    sharpen(network, rows, torch.arange(len(x))[None], [0])
    assert network.stack.log_sharpness.abs().item() < 0.06


def test_without_rows_that_every_regime_held_back_nothing_is_sharpened():
    network, rows, _ = weigh_case(6, [0, 1])
    pool_members(network, rows, torch.tensor([[0, 1], [2, 3]]), [0, 1])
    assert network.stack.log_sharpness.tolist() == [[0.0], [0.0]]
