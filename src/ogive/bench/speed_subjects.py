"""Those who are timed: our network and the peers', of their usual shapes, on the same rows, in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..arrays import Array
from ..baselines import NSF
from ..baselines.fitting import BATCH_SIZE, WEIGHT_DECAY, BaselineNetwork, layers_drawn_from
from ..baselines.flows import _flows
from ..estimator import OgiveRegressor
from ..fitting import TrainingTable, fresh_network
from ..nn.cdf import CDFNetwork
from ..plan import Plan, plan_for
from ..training import Rows, Trainer

__all__ = [
    "Mixture",
    "cdf_only",
    "drawn_rows",
    "mixture_step",
    "ogive_network",
    "ogive_step",
    "spline_draws",
    "spline_network",
    "spline_step",
    "unchecked",
]

TRANSFORMS = 3
COMPONENTS = 20
HIDDEN = (128, 128)
LEARNING_RATE = 1e-3
Step = Callable[[], Any]


def drawn_rows(n: int, p: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """X (n, p) and y (n, d): two humps around a curve for each output, drawn in place so that nothing else is held."""
    rng = np.random.default_rng(seed)
    X, y = np.empty((n, p)), np.empty((n, d))
    for start in range(0, n, 1 << 16):
        part = slice(start, start + (1 << 16))
        rng.standard_normal(out=X[part])
        for j in range(d):
            side = rng.choice([-1.0, 1.0], len(X[part]))
            noise = 0.3 * rng.standard_normal(len(X[part]))
            y[part, j] = np.sin(2.0 * X[part, j % p]) + side * (1.0 + 0.5 * np.tanh(X[part, (j + 1) % p])) + noise
    return X, y


# Ours


def ogive_network(X: Array, y: Array, members: int | None, steps: int) -> CDFNetwork:
    """Our network of the default shape, after some steps of training: fresh weights know no sharp edges to invert."""
    trained, used = _fresh(X, y, members), _fresh(X, y, members)
    step = ogive_step(trained, X, y)
    for _ in range(steps):
        step()
    used.load_state_dict(trained.state_dict())  # a network in training keeps its weights in the trainer's buffer
    return used.eval()


def ogive_step(network: CDFNetwork, X: Array, y: Array) -> Step:
    """One step on a minibatch of its own for each member: forward, backward, clipping, AdamW, averaged weights."""
    features, outputs = network.scale_x(torch.tensor(X)), network.scale_y(torch.tensor(y))
    rows = Rows(features.float(), outputs.float(), torch.ones(len(X)))
    generator = torch.Generator().manual_seed(0)
    batch = rows.batch(torch.randint(len(X), (network.n_members, BATCH_SIZE), generator=generator))
    trainer = Trainer(network, _plan(X, y, network.n_members).recipe, generator)
    return lambda: trainer.step(*batch)


def cdf_only(network: CDFNetwork, x: Tensor, y: Tensor) -> Tensor:
    """The CDF (n, 1) of a single member with one output, and no slope: what the density is measured against."""
    factor: Any = network(x).first()
    layer: Any = network.stack.layers[0]
    _, units, groups = layer.shape
    weight = layer.log_weight.exp().reshape(1, units, groups, 1)
    bias = factor.member.biases[0].view(1, units, groups, -1)
    line = torch.addcmul(bias, weight, network.scale_y(y).to(bias.dtype).T[:, None, None])
    top = line.amax(1)
    log_group = top + line.sub_(top[:, None]).exp_().sum(1).log_()
    return torch.sigmoid(-log_group.neg_().logsumexp(1)).T


def _plan(X: Array, y: Array, members: int | None) -> Plan:
    """What the default comes to for these rows."""
    default = OgiveRegressor().get_params(deep=False)
    return plan_for(default | {"n_members": members or default["n_members"]}, len(X), X.shape[1], y)


def _fresh(X: Array, y: Array, members: int | None) -> CDFNetwork:
    table = TrainingTable(X, y, np.ones(len(X)))
    return fresh_network(_plan(X, y, members).design, table, torch.Generator().manual_seed(0))


# Peers


def spline_network(X: Array, y: Array) -> BaselineNetwork:
    """zuko's NSF behind its scaling, all of it in float32."""
    with layers_drawn_from(torch.Generator().manual_seed(0)):
        network = NSF(transforms=TRANSFORMS, hidden=HIDDEN)._network(X, y)
    network.scale_x.fit(torch.tensor(X))
    network.scale_y.fit(torch.tensor(y))
    return network.float().eval()


def spline_step(network: BaselineNetwork, X: Array, y: Array) -> Step:
    """One step of AdamW on one minibatch: forward, backward, update, and no clipping."""
    x, targets = (torch.tensor(values[:BATCH_SIZE], dtype=torch.float32) for values in (X, y))
    features, outputs = network.scaled_features(x), network.scale_y(targets)
    return _step(network, lambda: network.loss(features, outputs, None).mean())


def spline_draws(law: Any, size: int, generator: torch.Generator) -> Tensor:
    """Draws (size, n, d) of the flow as zuko takes them: normal noise carried back through zuko's own inverses."""
    flow, draws = law.bijection, torch.randn(size, law.n_rows, law.n_outputs, generator=generator)
    for lazy in reversed(flow.network.maps):
        draws = lazy(flow.features).inv(draws)
    in_units: Tensor = flow.center + flow.scale * draws
    return in_units


class Mixture:
    """zuko's mixture of normal laws with full covariances, on standardised rows."""

    def __init__(self, X: Array, y: Array) -> None:
        settings = {"features": y.shape[1], "context": X.shape[1], "hidden_features": HIDDEN}
        with layers_drawn_from(torch.Generator().manual_seed(0)):
            self.network: Any = _flows().GMM(components=COMPONENTS, **settings)
        self.x, self.y = (torch.tensor((part - part.mean(0)) / part.std(0)).float() for part in (X, y))

    def log_prob(self) -> Tensor:
        """Log-density of the rows (n,)."""
        with unchecked():
            found: Tensor = self.network(self.x).log_prob(self.y)
        return found

    def sample(self, size: int) -> Tensor:
        """Draws (size, n, d); zuko draws from torch's global generator, which is put back as it was."""
        with unchecked(), torch.random.fork_rng(devices=[]):
            found: Tensor = self.network(self.x).sample((size,))
        return found


def mixture_step(mixture: Mixture) -> Step:
    """One step of AdamW on one minibatch."""
    x, y = mixture.x[:BATCH_SIZE], mixture.y[:BATCH_SIZE]

    def loss() -> Tensor:
        with unchecked():
            found: Tensor = -mixture.network(x).log_prob(y).mean()
        return found

    return _step(mixture.network, loss)


def _step(network: nn.Module, loss: Callable[[], Tensor]) -> Step:
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step


@contextmanager
def unchecked() -> Iterator[None]:
    """torch's distributions without their checks of arguments, as zuko has them; afterwards as they were."""
    distribution = torch.distributions.Distribution
    before = distribution._validate_args
    distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        distribution.set_default_validate_args(before)
