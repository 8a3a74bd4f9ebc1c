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
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from .errors import NotAvailableError
from .numerics import bracketed_newton, log_logistic_difference, logit_of_mixture, sobol_points

__all__ = ["AveragedLaw", "Distribution", "Factor", "Law", "Marginal", "Reading", "Triangular", "random_logits"]

NODES_AT_ONCE = 4096


class Reading(NamedTuple):
    """A one-dimensional law read at a point: the logit of its CDF and the log of its density."""

    logit: Tensor
    log_density: Tensor

    @property
    def log_slope(self) -> Tensor:
        """log of d logit / d y, which is density / (F (1 - F))."""
        return self.log_density - logsigmoid(self.logit) - logsigmoid(-self.logit)


class Law(ABC):
    """The law of one output for each of n rows; known exactly where `n_paths` is one, else an average over paths."""

    n_paths = 1

    @abstractmethod
    def read(self, y: Tensor) -> Reading:
        """Logit of the CDF and log-density at y (..., n)."""

    @abstractmethod
    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        """Two points, cheap to find, that hold or nearly hold the quantile of `logit` between them."""

    def icdf(self, logit: Tensor, tolerance: float = 0.0) -> Tensor:
        """The point at which the logit of the CDF is `logit` (..., n); roughly, if off by a `tolerance` will do."""

        def rising(y: Tensor) -> tuple[Tensor, Tensor]:
            reading = self.read(y)
            return reading.logit, reading.log_slope

        return bracketed_newton(rising, logit, *self.bracket(logit), tolerance=tolerance)


