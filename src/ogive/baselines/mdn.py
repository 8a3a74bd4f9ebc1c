"""Mixture density network: a mixture of normal laws with full covariances, as an exact chain of conditional laws."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..arrays import Array
from ..distribution import Distribution, Factor, Law, Reading, Triangular
from ..numerics import logit_of_mixture, sobol_points
from .fitting import BaselineNetwork, NeuralBaseline, perceptron

__all__ = ["MDN", "NormalMixture", "normal_log_density", "normal_logit", "normal_quantile"]

LOG_SMALLEST_SCALE = math.log(1e-3)  # of a component, in standard deviations of y


def normal_log_density(z: Tensor) -> Tensor:
    """Standard normal log-density."""
    return -0.5 * z.square() - 0.5 * math.log(2.0 * math.pi)


def normal_logit(z: Tensor) -> Tensor:
    """Logit of the standard normal CDF, accurate in both tails."""
    logit: Tensor = torch.special.log_ndtr(z) - torch.special.log_ndtr(-z)
    return logit


def normal_quantile(logit: Tensor) -> Tensor:
    """Standard normal quantile of a logit: the inverse of `normal_logit`."""
    z: Tensor = -logit.sign() * torch.special.ndtri(torch.sigmoid(-logit.abs()))
    return z


class NormalMixture(Triangular):
    r"""Mixture of normal laws, :math:`\sum_k w_k N(y; m_k, L_k L_k^\top)`, for each of n rows.

    Since L is lower triangular, component k's law of :math:`y_i` given the outputs before is normal with mean
    :math:`m_i + \sum_{j<i} L_{ij} e_j` and scale :math:`L_{ii}`, e being the standardised residuals; and the weights
    given the outputs before are w times the components' densities there. So every conditional CDF is exact.

    Parameters
    ----------
    log_weights : (n, k)
    means : (n, k, d)
    roots : (n, k, d, d), lower triangular with positive diagonals
    """

    def __init__(self, log_weights: Tensor, means: Tensor, roots: Tensor) -> None:
        self.log_weights, self.means, self.roots = log_weights, means, roots
        self.n_rows, self.n_outputs = means.shape[0], means.shape[-1]
        self.order = tuple(range(self.n_outputs))

    def rows(self, index: slice) -> Distribution:
        return NormalMixture(self.log_weights[index], self.means[index], self.roots[index])

    def first(self) -> Factor:
        return NormalMixtureFactor(self, self.log_weights, self.means[..., :0])

    def marginal(self, output: int, n_paths: int) -> Law:
        """Exact: the mixture of the components' own marginals."""
        scale = self.roots[..., output, :].norm(dim=-1)
        return NormalMixture(self.log_weights, self.means[..., output, None], scale[..., None, None]).first()

    def log_prob(self, y: Tensor) -> Tensor:
        residuals = self.means[..., :0]
        log_density = self.log_weights
        for i in range(self.n_outputs):
            location, scale = self.conditional(residuals)
            z = (y[..., None, i] - location) / scale
            log_density = log_density + normal_log_density(z) - scale.log()
            residuals = _append(residuals, z)
        return torch.logsumexp(log_density, -1)

    def conditional(self, residuals: Tensor) -> tuple[Tensor, Tensor]:
        """Each component's location and scale (..., n, k) of the output after these residuals (..., n, k, i)."""
        i = residuals.shape[-1]
        shift = (self.roots[..., i, :i] * residuals).sum(-1)
        return self.means[..., i] + shift, self.roots[..., i, i]

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        """The first coordinate of a Sobol point takes a component by its weight, the others place it there."""
        points = sobol_points(size, 1 + self.n_outputs)
        ends = self.log_weights.exp().cumsum(-1)
        part = torch.searchsorted(ends, points[:, 0].expand(self.n_rows, -1).contiguous())
        place, part = torch.arange(self.n_rows)[:, None], part.clamp_max(ends.shape[-1] - 1)
        noise = normal_quantile(points[:, 1:].logit())
        draws = self.means[place, part] + torch.einsum("nsij,sj->nsi", self.roots[place, part], noise)
        return draws.movedim(1, 0), torch.full((size,), -math.log(size), dtype=draws.dtype)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        part = torch.multinomial(self.log_weights.exp(), size, replacement=True, generator=generator)
        place = torch.arange(self.n_rows)[:, None]
        noise = torch.randn(*part.shape, self.n_outputs, generator=generator, dtype=self.means.dtype)
        draws = self.means[place, part] + torch.einsum("nsij,nsj->nsi", self.roots[place, part], noise)
        return draws.movedim(1, 0)


