"""OgiveRegressor: the scikit-learn shell around the network, its training and its predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from . import storage
from .arrays import Array, read_features, read_targets, read_weights, seed_of
from .choices import Support, in_turn, orders_of, support_of
from .errors import DataError, FileFormatError
from .nn.architecture import Architecture
from .nn.cdf import CDFNetwork
from .prediction import Prediction
from .training import EpochReport, Recipe, Rows, train

__all__ = ["OgiveRegressor", "load"]


class OgiveRegressor(RegressorMixin, BaseEstimator):
    r"""Conditional density estimation through the CDF: learns p(y | x) of any shape for one or more outputs.

    Each output's conditional CDF is :math:`F_i(y_i \mid x, y_{<i}) = s(O_i(y_i))`, with O a soft minimum of soft
    maxima of rising lines whose offsets a network computes from x and the outputs before. The density is the exact
    slope of F. Several members are trained side by side and averaged.

    Parameters
    ----------
    n_members : int
        Members of the ensemble.
    hidden : tuple of int
        Widths of the trunk that reads x and the outputs before.
    groups, units : int
        Lines of the soft min-max: a minimum over groups of a maximum over units.
    order : "given", "cycle" or tuple of int
        Order of the outputs in the chain. "cycle" gives members different orders, which often raises the
        likelihood but leaves no single chain: `pit`, `inverse_pit` are then refused.
    support : None, "positive", "range" or one (low, high) pair per output
        Where y can lie; None is the whole line, either side of a pair may be None, "range" that of y in training.
    noise : bool or sequence of bool
        Learnt noise on x and y while training, for all members or for each in turn.
    dropout : float or sequence of float
        Rate for all members or for each in turn.
    learning_rate, batch_size, max_epochs, patience, weight_decay
        Of the optimiser; patience is in epochs without a better validation likelihood.
    validation_fraction : float
        Share of the training rows held back to stop training.
    derivative : "exact" or "finite-difference"
        How the density comes from the CDF; `delta` is the step of the latter, in scaled units.
    architecture : mapping, optional
        Fields of `ogive.nn.architecture.Architecture` to replace, for study.
    device : "auto", "cpu", "cuda" or "mps"
        Where to train. Predictions are computed in float64 on the CPU.
    n_jobs : int, optional
        Threads for training; None leaves torch's setting alone.
    verbose : int
        1 shows a progress bar.
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
    Song et al., "A CDF-First Framework for Free-Form Density Estimation", 2026.
    Igel, "Smooth Min-Max Monotonic Networks", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from ogive import OgiveRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + rng.exponential(size=300)
    >>> model = OgiveRegressor(random_state=0, max_epochs=20).fit(X, y)
    >>> model.predict_interval(X[:3], coverage=0.9).shape
    (3, 2)
    """

    def __init__(
        self,
        *,
        n_members: int = 8,
        hidden: tuple[int, ...] = (128, 128),
        groups: int = 8,
        units: int = 8,
        order: str | tuple[int, ...] = "given",
        support: Support = None,
        noise: bool | Sequence[bool] = True,
        dropout: float | Sequence[float] = 0.0,
        learning_rate: float = 2e-3,
        batch_size: int = 256,
        max_epochs: int = 500,
        patience: int = 30,
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
        eval_set : (X, y), optional
            Rows that decide when to stop, in place of a held-back part of the training rows.
        """
        self._check_parameters()
        features = read_features(self, X, fitting=True)
        targets, names, alone = read_targets(y)
        if len(targets) != len(features):
            raise DataError(f"X and y must have one length; got {len(features)} and {len(targets)} rows. Pair them up.")
        weights = read_weights(sample_weight, len(features))
        held_back = None
        if eval_set is not None:
            held_back = (read_features(self, eval_set[0], fitting=False), read_targets(eval_set[1])[0])
        generator = torch.Generator().manual_seed(seed_of(self.random_state))
        design = self._design(features.shape[1], targets)
        network = design.build(generator)
        _fit_scaling(network, features, targets, design)
        rows, parts = self._rows(network, features, targets, weights, held_back, generator)
        history = self._train(network, rows, parts, generator)
        self._remember(design, network, history.as_arrays(), names, alone)
        return self

    def _remember(
        self, design: Architecture, network: CDFNetwork, history: dict[str, Array], names: list[str], alone: bool
    ) -> None:
        """Set every fitted attribute, at the end and at once."""
        self.n_outputs_, self.output_names_, self._alone = len(names), names, alone
        self.history_, self.n_iter_ = history, len(history["train"])
        self._design_, self._network = design, network.double().eval()

    def _check_parameters(self) -> None:
        for name in ("n_members", "groups", "units", "batch_size", "max_epochs", "patience"):
            if not getattr(self, name) >= 1:
                raise DataError(f"{name} must be at least 1; got {getattr(self, name)}. Leave it at its default.")
        if not 0.0 < self.validation_fraction < 1.0:
            raise DataError(f"validation_fraction must lie between 0 and 1; got {self.validation_fraction}. Use 0.1.")
        if self.derivative not in ("exact", "finite-difference"):
            raise DataError(f"derivative must be 'exact' or 'finite-difference'; got {self.derivative!r}. Use 'exact'.")

    def _design(self, n_features: int, targets: Array) -> Architecture:
        d = targets.shape[1]
        settings: dict[str, Any] = {
            "n_features": n_features,
            "order": orders_of(self.order, self.n_members, d),
            "support": support_of(self.support, targets),
            "groups": self.groups,
            "units": self.units,
            "hidden": tuple(self.hidden),
            "delta": self.delta if self.derivative == "finite-difference" else None,
        }
        return Architecture(**(settings | dict(self.architecture or {})))

    def _rows(
        self,
        network: CDFNetwork,
        features: Array,
        targets: Array,
        weights: Array,
        held_back: tuple[Array, Array] | None,
        generator: torch.Generator,
    ) -> tuple[Rows, tuple[torch.Tensor, torch.Tensor]]:
        """Scaled rows, and each member's indices of those to learn from and those held back."""
        n = len(features)
        if held_back is not None:
            features, targets = np.concatenate([features, held_back[0]]), np.concatenate([targets, held_back[1]])
            weights = np.concatenate([weights, np.ones(len(held_back[0]))])
            learn, hold = torch.arange(n), torch.arange(n, len(features))
        else:
            n_hold = min(n - 1, max(1, round(n * self.validation_fraction)))
            hold, learn = torch.randperm(n, generator=generator).split([n_hold, n - n_hold])
        rows = Rows(
            network.scale_x(torch.tensor(features)).to(network.dtype),
            network.scale_y(torch.tensor(targets)).to(network.dtype),
            torch.tensor(weights).to(network.dtype),
        )
        return rows, (learn.expand(self.n_members, -1), hold.expand(self.n_members, -1))

    def _train(self, network: CDFNetwork, rows: Rows, parts: Any, generator: torch.Generator) -> Any:
        recipe = Recipe(
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            weight_decay=self.weight_decay,
            noise=in_turn(self.noise, self.n_members, bool),
            dropout=in_turn(self.dropout, self.n_members, float),
        )
        with tqdm(total=self.max_epochs, unit="epoch", disable=not self.verbose, desc="fit") as bar:

            def show(report: EpochReport) -> None:
                bar.set_postfix_str(
                    f"train NLL {report.train:.3f}, validation NLL {report.validation:.3f}, "
                    f"{report.members_left} members left",
                    refresh=False,
                )
                bar.update(1)

            return train(network, rows, parts, recipe, generator, show)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = True  # `score` is a log-likelihood, which knows no 0.5 of R squared
        tags.non_deterministic = self.random_state is None
        return tags

    # Asking

    def predict_dist(self, X: Any) -> Prediction:
        """The predicted law of y for each row of X."""
        check_is_fitted(self)
        features = read_features(self, X, fitting=False)
        with torch.no_grad():
            law = self._network(torch.tensor(features))
        return Prediction(law, self.output_names_)

    def predict(self, X: Any, point: str = "mean") -> Array:
        """A point forecast in the shape of y: "mean", "median" or "mode"."""
        if point not in ("mean", "median", "mode"):
            raise DataError(f"point must be 'mean', 'median' or 'mode'; got {point!r}. Use 'mean'.")
        return self._shaped(getattr(self.predict_dist(X), point)())

    def predict_quantiles(self, X: Any, q: ArrayLike) -> Array:
        """Marginal quantiles, (n, q) for one output and (n, d, q) for more."""
        return self._shaped(self.predict_dist(X).quantiles(q))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Central intervals, (n, 2) for one output and (n, d, 2) for more."""
        return self._shaped(self.predict_dist(X).interval(coverage))

    def sample(self, X: Any, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draws of y, (s, n) for one output and (s, n, d) for more."""
        return self.predict_dist(X).sample(n_samples, random_state)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood in the units of y; larger is better."""
        prediction = self.predict_dist(X)
        weights = read_weights(sample_weight, len(prediction))
        return float(np.mean(weights * prediction.logpdf(y)))

    @property
    def weights_(self) -> Array:
        """Weights of the members."""
        check_is_fitted(self)
        return np.asarray(self._network.log_weights.exp().numpy())

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._alone else values

    # Keeping

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file that needs no pickle to be read."""
        check_is_fitted(self)
        header = {
            "parameters": {name: _plain(value) for name, value in self.get_params(deep=False).items()},
            "architecture": self._design_.as_dict(),
            "features": [str(name) for name in getattr(self, "feature_names_in_", [])],
            "outputs": self.output_names_,
            "one_column": self._alone,
            "history": {name: _plain(values) for name, values in self.history_.items()},
        }
        tensors = self._network.state_dict()
        learnt = {name for name, _ in self._network.named_parameters()}
        storage.write(path, header, {k: v.float() if k in learnt else v for k, v in tensors.items()})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> OgiveRegressor:
        """Read a model that `save` wrote."""
        return load(path)


