"""How far a finite difference of a CDF is from its slope."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..arrays import Array
from ..errors import NumericalError

__all__ = ["difference_error"]


def difference_error(model: Any, X: Array, y: Array, dtype: torch.dtype) -> float:
    r"""Mean of :math:`|\log \hat p - \log p|` over rows, with p the exact slope of the fitted network's CDF.

    :math:`\hat p` is the density as the model states it, a central difference or the slope itself, computed in
    `dtype`; p is computed in float64. Training sees the former in float32, answers are given in float64.

    Parameters
    ----------
    model : OgiveRegressor, fitted
    X, y : (n, p) and (n, d)
    dtype : torch.float32 or torch.float64
    """
    stated = _log_density(model, X, y, model._fitted.design.delta, dtype)
    exact = _log_density(model, X, y, None, torch.float64)
    if not bool(exact.isfinite().all()):
        raise NumericalError("the exact density must be positive at every row; got zero. Widen support.")
    return float((stated - exact).abs().mean())


def _log_density(model: Any, X: Array, y: Array, delta: float | None, dtype: torch.dtype) -> Tensor:
    """Log-density (n,) of the same network with another step, in float64."""
    network = replace(model._fitted.design, delta=delta).build(torch.Generator())
    network.load_state_dict(model._fitted.network.state_dict())
    network.eval()
    if dtype == torch.float64:
        network.double()
    with torch.no_grad():
        log_density: Tensor = network(torch.tensor(X)).log_prob(torch.tensor(y))
    return log_density.double()
