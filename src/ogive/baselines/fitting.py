"""What all baselines share: the estimator's shell, and the one trainer of the neural ones.

Every network is trained alike: standardised inputs and outputs, AdamW, a validation part of the training rows that
decides when to stop, and the weights of the best epoch. Nothing global is touched.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..arrays import Array, read_features, read_targets, seed_of
from ..distribution import Distribution
from ..errors import DataError, NumericalError
from ..nn.scaling import FeatureScaling, OutputScaling
from ..prediction import Prediction

__all__ = ["Baseline", "BaselineNetwork", "LawAt", "NeuralBaseline", "held_back", "perceptron"]

BATCH_SIZE = 256
VALIDATION_FRACTION = 0.1
WEIGHT_DECAY = 1e-2
CLIP = 5.0
LawAt = Callable[[Tensor], Distribution]  # the law of y at features (n, p)


class Baseline(RegressorMixin, BaseEstimator, ABC):
    """A conditional density estimator in scikit-learn's manner; `predict_dist` answers as ogive's own models do."""

    random_state: Any

    @abstractmethod
    def _learn(self, features: Array, targets: Array, generator: torch.Generator) -> LawAt:
        """Fit to features (n, p) and targets (n, d); what is returned gives the law of y at new features."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn p(y | x) from X (n, p) and y (n,) or (n, d)."""
        features = read_features(self, X, fitting=True)
        targets, names, alone = read_targets(y)
        if len(targets) != len(features):
            raise DataError(f"X and y must have one length; got {len(features)} and {len(targets)} rows. Pair them up.")
        generator = torch.Generator().manual_seed(seed_of(self.random_state))
        law_at = self._learn(features, targets, generator)
        self._law_at, self._alone = law_at, alone
        self.n_outputs_, self.output_names_ = len(names), names
        return self

    def predict_dist(self, X: Any) -> Prediction:
        """The predicted law of y for each row of X."""
        check_is_fitted(self)
        features = read_features(self, X, fitting=False)
        with torch.no_grad():
            return Prediction(self._law_at(torch.tensor(features)), self.output_names_)

    def predict(self, X: Any) -> Array:
        """Predicted means in the shape of y."""
        mean = self.predict_dist(X).mean()
        return mean[:, 0] if self._alone else mean

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of y, (s, n) for one output and (s, n, d) for more."""
        return self.predict_dist(X).sample(n_samples, random_state)

    def score(self, X: Any, y: Any) -> float:
        """Mean log-likelihood in the units of y; larger is better."""
        return float(np.mean(self.predict_dist(X).logpdf(y)))

    def _must_be_positive(self, *names: str) -> None:
        for name in names:
            if not getattr(self, name) >= 1:
                raise DataError(f"{name} must be at least 1; got {getattr(self, name)}. Leave it at its default.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_law_at")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # `score` is a log-likelihood, which knows no 0.5 of R squared
        tags.non_deterministic = self.random_state is None
        return tags


class BaselineNetwork(nn.Module, ABC):
    """A network whose forward pass gives the law of y in the user's units; the scaling is its first layer."""

    def __init__(self, n_features: int, n_outputs: int) -> None:
        super().__init__()
        self.scale_x, self.scale_y = FeatureScaling(n_features), OutputScaling(n_outputs)

    @abstractmethod
    def loss(self, features: Tensor, outputs: Tensor, generator: torch.Generator | None) -> Tensor:
        """Minus the log-density (b,) of scaled rows; with a generator also the noise and penalties of training."""

    @abstractmethod
    def law(self, features: Tensor) -> Distribution:
        """The law of y, in the user's units, at scaled features (n, p)."""

    def scaled_features(self, x: Tensor) -> Tensor:
        """Standardised x (n, p), in the dtype of the weights."""
        scaled: Tensor = self.scale_x(x)
        return scaled.mT.to(next(self.parameters()).dtype)

    def forward(self, x: Tensor) -> Distribution:
        return self.law(self.scaled_features(x))


