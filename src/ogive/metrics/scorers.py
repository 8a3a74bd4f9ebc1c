"""The metrics as scikit-learn scorers, where larger is better."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from ..errors import DataError, DataTypeError
from .calibration import ece
from .scores import crps, energy_score, interval_score, nll

__all__ = ["scorer"]

METRICS: dict[str, Callable[[Any, ArrayLike], Any]] = {
    "neg_nll": nll,
    "neg_crps": crps,
    "neg_energy_score": energy_score,
    "neg_interval_score": interval_score,
    "neg_ece": ece,
}


def scorer(name: str) -> Callable[[Any, Any, ArrayLike], float]:
    """A metric as ``scorer(estimator, X, y)``, for ``cross_val_score``, ``GridSearchCV`` and their kin.

    Parameters
    ----------
    name : {"neg_nll", "neg_crps", "neg_energy_score", "neg_interval_score", "neg_ece"}
        Minus the metric, averaged over outputs. Intervals are of probability 0.9, the ECE has 10 levels.

    Returns
    -------
    callable
        Can be pickled. The estimator must have ``predict_dist``; a Pipeline whose last step has it will do.
    """
    if name not in METRICS:
        raise DataError(f"name must be one of {', '.join(METRICS)}; got {name!r}. Choose one of them.")
    return partial(_score, name)


def _score(name: str, estimator: Any, X: Any, y: ArrayLike) -> float:
    return -float(np.mean(METRICS[name](_predict(estimator, X), y)))


def _predict(estimator: Any, X: Any) -> Any:
    """The predicted law; a Pipeline passes on only the methods that scikit-learn knows."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return _predict(estimator.steps[-1][1], X)
    if not hasattr(estimator, "predict_dist"):
        raise DataTypeError(
            f"estimator must have predict_dist; got a {type(estimator).__name__}. Score an OgiveRegressor."
        )
    return estimator.predict_dist(X)
