"""How training goes, as its history tells: epochs, held-back rows, a stop for each member, progress, Ctrl-C."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ogive import OgiveRegressor
from ogive.errors import TrainingStoppedWarning

TINY: dict[str, Any] = {
    "n_members": 3,
    "hidden": (8,),
    "groups": 2,
    "units": 2,
    "max_epochs": 6,
    "batch_size": 64,  # one step an epoch
    "random_state": 0,
}


def tiny(**changes: Any) -> OgiveRegressor:
    return OgiveRegressor(**(TINY | changes))


def table(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.fixture(scope="module")
def overfitted() -> OgiveRegressor:
    """Members that learn few rows by heart and stop at different epochs, judged by other rows."""
    settings = {
        "n_members": 4,
        "learning_rate": 0.03,
        "patience": 4,
        "max_epochs": 300,
        "dropout": (0.0, 0.0, 0.5, 0.1),
    }
    return tiny(**settings, noise=False).fit(*table(30), eval_set=table(200, seed=1))


# --- the history


@pytest.mark.parametrize("members", [1, 3, 5])
def test_the_history_has_a_row_an_epoch_and_a_column_a_member(members):
    model = tiny(n_members=members).fit(*table())
    history = model.history_
    assert model.n_iter_ == 6
    assert history["train"].shape == history["validation"].shape == (6, members)
    assert history["best_epoch"].shape == history["best_validation"].shape == (members,)
    assert model.weights_.shape == (members,)
    assert model.weights_.min() > 0.0 and model.weights_.sum() == pytest.approx(1.0)


def test_the_likelihood_of_training_rows_rises():
    losses = tiny(max_epochs=60, learning_rate=0.02, dropout=0.0, noise=False).fit(*table()).history_["train"]
    assert (losses[-5:].mean(0) < losses[:5].mean(0) - 0.1).all()


def test_the_best_epoch_is_that_of_the_best_held_back_likelihood(overfitted):
    validation = overfitted.history_["validation"]
    best = overfitted.history_["best_epoch"].astype(int) - 1
    np.testing.assert_array_equal(best, np.nanargmin(validation, 0))
    np.testing.assert_allclose(overfitted.history_["best_validation"], np.nanmin(validation, 0))


def test_each_member_stops_when_its_own_patience_runs_out(overfitted):
    train, validation = overfitted.history_["train"], overfitted.history_["validation"]
    trained = (~np.isnan(validation)).sum(0)
    np.testing.assert_array_equal(trained - overfitted.history_["best_epoch"], 4)
    assert len(set(trained)) > 1 and overfitted.n_iter_ == trained.max() < 300
    for values in (train, validation):
        np.testing.assert_array_equal(np.isnan(values), np.arange(len(values))[:, None] >= trained)


def test_epochs_without_an_end_in_sight_end_at_max_epochs():
    assert tiny(max_epochs=7, patience=1000).fit(*table()).n_iter_ == 7


@pytest.mark.parametrize("epochs", [1, 60])
def test_a_member_keeps_the_weights_of_its_best_epoch(epochs):
    """The negative log-likelihood of the held-back rows, asked of the model, is the best of the history."""
    held_back = table(50, seed=1)
    model = tiny(n_members=1, max_epochs=epochs, learning_rate=0.03, patience=1000).fit(*table(30), eval_set=held_back)
    model._fitted.network.stack.log_sharpness.zero_()  # as trained: the pool makes it sharper afterwards
    assert -model.score(*held_back) == pytest.approx(model.history_["best_validation"][0], abs=1e-4)
    assert (model.history_["best_epoch"][0] < epochs) == (epochs > 1)  # later epochs were worse


def test_members_together_are_no_worse_than_on_average(overfitted):
    """log sum w p >= sum w log p, on the rows that every member held back: all have their best weights again."""
    members = overfitted.history_["best_validation"]
    assert -overfitted.score(*table(200, seed=1)) <= overfitted.weights_ @ members + 1e-4
    assert -overfitted.score(*table(200, seed=1)) >= members.min() - 0.5


def test_the_history_is_in_the_units_of_y():
    """-log p(cy) = -log p(y) + log c."""
    X, y = table()
    one, other = (tiny().fit(X, c * y).history_ for c in (1.0, 1024.0))
    for name in ("train", "validation", "best_validation"):
        np.testing.assert_allclose(other[name], one[name] + np.log(1024.0), atol=1e-5)


# --- what parameters do to it


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": True},
        {"noise": [True, False, True], "dropout": (0.5, 0.0)},
        {"dropout": 0.9},
        {"dropout": np.array([0.0, 0.3])},
        {"order": "cycle", "n_members": 5},
        {"order": (1, 0)},
        {"derivative": "finite-difference", "delta": 1e-4},
        {"batch_size": 1},
        {"batch_size": 10**6},
        {"validation_fraction": 1e-6},
        {"validation_fraction": 1 - 1e-6},
        {"weight_decay": 0.0},
        {"device": "cpu"},
        {"hidden": [4, 4]},
        {"n_members": np.int64(2), "max_epochs": np.int32(6)},
        {"architecture": {"layers": (3, 1), "norm": True}},
        {"architecture": {"kind": "hard"}},
        {"architecture": {"kind": "squash", "layers": (4, 1)}},
    ],
    ids=repr,
)
def test_every_choice_trains(settings):
    X, y = table()
    model = tiny(**settings).fit(X, np.stack([y, -y * X[:, 1]], 1))
    assert model.n_iter_ == 6
    assert np.isfinite(model.history_["validation"]).all()
    assert np.isfinite(model.predict(X[:5])).all()


@pytest.mark.parametrize(
    "change",
    [
        {"noise": True},
        {"dropout": 0.5},
        {"learning_rate": 0.1},
        {"weight_decay": 10.0},
        {"batch_size": 7},
        {"units": 3},
    ],
    ids=repr,
)
def test_every_choice_makes_a_difference(change):
    plain = {"noise": False, "dropout": 0.0}
    X, y = table()
    assert (tiny(**plain).fit(X, y).predict(X) != tiny(**(plain | change)).fit(X, y).predict(X)).all()


def test_with_held_back_rows_of_ones_own_all_rows_teach():
    """Where rows to judge by are given, the share that would be held back does not matter."""
    X, y = table()
    one, other = (tiny(validation_fraction=f).fit(X, y, eval_set=(X[:9], y[:9])) for f in (0.1, 0.9))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert (one.predict(X) != tiny().fit(X, y).predict(X)).any()


def test_weights_favour_members_that_predict_the_held_back_rows_better(overfitted):
    losses = overfitted.history_["best_validation"]
    assert overfitted.weights_ @ losses < losses.mean()


# --- progress and interruption


def test_progress_shows_epoch_losses_and_the_time_left(capsys):
    model = tiny(verbose=1).fit(*table())
    last = re.split(r"[\r\n]+", capsys.readouterr().err.strip())[-1]
    train, validation = (model.history_[name][-1].mean() for name in ("train", "validation"))
    assert " 6/6 " in last and re.search(r"\[\d\d:\d\d<\d\d:\d\d", last)
    assert f"train NLL {train:.3f}, validation NLL {validation:.3f}" in last


def test_silence_is_the_default(capsys):
    tiny().fit(*table())
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the first step after so many steps meet a Ctrl-C."""
    tiny(max_epochs=1).fit(*table())  # torch loads some of its parts in a first fit
    differentiate = torch.autograd.grad

    def arm(after: int) -> None:
        interrupted = iter([*[False] * after, True])

        def step(*arguments: Any, **options: Any) -> Any:
            if next(interrupted, False):
                raise KeyboardInterrupt
            return differentiate(*arguments, **options)

        monkeypatch.setattr(torch.autograd, "grad", step)

    return arm


