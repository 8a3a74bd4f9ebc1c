"""OgiveRegressor: the scikit-learn shell around the network, its training and its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from .arrays import Array, read_features, read_held_back, read_targets, read_weights, seed_of
from .choices import Support, check_parameters, threads_of
from .errors import DataError
from .fitted import Fitted, all_or_nothing
from .fitting import TrainingTable, fit_ensemble
from .plan import plan_for
from .prediction import Prediction
from .training import EpochReport

__all__ = ["OgiveRegressor", "load"]


class OgiveRegressor(RegressorMixin, BaseEstimator):
    r"""Conditional density estimation through the CDF: learns p(y | x) of any shape for one or more outputs.

    Each output's conditional CDF is :math:`F_i(y_i \mid x, y_{<i}) = s(O_i(y_i))`, with O a soft minimum of soft
    maxima of rising lines whose offsets a network computes from x and the outputs before. The density is the exact
    slope of F. Several members are trained side by side and averaged with weights that held-back rows decide.

    Parameters
    ----------
    n_members, hidden, groups, units
        Members of the ensemble, widths of its trunks (None: by the number of rows), and lines of the soft min-max: a
        minimum over groups of a maximum over units.
    order : "given", "cycle" or tuple of int
        Order of the outputs in the chain. "cycle" gives members different orders, which often raises the
        likelihood but leaves no single chain: `pit`, `inverse_pit` are then refused.
    support : None, "positive", "range" or one (low, high) pair per output
        Where y can lie; None is the whole line, either side of a pair may be None, "range" that of y in training.
    noise, dropout : "auto", or one value or a sequence
        Regularisation: the paper's learnt noise on x and y while training, and a dropout rate, for all members or for
        each in turn. Under "auto" members differ, and the rows that they held back weigh them.
    learning_rate, batch_size, weight_decay
        Of the optimiser, AdamW.
    max_epochs, patience : int, optional
        Most epochs, and epochs without a better validation likelihood after which a member stops. By default they
        count optimiser steps, so that small tables, whose epochs are short, may train for long:
        8,000 steps but 20 to 1,500 epochs, and 200 steps but at least 30 epochs (never more than `max_epochs`).
    validation_fraction : float
        Share of the training rows that each member holds back to stop training and to be weighed; members hold back
        different shares, so that all rows teach.
    derivative : "exact" or "finite-difference"
        How the density comes from the CDF; `delta` is the step of the latter, in scaled units.
    architecture : mapping, optional
        Fields of `ogive.nn.architecture.Architecture` to replace, for study.
    device : "auto", "cpu", "cuda" or "mps"
        Where to train. Predictions are computed in float64 on the CPU.
    n_jobs, verbose : int
        Threads for training, None leaves torch's setting alone; 1 shows a progress bar.
    random_state : int, Generator or None
        Seed; the same seed gives the same bits on the same machine.

    Attributes
    ----------
    n_features_in_, feature_names_in_, n_outputs_, output_names_
    history_ : dict of ndarray
        "train" and "validation" (epochs, m): mean NLL in the units of y, NaN once a member has stopped;
        "best_epoch" and "best_validation" (m,).
    n_iter_ : int
        Epochs trained.
    weights_ : ndarray (m,)
        Weights of the members.

    References
    ----------
    Song et al., "A CDF-First Framework for Free-Form Density Estimation", 2026; Igel, "Smooth Min-Max Monotonic
    Networks", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from ogive import OgiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = OgiveRegressor(random_state=0, max_epochs=20).fit(X, X[:, 0] ** 2)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    def __init__(
        self,
        *,
        n_members: int = 12,
        hidden: tuple[int, ...] | None = None,
        groups: int = 8,
        units: int = 8,
        order: str | tuple[int, ...] = "given",
        support: Support = None,
        noise: str | bool | Sequence[bool] = "auto",
        dropout: str | float | Sequence[float] = "auto",
        learning_rate: float = 4e-3,
        batch_size: int = 256,
        max_epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        weight_decay: float = 1e-4,
        derivative: str = "exact",
        delta: float = 5e-6,
        architecture: Mapping[str, Any] | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_members = n_members
        self.hidden = hidden
        self.groups = groups
        self.units = units
        self.order = order
        self.support = support
        self.noise = noise
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.weight_decay = weight_decay
        self.derivative = derivative
        self.delta = delta
        self.architecture = architecture
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's own configuration, built from the same parts; `changes` replace its parameters."""
        paper: dict[str, Any] = {
            "n_members": 1,
            "groups": 32,
            "units": 32,
            "support": "range",
            "noise": True,
            "dropout": 0.0,
            "derivative": "finite-difference",
            "architecture": {"layers": (16, 16, 1), "conditions": (8, 8, 2), "hidden": None, "norm": True},
        }
        return cls(**(paper | changes))

    # Fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: tuple[Any, Any] | None = None) -> Self:
        """Learn p(y | x).

        Parameters
        ----------
        X : array or frame (n, p)
        y : array, series or frame (n,) or (n, d)
        sample_weight : array (n,), optional
            A row of weight zero is left out: the fit is the same to the bit without it.
        eval_set : (X, y), optional
            Rows that decide when to stop, in place of a held-back part of the training rows.
        """
        with all_or_nothing(self):
            self._remember(self._learn(X, y, sample_weight, eval_set))
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> Fitted:
        check_parameters(self.get_params(deep=False))
        features = read_features(self, X, fitting=True)
        targets, names, alone = read_targets(y)
        if len(targets) != len(features):
            raise DataError(f"X and y must have one length; got {len(features)} and {len(targets)} rows. Pair them up.")
        weights = read_weights(sample_weight, len(features), fewest=2)
        table = TrainingTable(features[weights > 0], targets[weights > 0], weights[weights > 0])
        if eval_set is not None:
            table = _with_held_back(table, *read_held_back(self, eval_set, names))
        generator = torch.Generator().manual_seed(seed_of(self.random_state))
        plan = plan_for(self.get_params(deep=False), table.n_taught, table.features.shape[1], table.targets)
        with threadpool_limits(threads_of(self.n_jobs)), _progress(plan.recipe.max_epochs, self.verbose) as report:
            found = fit_ensemble(plan, table, generator, report, self.device)
        return Fitted(found.design, found.network.double(), names, alone, found.history.as_arrays())

    def _remember(self, fitted: Fitted) -> None:
        """Set every fitted attribute, at the end and at once."""
        self.n_outputs_, self.output_names_ = len(fitted.outputs), fitted.outputs
        self.history_, self.n_iter_ = fitted.history, len(fitted.history["train"])
        self._fitted = fitted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # `score` is a log-likelihood, which knows no 0.5 of R squared
        tags.non_deterministic = self.random_state is None
        return tags

    # Asking

    @torch.no_grad()
    def predict_dist(self, X: Any) -> Prediction:
        """The predicted law of y for each row of X."""
        check_is_fitted(self)
        law = self._fitted.network(torch.tensor(read_features(self, X, fitting=False)))
        return Prediction(law, self.output_names_)

    def predict(self, X: Any, point: str = "mean") -> Array:
        """A point forecast in the shape of y: "mean", "median" or "mode"."""
        if point not in ("mean", "median", "mode"):
            raise DataError(f"point must be 'mean', 'median' or 'mode'; got {point!r}. Use 'mean'.")
        return self._shaped(getattr(self.predict_dist(X), point)())

    def predict_quantiles(self, X: Any, q: ArrayLike) -> Array:
        """Marginal quantiles, (n, q) for one output and (n, d, q) for more."""
        return self._squeezed(self.predict_dist(X).quantiles(q))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Central intervals, (n, 2) for one output and (n, d, 2) for more."""
        return self._squeezed(self.predict_dist(X).interval(coverage))

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of y, (s, n) for one output and (s, n, d) for more."""
        return self.predict_dist(X).sample(n_samples, random_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood in the units of y; larger is better."""
        prediction = self.predict_dist(X)
        weights = read_weights(sample_weight, len(prediction))
        density = prediction.logpdf(y)
        if density.ndim > 1:
            raise DataError(f"y must hold one point a row; got leading axes {density.shape[:-1]}. Score one at a time.")
        return float(np.average(density[weights > 0], weights=weights[weights > 0]))

    @property
    def weights_(self) -> Array:
        """Weights of the members."""
        check_is_fitted(self)
        return np.asarray(self._fitted.network.log_weights.exp().numpy())

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._fitted.one_column else values

    def _squeezed(self, values: Array) -> Array:
        return values[:, 0] if self.n_outputs_ == 1 else values

    # Keeping

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file that needs no pickle to be read."""
        check_is_fitted(self)
        features = [str(name) for name in getattr(self, "feature_names_in_", [])]
        self._fitted.write(path, self.get_params(deep=False), features)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> OgiveRegressor:
        """Read a model that `save` wrote."""
        return load(path)


def load(path: str | PathLike[str]) -> OgiveRegressor:
    """Read a model that `OgiveRegressor.save` wrote, on any device; nothing in the file is executed."""
    fitted, parameters, features = Fitted.read(path)
    model = OgiveRegressor(**parameters)
    model._remember(fitted)
    model.n_features_in_ = fitted.design.n_features
    if features:
        model.feature_names_in_ = np.asarray(features, dtype=object)
    return model


def _with_held_back(table: TrainingTable, features: Array, targets: Array) -> TrainingTable:
    """The table with the rows of `eval_set` at its end."""
    return TrainingTable(
        np.concatenate([table.features, features]),
        np.concatenate([table.targets, targets]),
        np.concatenate([table.weights, np.ones(len(features))]),
        held_back=len(features),
    )


@contextmanager
def _progress(n_epochs: int, verbose: int) -> Iterator[Callable[[EpochReport], None]]:
    """A bar over the epochs, with the losses and the time left."""
    with tqdm(total=n_epochs, unit="epoch", disable=not verbose, desc="fit") as bar:

        def show(done: EpochReport) -> None:
            losses = f"train NLL {done.train:.3f}, validation NLL {done.validation:.3f}"
            bar.set_postfix_str(f"{losses}, {done.members_left} members left", refresh=False)
            bar.total = done.max_epochs
            bar.update(done.epoch - bar.n)

        yield show
