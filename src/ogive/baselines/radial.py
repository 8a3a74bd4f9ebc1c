"""Laws that a bijection carries to independent standard normals, and the radial flow, whose inverse is closed.

A flow is stated in its normalising direction, from y to z. If every z_i depends on y_1 ... y_i only and rises in y_i,
as for one output it always does, the flow is a chain of conditional CDFs (`FlowChain`). Otherwise it has a density
and draws, and what draws can answer (`FlowLaw`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..arrays import Array
from ..distribution import Distribution, Factor, Law, Reading, Triangular
from ..errors import NotAvailableError
from ..numerics import sobol_points
from .fitting import BaselineNetwork, NeuralBaseline, perceptron
from .mdn import normal_log_density, normal_logit, normal_quantile

__all__ = ["RNF", "Bijection", "DrawnLaw", "FlowChain", "FlowLaw"]


class Bijection(ABC):
    """A smooth one-to-one map from y to z for each of n rows."""

    n_rows: int
    n_outputs: int

    @abstractmethod
    def normalise(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """z and log-slopes, both (..., n, d); the slopes sum over outputs to the map's log-determinant."""

    @abstractmethod
    def restore(self, z: Tensor) -> Tensor:
        """The y that `normalise` takes to z."""

    @abstractmethod
    def rows(self, index: slice) -> Bijection:
        """The same map for some of the rows."""

    def log_density(self, y: Tensor) -> Tensor:
        """Log-density (..., n) of y when z is standard normal."""
        z, log_slopes = self.normalise(y)
        return (normal_log_density(z) + log_slopes).sum(-1)


class FlowChain(Triangular):
    """The law of a bijection that takes the outputs one after the other: its CDFs are those of z."""

    def __init__(self, bijection: Bijection) -> None:
        self.bijection = bijection
        self.n_rows, self.n_outputs = bijection.n_rows, bijection.n_outputs
        self.order = tuple(range(self.n_outputs))

    def rows(self, index: slice) -> Distribution:
        return FlowChain(self.bijection.rows(index))

    def first(self) -> Factor:
        return FlowFactor(self.bijection, torch.empty(self.n_rows, 0, dtype=torch.float64))

    def log_prob(self, y: Tensor) -> Tensor:
        return self.bijection.log_density(y)

    def logits(self, y: Tensor) -> Tensor:
        return normal_logit(self.bijection.normalise(y)[0])

    def inverse(self, logits: Tensor) -> Tensor:
        return self.bijection.restore(normal_quantile(logits))


class FlowFactor(Factor):
    """The law of one output of a `FlowChain`, given the outputs `before` (..., n, i)."""

    def __init__(self, bijection: Bijection, before: Tensor) -> None:
        self.bijection, self.before, self.place = bijection, before, before.shape[-1]

    def _whole(self, values: Tensor, before: Tensor) -> Tensor:
        """Points (..., n, d) with this output's values and any later ones, on which it does not depend."""
        later = values.new_zeros(*values.shape, self.bijection.n_outputs - self.place - 1)
        return torch.cat([before.to(values.dtype).expand(*values.shape, -1), values[..., None], later], -1)

    def read(self, y: Tensor) -> Reading:
        z, log_slopes = (part[..., self.place] for part in self.bijection.normalise(self._whole(y, self.before)))
        return Reading(normal_logit(z), normal_log_density(z) + log_slopes)

    def icdf(self, logit: Tensor, tolerance: float | None = None) -> Tensor:
        known = self.bijection.normalise(self._whole(torch.zeros_like(logit), self.before))[0][..., : self.place]
        return self.bijection.restore(self._whole(normal_quantile(logit), known))[..., self.place]

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        point = self.icdf(logit)
        return point, point

    def then(self, y: Tensor) -> Factor:
        return FlowFactor(self.bijection, torch.cat([self.before.expand(*y.shape, -1), y[..., None]], -1))


@lru_cache(maxsize=8)
def normal_points(size: int, d: int) -> Tensor:
    """Quasi-random standard normal points (size, d), not to be changed; scrambling them takes long."""
    return normal_quantile(sobol_points(size, d).logit())