class NeuralBaseline(Baseline, ABC):
    """A baseline with a network; subclasses say which, the training is the same for all."""

    history_: dict[str, Any]

    def __init__(
        self, hidden: tuple[int, ...], learning_rate: float, max_epochs: int, patience: int, random_state: Any
    ) -> None:
        self.hidden, self.learning_rate = hidden, learning_rate
        self.max_epochs, self.patience, self.random_state = max_epochs, patience, random_state

    @abstractmethod
    def _network(self, features: Array, targets: Array) -> BaselineNetwork:
        """A fresh network for these data."""

    def _learn(self, features: Array, targets: Array, generator: torch.Generator) -> LawAt:
        self._must_be_positive("max_epochs", "patience")
        network, self.history_ = self._trained(features, targets, generator)
        return network

    def _trained(
        self, features: Array, targets: Array, generator: torch.Generator
    ) -> tuple[BaselineNetwork, dict[str, Array]]:
        """One network, fitted, in float64, and the mean NLL of each epoch in the units of y."""
        with layers_drawn_from(generator):
            network = self._network(features, targets)
        x, y = torch.tensor(features), torch.tensor(targets)
        network.scale_x.fit(x)
        network.scale_y.fit(y)
        rows = network.scaled_features(x), network.scale_y(y).float()
        history = self._train(network, rows, held_back(len(x), generator), generator)
        offset = float(-network.scale_y.log_jacobian.sum())
        network.double().eval().requires_grad_(False)
        return network, {name: np.asarray(values) + offset for name, values in history.items()}

    def _train(
        self,
        network: BaselineNetwork,
        rows: tuple[Tensor, Tensor],
        parts: tuple[Tensor, Tensor],
        generator: torch.Generator,
    ) -> dict[str, list[float]]:
        features, outputs = rows
        learn, hold = parts
        optimizer = torch.optim.AdamW(network.parameters(), lr=self.learning_rate, weight_decay=WEIGHT_DECAY)
        n_steps = max(1, round(len(learn) / BATCH_SIZE))
        history: dict[str, list[float]] = {"train": [], "validation": []}
        best, best_epoch, best_weights = math.inf, 0, _copy(network)
        for epoch in range(self.max_epochs):
            network.train()
            shuffled = learn[torch.randperm(len(learn), generator=generator)]
            total = 0.0
            for batch in shuffled.tensor_split(n_steps):
                optimizer.zero_grad()
                loss = network.loss(features[batch], outputs[batch], generator).mean()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), CLIP)
                optimizer.step()
                total += float(loss.detach()) * len(batch) / len(learn)
            network.eval()
            with torch.no_grad():
                score = float(network.loss(features[hold], outputs[hold], None).double().mean())
            if math.isnan(score):
                raise NumericalError(
                    f"the validation likelihood must be a number; got NaN in epoch {epoch + 1}. Lower learning_rate."
                )
            history["train"].append(total)
            history["validation"].append(score)
            if score < best:
                best, best_epoch, best_weights = score, epoch, _copy(network)
            elif epoch - best_epoch >= self.patience:
                break
        network.load_state_dict(best_weights)
        return history


def held_back(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random indices of the rows to learn from and of the tenth that decides the stop."""
    n_hold = min(n - 1, max(1, round(n * VALIDATION_FRACTION)))
    hold, learn = torch.randperm(n, generator=generator).split([n_hold, n - n_hold])
    return learn, hold


def perceptron(n_in: int, hidden: tuple[int, ...], n_out: int) -> nn.Sequential:
    """Linear layers with SiLU between them."""
    widths = [n_in, *hidden]
    layers = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), nn.SiLU())]
    return nn.Sequential(*layers, nn.Linear(widths[-1], n_out))


@contextmanager
def layers_drawn_from(generator: torch.Generator) -> Iterator[None]:
    """Layers know only torch's global generator: seed it from ours, and put it back as it was afterwards."""
    seed = int(torch.randint(2**62, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(torch.Generator().manual_seed(seed).get_state())
        yield


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: values.clone() for name, values in network.state_dict().items()}
