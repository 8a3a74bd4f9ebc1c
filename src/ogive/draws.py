"""Integrals under a joint law from weighted quasi-random draws (k, n, d): moments, mode, CRPS, energy score."""

from __future__ import annotations

import torch
from torch import Tensor

from .distribution import Distribution
from .quadrature import Quadrature

__all__ = ["crps", "crps_of_draws", "densest_draw", "energy_of_draws", "moments_of_draws"]

DIRECT = "donot_use_mm_for_euclid_dist"


def moments_of_draws(law: Distribution, size: int) -> Tensor:
    """Mean and covariance side by side, (n, d, 1 + d)."""
    draws, log_weights = law.paths(size)
    weights = log_weights.exp()[:, None, None]
    mean = (weights * draws).sum(0)
    away = draws - mean
    spread = away.abs().amax(0)
    unit = torch.where(spread > 0, spread, 1.0)  # squares of large numbers leave the floats
    covariance = torch.einsum("kni,knj->nij", weights * (away / unit), away / unit) * unit[:, :, None] * unit[:, None]
    return torch.cat([mean[..., None], covariance], -1)


def densest_draw(law: Distribution, size: int) -> Tensor:
    """The draw of greatest joint density (n, d)."""
    draws, _ = law.paths(size)
    best = law.log_prob(draws).argmax(0)
    return draws[best, torch.arange(law.n_rows)]


def crps(law: Distribution, y: Tensor, n_paths: int, size: int) -> Tensor:
    """CRPS of each output's marginal (n, d): by quadrature where that law is exact, from draws where it is not."""
    laws = [law.marginal(j, n_paths) for j in range(law.n_outputs)]
    by_draws = crps_of_draws(law, y, size) if any(one.n_paths > 1 for one in laws) else y
    exact = [
        Quadrature(one, law.n_rows, t, through=t, rounds=1).crps(t) if one.n_paths == 1 else by_draws[:, j]
        for j, (one, t) in enumerate(zip(laws, y.unbind(-1), strict=True))
    ]
    return torch.stack(exact, -1)


def crps_of_draws(law: Distribution, y: Tensor, size: int) -> Tensor:
    """CRPS of each output (n, d): E|Y - y| - int F (1 - F), with F the staircase of the draws."""
    draws, log_weights = law.paths(size)
    weights = log_weights.exp()[:, None, None].expand_as(draws)
    near = (weights * (draws - y).abs()).sum(0)
    ranked, order = draws.sort(0)
    cdf = weights.gather(0, order).cumsum(0)[:-1]
    return near - (cdf * (1.0 - cdf) * ranked.diff(dim=0)).sum(0)


def energy_of_draws(law: Distribution, y: Tensor, size: int) -> Tensor:
    """E |Y - y| - E |Y - Y'| / 2 in the Euclidean norm (n,), Y of one half of the draws and Y' of the other."""
    draws, log_weights = law.paths(size)
    unit = torch.cat([draws, y[None]]).abs().amax((0, 2)).clamp_min(torch.finfo(draws.dtype).tiny)
    draws, y = draws / unit[:, None], y / unit[:, None]  # squares of large numbers leave the floats
    near = log_weights.exp() @ (draws - y).norm(dim=-1)
    half = (len(draws) + 1) // 2
    left, right = log_weights[:half].softmax(0), log_weights[-half:].softmax(0)
    pairs = zip(draws[:half].unbind(1), draws[-half:].unbind(1), strict=True)
    apart = [left @ torch.cdist(one, other, compute_mode=DIRECT) @ right for one, other in pairs]
    score: Tensor = near - 0.5 * torch.stack([near.new_zeros(()), *apart])[1:]  # there may be no rows
    return score * unit