def test_ctrl_c_keeps_the_best_so_far_and_says_so(ctrl_c):
    settings = {"n_members": 1, "max_epochs": 60, "learning_rate": 0.03, "patience": 1000}
    held_back = table(50, seed=1)
    whole = tiny(**settings).fit(*table(30), eval_set=held_back).history_
    ctrl_c(40)
    with pytest.warns(
        TrainingStoppedWarning, match="training was interrupted in epoch 41; the best weights so far are"
    ):
        model = tiny(**settings).fit(*table(30), eval_set=held_back)
    assert model.n_iter_ == 40
    np.testing.assert_array_equal(model.history_["validation"], whole["validation"][:40])
    assert model.history_["best_validation"][0] == whole["validation"][:40].min()
    model._fitted.network.stack.log_sharpness.zero_()  # as trained: the pool makes it sharper afterwards
    assert -model.score(*held_back) == pytest.approx(model.history_["best_validation"][0], abs=1e-4)


@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_a_model_interrupted_at_any_epoch_can_be_used_and_kept(epochs, ctrl_c, tmp_path):
    X, y = table()
    ctrl_c(epochs)
    with pytest.warns(TrainingStoppedWarning, match=f"in epoch {epochs + 1};"):
        model = tiny().fit(X, y)
    assert model.n_iter_ == epochs
    assert model.history_["train"].shape == model.history_["validation"].shape == (epochs, 3)
    assert np.isfinite(model.predict(X)).all()
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(OgiveRegressor.load(tmp_path / "model").predict(X), model.predict(X))