def load(path: str | PathLike[str]) -> OgiveRegressor:
    """Read a model that `OgiveRegressor.save` wrote, on any device; nothing in the file is executed."""
    header, tensors = storage.read(path)
    try:
        design = Architecture.from_dict(header["architecture"])
        network = design.build(torch.Generator())
        network.load_state_dict(tensors)
        model = OgiveRegressor(**header["parameters"])
        history = {name: np.asarray(values, dtype=np.float64) for name, values in header["history"].items()}
        names, outputs, alone = header["features"], header["outputs"], header["one_column"]
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise FileFormatError(
            f"'{fspath(path)}' must describe the network it holds; got {type(error).__name__}: {reason}. "
            "Save the model again."
        ) from error
    model._remember(design, network, history, outputs, alone)
    model.n_features_in_ = design.n_features
    if names:
        model.feature_names_in_ = np.asarray(names, dtype=object)
    return model


def _fit_scaling(network: CDFNetwork, features: Array, targets: Array, design: Architecture) -> None:
    network.scale_x.fit(torch.tensor(features))
    if network.support.isfinite().all():
        network.scale_y.fit_range(*network.support)
    else:
        network.scale_y.fit(torch.tensor(targets))


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it; a generator of randomness is not kept."""
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value.tolist()]
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and math.isnan(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else None
