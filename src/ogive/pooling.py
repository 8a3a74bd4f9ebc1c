"""How the laws of trained members are pooled into one, as the rows that they held back decide.

Members of one regime share a weight. A linear pool of calibrated laws is too wide (Gneiting and Ranjan, "Combining
predictive distributions", 2013), so the pool's members are made sharper first: the value O of each factor is
multiplied by a constant of its output, which a prior holds near one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from .nn.cdf import CDFNetwork
from .training import Rows

__all__ = ["pool_members", "regime_log_weights", "sharpen"]

WEIGHING_STEPS = 20
MOST_ROWS = 4096  # of a member: more tell no more about a handful of numbers
ROWS_AT_ONCE = 1024
PRIOR = 20.0  # inverse variance of a logarithm of sharpness: it counts like as many rows
SHARPEST = math.log(8.0)


def pool_members(network: CDFNetwork, rows: Rows, hold: Tensor, regimes: Sequence[int]) -> None:
    """Set the members' weights, then the outputs' sharpness, from the rows (m, h) that each member held back."""
    kept, hold = hold[:, :MOST_ROWS].unique(return_inverse=True)
    rows = Rows(rows.features[:, kept], rows.outputs[kept], rows.weights[kept])
    network.log_weights.copy_(regime_log_weights(network, rows, hold, regimes))
    sharpen(network, rows, hold, regimes)


@torch.no_grad()
def regime_log_weights(network: CDFNetwork, rows: Rows, hold: Tensor, regimes: Sequence[int]) -> Tensor:
    """Log-weights (m,) of a mixture that makes likely the rows (m, h) that its members held back.

    A few steps of expectation-maximisation from equal weights: that of a regime becomes its mean share in the
    mixture's density. Stopping early is the shrinkage; few rows allow few steps.
    """
    unseen, weight = _regime_densities(network, rows, hold, regimes)
    found = torch.full((len(unseen),), 1.0 / len(unseen), dtype=torch.float64).log()
    for _ in range(min(WEIGHING_STEPS, unseen.shape[1] // 3) if len(unseen) > 1 else 0):
        log_share = (found[:, None] + unseen).log_softmax(0)
        found = ((log_share.exp() * weight).sum(1) / weight.sum()).log()
    log_weights = torch.empty(len(regimes), dtype=torch.float64)
    for places, value in zip(_places(regimes), found, strict=True):
        log_weights[places] = value - math.log(len(places))
    return log_weights


def sharpen(network: CDFNetwork, rows: Rows, hold: Tensor, regimes: Sequence[int]) -> None:
    r"""Set each output's sharpness a to the most likely one on rows held back.

    It minimises :math:`-\sum_r w_r \log p(y_r \mid x_r; a) + \tfrac{1}{2} \lambda \sum_i \log^2 a_i`, with weights
    of mean one.
    """
    stack, order = network.stack, network.order
    log_weights = torch.stack([network.log_weights[places].logsumexp(0) for places in _places(regimes)])[:, None]

    def penalised(values: np.ndarray) -> tuple[float, np.ndarray]:
        log_sharpness = torch.tensor(values, requires_grad=True)
        stack.log_sharpness = log_sharpness.to(network.dtype)[order]
        unseen, weight = _regime_densities(network, rows, hold, regimes)
        likelihood = (torch.logsumexp(log_weights + unseen, 0) * (weight / weight.mean())).sum()
        loss = 0.5 * PRIOR * log_sharpness.square().sum() - likelihood
        (slope,) = torch.autograd.grad(loss, log_sharpness)
        return float(loss.detach()), slope.numpy()

    start = np.zeros(network.n_outputs)
    bounds = [(-SHARPEST, SHARPEST)] * network.n_outputs
    found = minimize(penalised, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30})
    best = found.x if np.isfinite(found.fun) else start
    stack.log_sharpness = torch.tensor(best)[order].to(network.dtype)


def _regime_densities(network: CDFNetwork, rows: Rows, hold: Tensor, regimes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Log-density (r, n) that each regime's members give to rows they have not seen, and the rows' weights (n,).

    Of rows that several members of a regime held back it is the mean density. The rows counted are those that every
    regime has held back.
    """
    own = _own_densities(network, rows, hold)
    found = own.new_full((len(hold), len(rows.weights)), -torch.inf).scatter(1, hold, own)
    known = torch.zeros(found.shape, dtype=torch.bool).scatter(1, hold, True)
    counts = torch.stack([known[places].sum(0) for places in _places(regimes)])
    counted = (counts > 0).all(0)
    total = torch.stack([found[places][:, counted].logsumexp(0) for places in _places(regimes)])
    return total - counts[:, counted].double().log(), rows.weights[counted].double()


def _own_densities(network: CDFNetwork, rows: Rows, hold: Tensor) -> Tensor:
    """Log-density (m, h) that each member gives to the rows that it held back."""
    found = []
    for part in hold.split(ROWS_AT_ONCE, 1):
        features, outputs, _ = rows.batch(part)
        found.append(network.readings(features, network.chain(outputs)).log_density.sum(1).double())
    return torch.cat(found, 1)


def _places(regimes: Sequence[int]) -> list[list[int]]:
    """The members of each regime."""
    return [[k for k, own in enumerate(regimes) if own == regime] for regime in sorted(set(regimes))]
