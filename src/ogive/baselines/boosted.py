"""Natural gradient boosting: trees that predict a normal law, by the library of its authors."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import Tensor

from ..arrays import Array
from ..distribution import Distribution
from ..errors import DataError
from ..nn.scaling import OutputScaling
from .fitting import Baseline, LawAt, held_back
from .mdn import NormalMixture

__all__ = ["Boosted"]


def _ngboost() -> ModuleType:
    try:
        import ngboost
    except ImportError as error:
        raise ImportError(
            "ngboost must be installed for Boosted; got none. Install it: pip install 'ogive[bench]'.", name="ngboost"
        ) from error
    module: ModuleType = ngboost
    return module


class Boosted(Baseline):
    r"""Boosted trees for the mean and covariance of a normal law, :math:`p(y \mid x) = N(y; m(x), \Sigma(x))`.

    For several outputs the trees give the Cholesky factor of :math:`\Sigma^{-1}`; outputs are standardised first. A
    tenth of the training rows decides how many of the trees are used.

    Parameters
    ----------
    n_trees : int
        Most trees for each parameter of the law.
    learning_rate : float
        Share of each tree that is added.
    patience : int
        Trees without a better validation likelihood before boosting stops.
    max_depth : int
        Depth of the trees.
    random_state : int, Generator or None
        Seed of the validation part and of ties between splits.

    References
    ----------
    Duan et al., "NGBoost: natural gradient boosting for probabilistic prediction", 2020.
    """

    def __init__(
        self,
        *,
        n_trees: int = 2000,
        learning_rate: float = 0.01,
        patience: int = 50,
        max_depth: int = 3,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.learning_rate = learning_rate
        self.patience = patience
        self.max_depth = max_depth
        self.random_state = random_state

    def _learn(self, features: Array, targets: Array, generator: torch.Generator) -> LawAt:
        self._must_be_positive("n_trees", "patience", "max_depth")
        d = targets.shape[1]
        scale_y = OutputScaling(d)
        scale_y.fit(torch.tensor(targets))
        scaled = scale_y(torch.tensor(targets)).numpy()
        rank = int(np.linalg.matrix_rank(scaled))
        if rank < d:
            raise DataError(f"y must have outputs that vary apart from one another; got {rank} of {d}. Drop the rest.")
        learn, hold = (part.numpy() for part in held_back(len(features), generator))
        seed = int(torch.randint(2**31, (), generator=generator))
        library = _ngboost()
        model = library.NGBRegressor(
            Dist=library.distns.Normal if d == 1 else library.distns.MultivariateNormal(d),
            # a tree without a seed draws from numpy's global generator
            Base=DecisionTreeRegressor(max_depth=self.max_depth, random_state=seed),
            n_estimators=self.n_trees,
            learning_rate=self.learning_rate,
            random_state=seed,
            verbose=False,
        )
        y = scaled[:, 0] if d == 1 else scaled
        model.fit(features[learn], y[learn], features[hold], y[hold], early_stopping_rounds=self.patience)
        self.n_trees_ = int(model.best_val_loss_itr) + 1
        return partial(_law, model, self.n_trees_, scale_y)


def _law(model: Any, n_trees: int, scale_y: OutputScaling, x: Tensor) -> Distribution:
    """The boosted law of scaled outputs as one of ours, in the user's units."""
    found = model.pred_dist(x.numpy(), max_iter=n_trees)
    means = torch.tensor(np.asarray(found.loc)).reshape(-1, len(scale_y.scale))
    if means.shape[1] == 1:
        roots = torch.tensor(np.asarray(found.scale)).reshape(-1, 1, 1)
    else:  # precision L L^T, so the covariance is M^T M with M = L^-1 = Q R, and its root is R^T
        eye = torch.eye(means.shape[1], dtype=torch.float64)
        upper = torch.linalg.qr(torch.linalg.solve_triangular(torch.tensor(found.L), eye, upper=False)).R
        roots = (upper * upper.diagonal(dim1=-2, dim2=-1).sign()[..., None]).mT
    log_weights = torch.zeros(len(means), 1, dtype=torch.float64)
    means = scale_y.center + scale_y.scale * means
    return NormalMixture(log_weights, means[:, None], (scale_y.scale[:, None] * roots)[:, None])