class NormalMixtureFactor(Factor):
    """The law of one output, given the components' weights (..., n, k) and residuals (..., n, k, i) before it."""

    def __init__(self, law: NormalMixture, log_weights: Tensor, residuals: Tensor) -> None:
        self.law, self.log_weights, self.residuals = law, log_weights, residuals
        self.location, self.scale = law.conditional(residuals)

    def _standard(self, y: Tensor) -> Tensor:
        return (y[..., None] - self.location) / self.scale

    def read(self, y: Tensor) -> Reading:
        z = self._standard(y)
        log_density = torch.logsumexp(self.log_weights + normal_log_density(z) - self.scale.log(), -1)
        return Reading(logit_of_mixture(self.log_weights, normal_logit(z), -1), log_density)

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        z = normal_quantile(logit.clamp(-80.0, 80.0))  # beyond, the solver widens
        each = self.location + self.scale * z[..., None]
        return each.amin(-1), each.amax(-1)

    def then(self, y: Tensor) -> Factor:
        z = self._standard(y)
        log_weights = (self.log_weights + normal_log_density(z) - self.scale.log()).log_softmax(-1)
        return NormalMixtureFactor(self.law, log_weights, _append(self.residuals, z))


def _append(residuals: Tensor, z: Tensor) -> Tensor:
    return torch.cat([residuals.expand(*z.shape, -1), z[..., None]], -1)


class MixtureNetwork(BaselineNetwork):
    """x -> weights, means and Cholesky factors of the components."""

    def __init__(self, n_features: int, n_outputs: int, components: int, hidden: tuple[int, ...]) -> None:
        super().__init__(n_features, n_outputs)
        d, self.components = n_outputs, components
        self.sizes = [components, components * d, components * d, components * (d * (d - 1) // 2)]
        self.trunk = perceptron(n_features, hidden, sum(self.sizes))
        offsets = list(self.trunk.parameters())[-1]
        with torch.no_grad():
            nn.init.normal_(offsets[components : components * (1 + d)])  # components start apart

    def mixture(self, features: Tensor) -> NormalMixture:
        """The mixture in scaled units."""
        d = len(self.scale_y.center)
        logits, means, scales, below = self.trunk(features).split(self.sizes, -1)
        shape = (len(features), self.components, -1)
        log_scales = LOG_SMALLEST_SCALE + nn.functional.softplus(scales.view(shape) - LOG_SMALLEST_SCALE)
        roots = torch.diag_embed(log_scales.exp())
        i, j = torch.tril_indices(d, d, -1)
        roots[..., i, j] = below.reshape(*shape[:-1], len(i))
        return NormalMixture(logits.log_softmax(-1), means.view(shape), roots)

    def loss(self, features: Tensor, outputs: Tensor, generator: torch.Generator | None) -> Tensor:
        return -self.mixture(features).log_prob(outputs)

    def law(self, features: Tensor) -> Distribution:
        law, scale = self.mixture(features), self.scale_y.scale
        return NormalMixture(law.log_weights, self.scale_y.center + scale * law.means, scale[:, None] * law.roots)


class MDN(NeuralBaseline):
    r"""Mixture density network, :math:`p(y \mid x) = \sum_k w_k(x) N(y; m_k(x), L_k(x) L_k(x)^\top)`.

    Full covariances through their Cholesky factors L; its chain of conditional CDFs is exact.

    Parameters
    ----------
    components : int
        Normal laws in the mixture.
    hidden : tuple of int
        Widths of the trunk.
    learning_rate, max_epochs, patience, random_state
        Of the training that all neural baselines share.

    References
    ----------
    Bishop, "Mixture density networks", 1994.

    Examples
    --------
    >>> import numpy as np
    >>> from ogive.baselines import MDN
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> MDN(max_epochs=5, random_state=0).fit(X, X[:, 0]).predict_dist(X[:4]).ppf([0.1, 0.9]).shape
    (4, 2)
    """

    def __init__(
        self,
        *,
        components: int = 20,
        hidden: tuple[int, ...] = (128, 128),
        learning_rate: float = 1e-3,
        max_epochs: int = 2000,
        patience: int = 30,
        random_state: Any = None,
    ) -> None:
        super().__init__(hidden, learning_rate, max_epochs, patience, random_state)
        self.components = components

    def _network(self, features: Array, targets: Array) -> BaselineNetwork:
        self._must_be_positive("components")
        return MixtureNetwork(features.shape[1], targets.shape[1], self.components, tuple(self.hidden))
