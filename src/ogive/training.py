"""Fitting a network to rows: minibatches, learnt noise, averaged weights, and a stop of its own for each member.

No files, no prints and no global state: randomness comes from the generator given, progress goes to a callback.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .adamw import AdamW
from .errors import NumericalError, TrainingStoppedWarning
from .memory import keep_freed_memory
from .nn.cdf import CDFNetwork
from .nn.flat import FlatParameters
from .nn.noise import Disturbance, Dropout, LearntNoise

__all__ = ["EpochReport", "History", "Recipe", "Rows", "Trainer", "train"]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained; every member of the ensemble alike but for its noise and dropout."""

    learning_rate: float = 4e-3
    batch_size: int = 256
    max_epochs: int = 500
    patience: int = 40
    validation_fraction: float = 0.1
    weight_decay: float = 1e-4
    averaging: float = 0.99
    clip: float = 5.0
    noise_beta: float = 0.005
    noise: tuple[bool, ...] = ()
    dropout: tuple[float, ...] = ()
    validate_every: int = 1


@dataclass(frozen=True)
class Rows:
    """Training rows as the network sees them: scaled features (p, n), scaled outputs (n, d), weights (n,)."""

    features: Tensor
    outputs: Tensor
    weights: Tensor

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Features (m, p, b), outputs (m, b, d) and weights (m, b) of the rows `index` (m, b)."""
        return self.features[:, index].movedim(0, 1), self.outputs[index], self.weights[index]


@dataclass
class History:
    """Per epoch and member: negative log-likelihood in training and validation; NaN once a member has stopped."""

    train: list[list[float]] = field(default_factory=list)
    validation: list[list[float]] = field(default_factory=list)
    best_epoch: list[int] = field(default_factory=list)
    best_validation: list[float] = field(default_factory=list)
    interrupted: bool = False

    def as_arrays(self) -> dict[str, NDArray[np.float64]]:
        """The four lists as arrays by name."""
        lists = {name: values for name, values in vars(self).items() if isinstance(values, list)}
        found = {name: np.asarray(values, dtype=np.float64) for name, values in lists.items()}
        for name in ("train", "validation"):
            found[name] = found[name].reshape(len(found[name]), len(self.best_epoch))  # also without an epoch
        return found


@dataclass(frozen=True)
class EpochReport:
    """What a progress bar shows after an epoch."""

    epoch: int
    max_epochs: int
    train: float
    validation: float
    members_left: int


def train(
    network: CDFNetwork,
    rows: Rows,
    parts: tuple[Tensor, Tensor],
    recipe: Recipe,
    generator: torch.Generator,
    report: Callable[[EpochReport], None] = lambda _: None,
) -> History:
    """Fit `network` in place to each member's own training rows, `parts[0]` (m, n_train).

    A member stops when its likelihood on its held-back rows, `parts[1]` (m, n_validation), has not improved for
    `recipe.patience` epochs, then leaves the batch; it keeps the weights of its best epoch.

    Warns
    -----
    TrainingStoppedWarning
        When interrupted from the keyboard: the best weights so far are kept.
    """
    state = Trainer(network, recipe, generator)
    offset = float(-network.scale_y.log_jacobian.sum())
    history = History()
    try:
        for epoch in range(recipe.max_epochs):
            losses = state.epoch(rows, parts[0])
            history.train.append(state.spread(losses + offset))
            due = (epoch + 1) % recipe.validate_every == 0 or epoch + 1 == recipe.max_epochs
            scores = state.validate(rows, parts[1], epoch) if due else torch.full_like(losses, math.nan)
            history.validation.append(state.spread(scores + offset))
            report(EpochReport(epoch + 1, recipe.max_epochs, *_means(losses, scores, offset), len(state.alive)))
            if due and not state.retire(epoch):
                break
    except KeyboardInterrupt:
        history.interrupted = True
        warnings.warn(
            f"training was interrupted in epoch {len(history.train) + 1}; the best weights so far are kept.",
            TrainingStoppedWarning,
            stacklevel=2,
        )
    state.finish()
    history.best_epoch = [int(e) + 1 for e in state.best_epoch]
    history.best_validation = [float(v) + offset for v in state.best]
    return history


def _means(losses: Tensor, scores: Tensor, offset: float) -> tuple[float, float]:
    return float(losses.mean()) + offset, float(scores.mean()) + offset


class Trainer:
    """The members still in training, their averaged weights, and the best weights of all members."""

    def __init__(self, network: CDFNetwork, recipe: Recipe, generator: torch.Generator) -> None:
        keep_freed_memory()
        members, outputs = network.n_members, network.n_outputs
        noise = torch.tensor(recipe.noise or (False,) * members)
        rates = torch.tensor(recipe.dropout or (0.0,) * members)
        self.network, self.recipe, self.generator = network, recipe, generator
        self.noise_x = LearntNoise(members, network.n_inputs, recipe.noise_beta, noise)
        self.noise_y = LearntNoise(members, outputs, recipe.noise_beta, noise)
        self.disturb = Disturbance(self.noise_x, Dropout(rates), generator)
        whole = nn.ModuleList([network, self.disturb, self.noise_y])
        self.noise_y.to(network.order.device)
        self.disturb.to(network.order.device)
        self.flat = FlatParameters(whole)
        self.buffers = [
            (module, name, getattr(module, name))
            for module in whole.modules()
            for name in getattr(module, "member_buffers", ())
            if getattr(module, name) is not None
        ]
        self.alive = torch.arange(members)
        self.average = self.flat.snapshot()
        self.best_values = self.flat.snapshot()
        self.best = torch.full((members,), math.inf, dtype=torch.float64)
        self.best_epoch = torch.zeros(members, dtype=torch.long)
        self.steps = 0
        self.optimizer = AdamW(self.flat.values, recipe.learning_rate, recipe.weight_decay)

    def epoch(self, rows: Rows, own: Tensor) -> Tensor:
        """One pass over each member's own rows; mean loss of each member (m,)."""
        own = own[self.alive.to(own.device)]
        n_steps = max(1, round(own.shape[1] / self.recipe.batch_size))
        size = own.shape[1] // n_steps
        keys = torch.rand(own.shape, generator=self.generator, device=own.device)
        shuffled = own.gather(1, keys.argsort(1))
        total = torch.zeros(len(own), device=own.device)
        for start in range(0, n_steps * size, size):
            total += self.step(*rows.batch(shuffled[:, start : start + size]))
        return total.cpu().double() / n_steps

    def step(self, features: Tensor, outputs: Tensor, weights: Tensor) -> Tensor:
        """One update of all members in training; their losses (m,)."""
        network = self.network
        chain = network.chain(outputs)
        shift = None
        if self.disturb.noisy:
            shift = self.noise_y(chain.shape, self.generator)
            chain = chain + shift
        density = network.readings(features, chain, shift=shift, disturb=self.disturb).log_density.sum(1)
        loss = -(density * weights).sum(1) / weights.sum(1)
        objective = loss + self.noise_x.penalty() + self.noise_y.penalty() if self.disturb.noisy else loss
        self.flat.differentiate(objective.sum())
        self.flat.clip(self.recipe.clip)
        self.optimizer.step(self.flat.values, self.flat.grads)
        self.steps += 1
        pace = min(self.recipe.averaging, self.steps / (self.steps + 10.0))
        for average, value in zip(self.average, self.flat.values, strict=True):
            average.lerp_(value, 1.0 - pace)
        return loss.detach()

    @torch.no_grad()
    def validate(self, rows: Rows, held_back: Tensor, epoch: int) -> Tensor:
        """Loss of the averaged weights on each member's held-back rows (m,); remembers the best."""
        current = self.flat.snapshot()
        self.flat.load(self.average)
        self.network.eval()
        scores = self._score(rows, held_back[self.alive.to(held_back.device)])
        self.network.train()
        self.flat.load(current)
        if bool(scores.isnan().any()):
            raise NumericalError(
                f"the validation likelihood must be a number; got NaN in epoch {epoch + 1}. Lower learning_rate."
            )
        better = scores < self.best[self.alive]
        for best, average in zip(self.best_values, self.average, strict=True):
            best[self.alive[better].to(best.device)] = average[better.to(best.device)]
        self.best[self.alive] = torch.minimum(scores, self.best[self.alive])
        self.best_epoch[self.alive[better]] = epoch
        return scores

    def _score(self, rows: Rows, index: Tensor) -> Tensor:
        total, weight = torch.zeros(len(index), dtype=torch.float64), torch.zeros(len(index), dtype=torch.float64)
        for part in index.split(4 * self.recipe.batch_size, 1):
            features, outputs, weights = rows.batch(part)
            density = self.network.readings(features, self.network.chain(outputs)).log_density.sum(1)
            total -= (density * weights).sum(1).cpu().double()
            weight += weights.sum(1).cpu().double()
        return total / weight

    def retire(self, epoch: int) -> bool:
        """Drop members whose patience has run out; False once none is left."""
        going = epoch - self.best_epoch[self.alive] < self.recipe.patience
        if not bool(going.any()):
            return False
        if not bool(going.all()):
            keep = going.nonzero()[:, 0]
            self.alive = self.alive[keep]
            keep = keep.to(self.network.order.device)
            self.average = [average[keep] for average in self.average]
            for module, name, _ in self.buffers:
                setattr(module, name, getattr(module, name)[keep])
            self.flat.keep(keep)
            self.optimizer.keep(keep)
            self.disturb.look()
        return True

    def finish(self) -> None:
        """Give the network all its members back, each with its best weights."""
        self.flat.values = self.best_values
        self.flat.grads = [torch.zeros_like(value) for value in self.best_values]
        self.flat._attach()
        for module, name, whole in self.buffers:
            setattr(module, name, whole)
        for parameter in self.network.parameters():
            parameter.data = parameter.data.clone()
            parameter.grad = None
        self.network.eval()

    def spread(self, of_alive: Tensor) -> list[float]:
        """Values of the members in training at their places, NaN elsewhere."""
        full = torch.full((len(self.best),), math.nan, dtype=torch.float64)
        full[self.alive] = of_alive.double()
        return [float(value) for value in full]