class Factor(Law):
    """The law of one output given x and the outputs before it in a chain."""

    @abstractmethod
    def then(self, y: Tensor) -> Factor:
        """The law of the next output once this one is known to be y (..., n)."""

    def on_axis(self, nodes: Tensor, before: torch.Size) -> Tensor:
        """Log-density (k, *before) at every node (k,), for laws that lie in a shape `before`."""
        pieces = nodes.split(max(1, NODES_AT_ONCE // max(1, before.numel())))
        return torch.cat([self.read(_spread(piece, before)).log_density for piece in pieces])


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

    def log_prob_grid(self, axes: Sequence[Tensor]) -> Tensor:
        """Joint log-density (k1, ..., kd, n) at every node of the product of the outputs' axes (k1,), ..., (kd,)."""
        nodes = torch.cartesian_prod(*axes).view(-1, 1, self.n_outputs).expand(-1, self.n_rows, -1)
        pieces = nodes.split(max(1, NODES_AT_ONCE // self.n_rows))
        return torch.cat([self.log_prob(piece) for piece in pieces]).view(*map(len, axes), self.n_rows)

    def logits(self, y: Tensor) -> Tensor:
        """Logits of the conditional CDFs (..., n, d): the Rosenblatt transform on the logit scale."""
        raise self._refusal("the chain of conditional CDFs")

    def inverse(self, logits: Tensor) -> Tensor:
        """The y (..., n, d) whose conditional CDFs have these logits."""
        raise self._refusal("the inverse of the chain of conditional CDFs")

    def marginal(self, output: int, n_paths: int) -> Law:
        """Law of one output alone, the outputs before it summed out over about `n_paths` quasi-random paths."""
        raise self._refusal("the CDF of one output")

    def log_box(self, low: Tensor, high: Tensor, points: Tensor) -> Tensor:
        """Logs (k, ..., n) of estimates, one for each of the points (k, d - 1) of the unit cube, of P(low < Y <= high).

        Ends are (..., n, d) and may be infinite; the mean of the estimates over the cube is the probability.
        """
        raise self._refusal("the probability of a box")

    def paths(self, size: int) -> tuple[Tensor, Tensor]:
        """About `size` quasi-random draws (k, n, d) with log-weights (k,), found once and kept.

        Either half of them, [: k / 2] or [k / 2 :], stands for the law too, at twice the weights.
        """
        if size not in self._drawn:
            self._drawn[size] = self._paths(size)
        return self._drawn[size]

    @cached_property
    def _drawn(self) -> dict[int, tuple[Tensor, Tensor]]:
        return {}

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        """What `paths` keeps."""
        raise self._refusal("quasi-random draws")

    def _refusal(self, question: str) -> NotAvailableError:
        return NotAvailableError(
            f"{question} must come from one chain of conditional laws; got a {type(self).__name__} that has none. "
            "Ask for logpdf or sample, or fit with order='given'."
        )


class Triangular(Distribution):
    """A law given by its chain of conditional factors.

    `order` lists the outputs as the chain meets them; results keep the outputs in the user's places.
    """

    order: tuple[int, ...]

    @abstractmethod
    def first(self) -> Factor:
        """Law of the chain's first output given x alone."""

    def readings(self, y: Tensor) -> list[Reading]:
        """Every output's reading along the chain at y (..., n, d)."""
        factor, found = self.first(), {}
        for i in self.order:
            found[i] = factor.read(y[..., i])
            factor = factor.then(y[..., i]) if i != self.order[-1] else factor
        return [found[i] for i in range(self.n_outputs)]

    def log_prob(self, y: Tensor) -> Tensor:
        return torch.stack([reading.log_density for reading in self.readings(y)]).sum(0)

    def log_prob_grid(self, axes: Sequence[Tensor]) -> Tensor:
        """Walks the chain over the axes: a factor is computed once for each node of the axes before its own."""
        last_first = _log_prob_from(self.first(), [axes[i] for i in self.order], torch.Size([self.n_rows]))
        return last_first.permute(*(self.n_outputs - 1 - self.order.index(i) for i in range(self.n_outputs)), -1)

    def logits(self, y: Tensor) -> Tensor:
        return torch.stack([reading.logit for reading in self.readings(y)], -1)

    def inverse(self, logits: Tensor) -> Tensor:
        factor, found = self.first(), {}
        for i in self.order:
            found[i] = factor.icdf(logits[..., i])
            factor = factor.then(found[i]) if i != self.order[-1] else factor
        return torch.stack([found[i] for i in range(self.n_outputs)], -1)

    def log_box(self, low: Tensor, high: Tensor, points: Tensor) -> Tensor:
        """Walks the chain within the box: each output takes its share of the conditional probability of its interval.

        After Genz, "Numerical computation of multivariate normal probabilities" (1992).
        """
        factor, laws = self.first(), low.shape[:-1]
        total = low.new_zeros(len(points), *laws)
        for place, i in enumerate(self.order):
            below, above = (_logit_at(factor, end[..., i].expand(laws)) for end in (low, high))
            log_mass = log_logistic_difference(above, below)
            total, laws = total + log_mass, total.shape
            if place < len(self.order) - 1:
                share = points[:, place].logit().view(-1, *[1] * (low.ndim - 1))
                log_cdf = torch.logaddexp(logsigmoid(below), logsigmoid(share) + log_mass)
                log_sf = torch.logaddexp(logsigmoid(-above), logsigmoid(-share) + log_mass)
                logit = torch.where(total.isneginf(), 0.0, log_cdf - log_sf)  # in an empty box, any point will do
                factor = factor.then(factor.icdf(logit))
        return total

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        return self.inverse(random_logits((size, self.n_rows, self.n_outputs), generator))

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        logits = sobol_points(size, self.n_outputs).logit()
        even = torch.full((size,), -math.log(size), dtype=logits.dtype)
        return self.inverse(logits[:, None].expand(-1, self.n_rows, -1)), even

    def marginal(self, output: int, n_paths: int) -> Law:
        before = self.order.index(output)
        return AveragedLaw(partial(self._along_paths, before, n_paths), n_paths) if before else self.first()

    def _along_paths(self, length: int, n_paths: int) -> Factor:
        """The factor after the first `length` outputs, along quasi-random paths of these."""
        factor, logits = self.first(), sobol_points(n_paths, length).logit()
        for i in range(length):
            factor = factor.then(factor.icdf(logits[:, None, i].expand(-1, self.n_rows)))
        return factor


class AveragedLaw(Law):
    """A law whose last leading axis, of `n_paths`, is averaged over; it is found when first read."""

    def __init__(self, find: Callable[[], Law], n_paths: int) -> None:
        self.find, self.n_paths = find, n_paths

    @cached_property
    def law(self) -> Law:
        """The law to be averaged."""
        return self.find()

    def _spread(self, values: Tensor) -> Tensor:
        return values[..., None, :].expand(*values.shape[:-1], self.n_paths, values.shape[-1])

    def read(self, y: Tensor) -> Reading:
        logit, log_density = self.law.read(self._spread(y))
        even = torch.full((), -math.log(self.n_paths), dtype=logit.dtype)
        return Reading(logit_of_mixture(even, logit, -2), torch.logsumexp(even + log_density, -2))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        low, high = self.law.bracket(self._spread(logit))
        return low.amin(-2), high.amax(-2)


class Marginal(Distribution):
    """The distribution of one output of another distribution."""

    n_outputs = 1

    def __init__(self, joint: Distribution, output: int, n_paths: int) -> None:
        self.joint, self.output, self.n_paths = joint, output, n_paths
        self.n_rows = joint.n_rows

    @cached_property
    def law(self) -> Law:
        """The one-dimensional law, found when first asked for."""
        return self.joint.marginal(self.output, self.n_paths)

    def rows(self, index: slice) -> Distribution:
        return Marginal(self.joint.rows(index), self.output, self.n_paths)

    def marginal(self, output: int, n_paths: int) -> Law:
        return self.law

    def log_prob(self, y: Tensor) -> Tensor:
        return self.law.read(y[..., 0]).log_density

    def logits(self, y: Tensor) -> Tensor:
        return self.law.read(y[..., 0]).logit[..., None]

    def inverse(self, logits: Tensor) -> Tensor:
        return self.law.icdf(logits[..., 0])[..., None]

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        return self.joint.sample(size, generator)[..., self.output : self.output + 1]

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        draws, log_weights = self.joint.paths(size)
        return draws[..., self.output : self.output + 1], log_weights


def random_logits(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Logits of uniform draws, float64, finite."""
    return torch.rand(shape, generator=generator, dtype=torch.float64).logit(eps=2.0**-54)


def _logit_at(factor: Factor, y: Tensor) -> Tensor:
    """Logit of a factor's CDF at y (..., n), for which the ends of the floats stand for infinity."""
    endless = y.abs() >= torch.finfo(y.dtype).max
    return torch.where(endless, y * math.inf, factor.read(torch.where(endless, 0.0, y)).logit)


def _log_prob_from(factor: Factor, axes: Sequence[Tensor], before: torch.Size) -> Tensor:
    """Log-density (kd, ..., ki, *before) of the outputs from the factor's own on, over their axes in chain order.

    `before` are the nodes and rows that the factor knows; an axis is cut where it would lead to too many of them.
    """
    axis, *rest = axes
    own = factor.on_axis(axis, before)
    if not rest:
        return own
    size = max(1, NODES_AT_ONCE // max(1, before.numel()))
    found = []
    for nodes, density in zip(axis.split(size), own.split(size), strict=True):
        y = _spread(nodes, before)
        found.append(density + _log_prob_from(factor.then(y), rest, y.shape))
    return torch.cat(found, -1 - len(before))


def _spread(nodes: Tensor, before: torch.Size) -> Tensor:
    """Every node (k,) at every place `before`, (k, *before)."""
    return nodes.view(-1, *[1] * len(before)).expand(-1, *before)
