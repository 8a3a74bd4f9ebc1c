"""Held-back rows, and where training runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ogive.devices import device_of, move_network
from ogive.errors import DataError, TrainingStoppedWarning
from ogive.fitting import TrainingTable, fit_ensemble, fresh_network, held_back_parts
from ogive.nn.architecture import Architecture
from ogive.plan import Plan
from ogive.training import Recipe

OPEN = ((None, None),)


def table(n: int = 90, d: int = 1, held_back: int = 0) -> TrainingTable:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return TrainingTable(x, x[:, :1] + rng.normal(size=(n, d)), np.ones(n), held_back)


def design(members: int, d: int = 1, **parts: object) -> Architecture:
    return Architecture(2, (tuple(range(d)),) * members, OPEN * d, units=3, groups=3, hidden=(8, 8), **parts)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def fitted(rows: TrainingTable, regimes: list[int], report=lambda _: None, **recipe: object):
    settings = {"max_epochs": 6, "patience": 6, "batch_size": 32, "dropout": tuple(0.1 * k for k in regimes)} | recipe
    plan = Plan(design(len(regimes)), Recipe(**settings), regimes)  # type: ignore[arg-type]
    return fit_ensemble(plan, rows, seeded(), report, "cpu")


def loss_of(network, rows: TrainingTable) -> np.ndarray:
    """Negative log-density (m, n) in the units of y of each member alone."""
    features = network.scale_x(torch.tensor(rows.features)).float()[None]
    outputs = network.chain(network.scale_y(torch.tensor(rows.targets)).float())
    with torch.no_grad():
        density = network.readings(features, outputs).log_density.sum(1)
    return (-density - network.scale_y.log_jacobian.sum()).numpy()


def test_a_fit_reports_every_epoch_and_keeps_every_member():
    seen = []
    ensemble = fitted(table(), [0, 1, 0], lambda done: seen.append((done.epoch, done.max_epochs)))
    assert seen == [(epoch, 6) for epoch in range(1, 7)]
    assert ensemble.network.n_members == 3
    assert float(ensemble.network.log_weights.exp().sum()) == pytest.approx(1.0)
    arrays = ensemble.history.as_arrays()
    assert arrays["train"].shape == (6, 3)
    assert arrays["best_validation"] == pytest.approx(np.nanmin(arrays["validation"], 0))


def test_each_member_keeps_the_weights_of_its_best_epoch_on_rows_of_its_own():
    rows, regimes = table(), [0, 1, 0, 1]
    ensemble = fitted(rows, regimes)
    generator = seeded()
    design(4).build(generator)  # the fit draws its fresh parameters first
    _, hold = held_back_parts(rows, 0.1, regimes, generator)
    ensemble.network.stack.log_sharpness.zero_()  # as trained: the pool makes it sharper afterwards
    own = np.take_along_axis(loss_of(ensemble.network, rows), hold.numpy(), 1).mean(1)
    assert own == pytest.approx(np.array(ensemble.history.best_validation), abs=1e-5)


def test_an_interruption_keeps_the_best_so_far():
    def stop(done: object) -> None:
        raise KeyboardInterrupt

    with pytest.warns(TrainingStoppedWarning, match="interrupted in epoch"):
        ensemble = fitted(table(), [0, 0], stop)
    assert np.isfinite(loss_of(ensemble.network, table())).all()


@given(
    n=st.integers(2, 60), fraction=st.floats(0.01, 0.99), regimes=st.lists(st.integers(0, 3), min_size=1, max_size=9)
)
def test_what_is_held_back_is_not_learnt_from(n, fraction, regimes):
    learn, hold = held_back_parts(table(n), fraction, regimes, seeded())
    for mine, kept in zip(learn.tolist(), hold.tolist(), strict=True):
        assert sorted(mine + kept) == list(range(n))
        assert mine and kept


def test_regimes_share_what_they_hold_back_and_their_members_divide_the_rows():
    _, hold = held_back_parts(table(100), 0.25, [0, 1, 0, 1, 0, 1, 0, 1], seeded())
    assert torch.equal(hold[0::2], hold[1::2])
    assert sorted(hold[0::2].flatten().tolist()) == list(range(100))


def test_rows_given_to_decide_are_held_back_by_all_and_scale_nothing():
    rows = table(40, held_back=10)
    learn, hold = held_back_parts(rows, 0.5, [0, 1, 2], seeded())
    assert hold.tolist() == [list(range(30, 40))] * 3
    assert learn.tolist() == [list(range(30))] * 3
    network = fresh_network(design(1), rows, seeded())
    assert network.scale_y.center.item() == pytest.approx(rows.targets[:30].mean())


def test_a_member_without_ramps_ignores_them():
    """Its answers are those of a network that has none, whatever the weights behind the ramps."""
    rows = table(50)
    network = fresh_network(design(2, ramps=4, ramped=(False, True)), rows, seeded())
    before = loss_of(network, rows)
    with torch.no_grad():
        network.conditioner.layers[0].weight[..., 2:] += 1.0
    after = loss_of(network, rows)
    assert (after[0] == before[0]).all()
    assert (after[1] != before[1]).all()


def test_a_device_is_one_that_is_there():
    assert device_of("cpu") == torch.device("cpu")
    assert device_of("auto").type in ("cpu", "cuda", "mps")
    with pytest.raises(DataError, match="device must be 'auto', 'cpu', 'cuda' or 'mps'; got 'tpu'"):
        device_of("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(DataError, match="device must be one that this machine has; got 'cuda'"):
            device_of("cuda")


def test_what_training_touches_moves_and_the_scaling_stays():
    network = design(2, ramps=2).build(torch.Generator())
    move_network(network, torch.device("meta"))
    assert all(parameter.device.type == "meta" for parameter in network.parameters())
    assert network.order.device.type == "meta"
    assert all(buffer.device.type == "meta" for buffer in network.conditioner.buffers())
    assert network.scale_x.center.device.type == network.support.device.type == "cpu"
