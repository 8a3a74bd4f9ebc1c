r"""What a law p(y | x) can be asked, on tensors, in the user's units.

A joint law is a chain of one-dimensional conditional laws,
:math:`p(y \mid x) = \prod_i p(y_i \mid x, y_{<i})`. A `Factor` is one link of that chain: it gives the conditional
CDF (as a logit) and density of one output, and `then(y)` steps on to the next output once this one is known.
Every question about the joint law is a walk along the chain, written here once.

Shapes: y is (..., n, d); a factor's points are (..., n). Leading axes are draws or points of a grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .errors import NotAvailableError
from .numerics import bracketed_newton, logit_of_mixture

__all__ = ["AveragedFactor", "Distribution", "Factor", "Mixture", "MixtureFactor", "Reading", "Triangular", "Univariate"]


class Reading(NamedTuple):
    """A conditional law read at a point: the logit of its CDF and the log of its density."""

    logit: Tensor
    log_density: Tensor

    @property
    def log_slope(self) -> Tensor:
        """log of d logit / d y, which is density / (F (1 - F))."""
        return self.log_density - logsigmoid(self.logit) - logsigmoid(-self.logit)


class Factor(ABC):
    """The law of one output for each of n rows, given x and the outputs before it."""

    @abstractmethod
    def read(self, y: Tensor) -> Reading:
        """Logit of the CDF and log-density at y (..., n)."""

    @abstractmethod
    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        """Two points, cheap to find, that hold or nearly hold the quantile of `logit` between them."""

    @abstractmethod
    def then(self, y: Tensor) -> Factor:
        """The law of the next output once this one is known to be y (..., n)."""

    def icdf(self, logit: Tensor) -> Tensor:
        """The point at which the logit of the CDF is `logit` (..., n)."""

        def rising(y: Tensor) -> tuple[Tensor, Tensor]:
            reading = self.read(y)
            return reading.logit, reading.log_slope

        return bracketed_newton(rising, logit, *self.bracket(logit))


class Distribution(ABC):
    """A law of d outputs for each of n rows."""

    n_rows: int
    n_outputs: int

    @abstractmethod
    def log_prob(self, y: Tensor) -> Tensor:
        """Joint log-density (..., n) at y (..., n, d)."""

    @abstractmethod
    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        """Independent draws (size, n, d)."""

    @abstractmethod
    def rows(self, index: slice) -> Distribution:
        """The same law for some of the rows."""

    @abstractmethod
    def marginal(self, output: int, paths: Tensor) -> Factor:
        """Law of one output alone; `paths` (k, d) uniforms carry the integral over the outputs before it."""

    def triangular(self, question: str) -> Triangular:
        """This law as one chain of conditionals, or a reasoned refusal to answer `question`."""
        raise NotAvailableError(
            f"{question} must have one chain of conditional laws; got a {type(self).__name__} that has none. "
            "Ask for logpdf, sample or marginals, or fit with order='given'."
        )


class Triangular(Distribution):
    """A law given by its chain of conditional factors; knows its joint CDF transform and its inverse.

    `order` lists the outputs as the chain meets them; results keep the outputs in the user's places.
    """

    order: tuple[int, ...]

    @abstractmethod
    def first(self) -> Factor:
        """Law of the first output given x alone."""

    def triangular(self, question: str) -> Triangular:
        return self

    def readings(self, y: Tensor) -> list[Reading]:
        """Every output's reading along the chain at y (..., n, d), outputs in the user's places."""
        factor, found = self.first(), {}
        for i in self.order:
            found[i] = factor.read(y[..., i])
            factor = factor.then(y[..., i]) if i != self.order[-1] else factor
        return [found[i] for i in range(self.n_outputs)]

    def log_prob(self, y: Tensor) -> Tensor:
        return torch.stack([reading.log_density for reading in self.readings(y)]).sum(0)

    def logits(self, y: Tensor) -> Tensor:
        """Logits of the conditional CDFs (..., n, d): the Rosenblatt transform on the logit scale."""
        return torch.stack([reading.logit for reading in self.readings(y)], -1)

    def inverse(self, logits: Tensor) -> Tensor:
        """The y (..., n, d) whose conditional CDFs have these logits."""
        factor, found = self.first(), {}
        for i in self.order:
            found[i] = factor.icdf(logits[..., i])
            factor = factor.then(found[i]) if i != self.order[-1] else factor
        return torch.stack([found[i] for i in range(self.n_outputs)], -1)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        shape = (size, self.n_rows, self.n_outputs)
        return self.inverse(torch.rand(shape, generator=generator, dtype=torch.float64).logit(eps=1e-16))

    def marginal(self, output: int, paths: Tensor) -> Factor:
        factor, before = self.first(), self.order.index(output)
        for i in range(before):
            shape = (len(paths), self.n_rows)
            factor = factor.then(factor.icdf(paths[:, None, i].logit().expand(shape)))
        equal = torch.full((len(paths), 1), -math.log(len(paths)), dtype=paths.dtype)
        return AveragedFactor(factor, equal) if before else factor


class AveragedFactor(Factor):
    """Average over the last leading axis (k) of a factor: a law known given a path, with the paths summed out."""

    def __init__(self, factor: Factor, log_weights: Tensor) -> None:
        self.factor, self.log_weights = factor, log_weights

    def _members(self, y: Tensor) -> Reading:
        return self.factor.read(y[..., None, :].expand(*y.shape[:-1], len(self.log_weights), y.shape[-1]))

    def read(self, y: Tensor) -> Reading:
        logit, log_density = self._members(y)
        mixed = logit_of_mixture(self.log_weights, logit, -2)
        return Reading(mixed, torch.logsumexp(self.log_weights + log_density, -2))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        shape = (*logit.shape[:-1], len(self.log_weights), logit.shape[-1])
        low, high = self.factor.bracket(logit[..., None, :].expand(shape))
        return low.amin(-2), high.amax(-2)

    def then(self, y: Tensor) -> Factor:
        if y.ndim != 1:
            raise NotAvailableError("then must be asked at one point a row; got leading axes. Ask point by point.")
        log_weights = (self.log_weights + self._members(y).log_density).log_softmax(-2)
        return AveragedFactor(self.factor.then(y.expand(log_weights.shape)), log_weights)


class Univariate(Triangular):
    """The distribution of a single output, from its factor."""

    n_outputs = 1
    order = (0,)

    def __init__(self, n_rows: int, factor: Factor) -> None:
        self.n_rows, self._factor = n_rows, factor

    def first(self) -> Factor:
        return self._factor

    def rows(self, index: slice) -> Distribution:
        raise NotAvailableError("A marginal must be sliced before it is taken; got rows of a marginal.")


class Mixture(Distribution):
    """Weighted mixture of distributions over the same outputs; each keeps a chain (an order) of its own."""

    def __init__(self, parts: Sequence[Distribution], log_weights: Tensor) -> None:
        self.parts, self.log_weights = list(parts), log_weights
        self.n_rows, self.n_outputs = parts[0].n_rows, parts[0].n_outputs

    def log_prob(self, y: Tensor) -> Tensor:
        each = torch.stack([part.log_prob(y) for part in self.parts], -1)
        return torch.logsumexp(each + self.log_weights, -1)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        cell = torch.multinomial(
            self.log_weights.exp().expand(size, -1), self.n_rows, replacement=True, generator=generator
        )
        draws = torch.stack([part.sample(size, generator) for part in self.parts])
        return draws.gather(0, cell[None, ..., None].expand(1, *draws.shape[1:]))[0]

    def rows(self, index: slice) -> Distribution:
        return Mixture([part.rows(index) for part in self.parts], self.log_weights)

    def marginal(self, output: int, paths: Tensor) -> Factor:
        return MixtureFactor([part.marginal(output, paths) for part in self.parts], self.log_weights)


class MixtureFactor(Factor):
    """The law of one output under a mixture of distributions, from the law under each."""

    def __init__(self, factors: Sequence[Factor], log_weights: Tensor) -> None:
        self.factors = list(factors)
        self.log_weights = log_weights  # (parts,) or (parts, n)

    def _readings(self, y: Tensor) -> tuple[Reading, Tensor]:
        logits, log_densities = zip(*(factor.read(y) for factor in self.factors), strict=True)
        shape = (len(self.factors), *[1] * (y.ndim - 1), -1)
        return Reading(torch.stack(logits), torch.stack(log_densities)), self.log_weights.reshape(shape)

    def read(self, y: Tensor) -> Reading:
        each, log_weights = self._readings(y)
        mixed = logit_of_mixture(log_weights, each.logit)
        return Reading(mixed, torch.logsumexp(log_weights + each.log_density, 0))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        lows, highs = zip(*(factor.bracket(logit) for factor in self.factors), strict=True)
        return torch.stack(lows).amin(0), torch.stack(highs).amax(0)

    def then(self, y: Tensor) -> Factor:
        raise NotAvailableError("A mixture over orders has no next output; got then. Fit with order='given'.")