class FlowLaw(Distribution):
    """The law of any bijection: density and draws, but no chain of conditional CDFs."""

    def __init__(self, bijection: Bijection) -> None:
        self.bijection = bijection
        self.n_rows, self.n_outputs = bijection.n_rows, bijection.n_outputs

    def rows(self, index: slice) -> Distribution:
        return FlowLaw(self.bijection.rows(index))

    def log_prob(self, y: Tensor) -> Tensor:
        return self.bijection.log_density(y)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        shape = (size, self.n_rows, self.n_outputs)
        return self.bijection.restore(torch.randn(shape, generator=generator, dtype=torch.float64))

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        z = normal_points(size, self.n_outputs)
        even = torch.full((size,), -math.log(size), dtype=z.dtype)
        return self.bijection.restore(z[:, None].expand(-1, self.n_rows, -1)), even

    def marginal(self, output: int, n_paths: int) -> Law:
        return DrawnLaw(self, output, 2 * n_paths)

    def _refusal(self, question: str) -> NotAvailableError:
        return no_chain(question)


class DrawnLaw(Law):
    """The law of one output of a joint law that has only draws: quantiles by interpolation between ranked draws."""

    def __init__(self, joint: Distribution, output: int, n_paths: int) -> None:
        self.joint, self.output, self.n_paths = joint, output, n_paths

    def read(self, y: Tensor) -> Reading:
        raise no_chain("the CDF of one output")

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        point = self.icdf(logit)
        return point, point

    def icdf(self, logit: Tensor, tolerance: float | None = None) -> Tensor:
        """Quantiles (..., n); the k draws stand at the middles of k steps of the CDF."""
        draws, log_weights = self.joint.paths(self.n_paths)
        ranked, order = draws[..., self.output].sort(0)
        weights = log_weights.exp()[order].T.contiguous()
        middles = weights.cumsum(-1) - 0.5 * weights
        level = torch.sigmoid(logit).reshape(-1, logit.shape[-1]).T.contiguous()
        if bool(((level < middles[:, :1]) | (level > middles[:, -1:])).any()):
            raise NotAvailableError(
                f"a level must lie among those of {len(draws)} draws, from which this law's quantiles come; "
                f"got one outside [{float(middles[:, 0].max()):.2g}, {float(middles[:, -1].min()):.6g}]. "
                "Ask for a level nearer to 0.5."
            )
        above = torch.searchsorted(middles, level).clamp(1, len(draws) - 1)
        values = ranked.T.contiguous()
        left, right = (values.gather(1, at) for at in (above - 1, above))
        start, stop = (middles.gather(1, at) for at in (above - 1, above))
        return (left + (right - left) * (level - start) / (stop - start)).T.reshape(logit.shape)


def no_chain(question: str) -> NotAvailableError:
    """Why a flow whose outputs all depend on one another refuses a question."""
    return NotAvailableError(
        f"{question} must come from outputs taken one after the other; got a flow whose outputs are mixed. "
        "Ask for logpdf, sample, quantiles or scores, or fit one output, or a MAF or NSF with order='given'."
    )


class RadialBijection(Bijection):
    r"""An elementwise affine map and then K radial maps, :math:`f(y) = y + \beta (y - c) / (\alpha + r)`, r = |y - c|.

    It is one-to-one for :math:`\beta > -\alpha`. Along the ray from c the radius becomes
    :math:`\rho = r + \beta r / (\alpha + r)`, a quadratic equation for r, which inverts it in closed form.

    Parameters
    ----------
    location, log_scale : (n, d)
    alpha, beta : (n, K)
    centre : (n, K, d)
    """

    def __init__(self, location: Tensor, log_scale: Tensor, alpha: Tensor, beta: Tensor, centre: Tensor) -> None:
        self.location, self.log_scale, self.alpha, self.beta, self.centre = location, log_scale, alpha, beta, centre
        self.n_rows, self.n_outputs = location.shape

    def rows(self, index: slice) -> Bijection:
        parts = (self.location, self.log_scale, self.alpha, self.beta, self.centre)
        return RadialBijection(*(part[index] for part in parts))

    def normalise(self, y: Tensor) -> tuple[Tensor, Tensor]:
        z = (y - self.location) * torch.exp(-self.log_scale)
        log_slopes = -self.log_scale
        d = self.n_outputs
        for k in range(self.alpha.shape[1]):
            alpha, beta, centre = self.alpha[:, k, None], self.beta[:, k, None], self.centre[:, k]
            radius = _length(z - centre)
            across = torch.log1p(beta / (alpha + radius))
            along = torch.log1p(beta * alpha / (alpha + radius).square())
            z = z + beta * (z - centre) / (alpha + radius)
            log_slopes = log_slopes + ((d - 1) * across + along) / d
        return z, log_slopes.expand_as(z)

    def restore(self, z: Tensor) -> Tensor:
        for k in reversed(range(self.alpha.shape[1])):
            alpha, beta, centre = self.alpha[:, k, None], self.beta[:, k, None], self.centre[:, k]
            radius = _length(z - centre)
            half = 0.5 * (radius - alpha - beta)
            root = torch.hypot(half, (radius * alpha).sqrt())
            before = torch.where(half > 0, half + root, radius * alpha / (root - half))
            z = centre + (z - centre) * before / torch.where(radius > 0, radius, 1.0)
        return self.location + z * torch.exp(self.log_scale)


