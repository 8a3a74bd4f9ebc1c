"""Pilots, weights of members, what is kept of them, and where training runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ogive.devices import device_of, move_network
from ogive.errors import DataError, TrainingStoppedWarning
from ogive.fitting import REGIMES, TrainingTable, _share_out, fit_ensemble, fit_members, member_log_weights
from ogive.nn.architecture import Architecture
from ogive.training import Recipe, Rows

OPEN = ((None, None),)


def table(n: int = 90, d: int = 1) -> TrainingTable:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return TrainingTable(x, x[:, :1] + rng.normal(size=(n, d)), np.ones(n))


def design(members: int, d: int = 1) -> Architecture:
    return Architecture(2, (tuple(range(d)),) * members, OPEN * d, units=3, groups=3, hidden=(8, 8))


def fitted(members: int = 3, **recipe: object):
    settings = {"max_epochs": 6, "patience": 6, "batch_size": 32, "dropout": None} | recipe
    seen: list[tuple[int, int]] = []
    ensemble = fit_ensemble(
        design(members),
        table(),
        Recipe(**settings),  # type: ignore[arg-type]
        torch.Generator().manual_seed(0),
        lambda done: seen.append((done.epoch, done.max_epochs)),
        "cpu",
    )
    return ensemble, seen


def test_pilots_and_members_leave_as_many_as_were_asked_for():
    ensemble, seen = fitted(3)
    assert ensemble.network.n_members == len(ensemble.design.order) == 3
    assert seen == [(epoch, 12) for epoch in range(1, 13)]
    assert float(ensemble.network.log_weights.exp().sum()) == pytest.approx(1.0)
    arrays = ensemble.history.as_arrays()
    assert arrays["train"].shape == (6, 3)
    assert arrays["best_validation"] == pytest.approx(np.nanmin(arrays["validation"], 0))


def test_given_rates_need_no_pilots():
    _, seen = fitted(3, dropout=(0.1, 0.1, 0.1))
    assert seen == [(epoch, 6) for epoch in range(1, 7)]


def test_an_interruption_among_the_pilots_ends_the_fit():
    def stop(done: object) -> None:
        raise KeyboardInterrupt

    with pytest.warns(TrainingStoppedWarning, match="interrupted in epoch"):
        ensemble = fit_ensemble(
            design(3), table(), Recipe(max_epochs=5, dropout=None), torch.Generator().manual_seed(0), stop, "cpu"
        )
    assert ensemble.network.n_members == len(REGIMES)


def test_assembled_members_are_the_trained_ones():
    """Each kept member's density on the rows held back is the one that its history remembers."""
    generator = torch.Generator().manual_seed(0)
    rows, parts = table(), (torch.arange(60), torch.arange(60, 90))
    recipe = Recipe(max_epochs=6, patience=6, batch_size=32, dropout=(0.0, 0.1))
    ensemble = fit_members(design(2), rows, parts, recipe, generator, lambda _: None, "cpu")
    network = ensemble.network
    features = network.scale_x(torch.tensor(rows.features[60:])).float()[None]
    outputs = network.chain(network.scale_y(torch.tensor(rows.targets[60:])).float())
    with torch.no_grad():
        loss = -network.readings(features, outputs).log_density.sum(1).mean(1) - network.scale_y.log_jacobian.sum()
    assert loss.numpy() == pytest.approx(np.array(ensemble.history.best_validation), abs=1e-5)


@pytest.mark.parametrize("size", [1, 4, 8, 13])
def test_shares_are_kept_to_less_than_one_member(size):
    shares = torch.tensor([0.61, 0.02, 0.17, 0.2, 0.0])
    regimes = _share_out(shares, size)
    counts = np.bincount(regimes, minlength=5)
    assert counts.sum() == size
    assert (np.abs(counts - size * shares.numpy()) < 1.0).all()


def test_weights_follow_the_likelihood_and_stay_equal_without_rows():
    """One step of expectation-maximisation from equal weights gives the mean shares; more steps go the same way."""
    network = design(2).build(torch.Generator().manual_seed(3), torch.float64)
    rng = torch.Generator().manual_seed(4)
    rows = Rows(
        torch.randn(2, 40, generator=rng, dtype=torch.float64),
        torch.randn(40, 1, generator=rng, dtype=torch.float64),
        torch.ones(40, dtype=torch.float64),
    )
    log_density = network.readings(rows.features[None], network.chain(rows.outputs)).log_density.sum(1).detach()
    log_weights = member_log_weights(network, rows, torch.arange(40))
    weights = torch.full((2, 1), 0.5, dtype=torch.float64)
    for _ in range(10):
        share = weights * log_density.exp()
        weights = (share / share.sum(0)).mean(1, keepdim=True)
    assert log_weights.exp().numpy() == pytest.approx(weights[:, 0].numpy(), abs=1e-12)
    assert member_log_weights(network, rows, torch.arange(2)).tolist() == pytest.approx([-math.log(2)] * 2)


def test_a_device_is_one_that_is_there():
    assert device_of("cpu") == torch.device("cpu")
    assert device_of("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(DataError, match="device must be 'auto', 'cpu', 'cuda' or 'mps'; got 'tpu'"):
        device_of("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(DataError, match="device must be one that this machine has; got 'cuda'"):
            device_of("cuda")


def test_what_training_touches_moves_and_the_scaling_stays():
    network = design(2).build(torch.Generator())
    move_network(network, torch.device("meta"))
    assert all(parameter.device.type == "meta" for parameter in network.parameters())
    assert network.order.device.type == "meta"
    assert all(buffer.device.type == "meta" for buffer in network.conditioner.buffers())
    assert network.scale_x.center.device.type == network.support.device.type == "cpu"