def _length(vector: Tensor) -> Tensor:
    """Euclidean norm (..., 1) whose gradient at zero is zero."""
    square = vector.square().sum(-1, keepdim=True)
    return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)


class RadialNetwork(BaselineNetwork):
    """x -> parameters of the affine and the radial maps."""

    def __init__(self, n_features: int, n_outputs: int, transforms: int, hidden: tuple[int, ...]) -> None:
        super().__init__(n_features, n_outputs)
        self.sizes = [n_outputs, n_outputs, transforms, transforms, transforms * n_outputs]
        self.trunk = perceptron(n_features, hidden, sum(self.sizes))
        with torch.no_grad():
            nn.init.normal_(list(self.trunk.parameters())[-1][-self.sizes[-1] :])  # centres start apart

    def bijection(self, features: Tensor) -> RadialBijection:
        """The map in scaled units."""
        location, log_scale, alpha, beta, centre = self.trunk(features).split(self.sizes, -1)
        alpha = softplus(alpha)
        # softplus(b + log(e - 1)) is one at b = 0, where the map is the identity.
        beta = alpha * (softplus(beta + math.log(math.expm1(1.0))) - 1.0)
        return RadialBijection(location, log_scale, alpha, beta, centre.view(*alpha.shape, -1))

    def loss(self, features: Tensor, outputs: Tensor, generator: torch.Generator | None) -> Tensor:
        return -self.bijection(features).log_density(outputs)

    def law(self, features: Tensor) -> Distribution:
        flow, scale = self.bijection(features), self.scale_y.scale
        location = self.scale_y.center + scale * flow.location
        flow = RadialBijection(location, flow.log_scale + scale.log(), flow.alpha, flow.beta, flow.centre)
        return FlowChain(flow) if flow.n_outputs == 1 else FlowLaw(flow)


class RNF(NeuralBaseline):
    r"""Radial normalising flow: K maps :math:`f(y) = y + \beta (y - c) / (\alpha + |y - c|)`, parameters given by x.

    Stated from y to z, so that the density is exact and drawing inverts each map in closed form. For one output its
    CDF is exact; for more, outputs are mixed and only draws answer for one of them.

    DIFF: the paper's "elliptical basis functions" are not defined there; here a first elementwise affine map, given by
    x, makes ellipses of the spheres. One radius for outputs of different spreads costs much likelihood without it.

    Parameters
    ----------
    transforms : int
        Radial maps.
    hidden : tuple of int
        Widths of the trunk.
    learning_rate, max_epochs, patience, random_state
        Of the training that all neural baselines share.

    References
    ----------
    Rezende and Mohamed, "Variational inference with normalizing flows", 2015.
    Trippe and Turner, "Conditional density estimation with Bayesian normalising flows", 2018.
    """

    def __init__(
        self,
        *,
        transforms: int = 5,
        hidden: tuple[int, ...] = (128, 128),
        learning_rate: float = 1e-3,
        max_epochs: int = 2000,
        patience: int = 30,
        random_state: Any = None,
    ) -> None:
        super().__init__(hidden, learning_rate, max_epochs, patience, random_state)
        self.transforms = transforms

    def _network(self, features: Array, targets: Array) -> BaselineNetwork:
        self._must_be_positive("transforms")
        return RadialNetwork(features.shape[1], targets.shape[1], self.transforms, tuple(self.hidden))
