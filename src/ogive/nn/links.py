"""From the rising value O of a network to a conditional CDF: three links, and a way to difference them.

A link meets the network as a function from scaled points (f, q, n) to jets, and the ends of the support as two
tensors that broadcast against them; noise on y has already moved the ends along, so their order survives.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ..distribution import Reading
from ..numerics import log_logistic_difference
from .jet import Jet

__all__ = ["BoundaryLink", "CentralDifference", "Ends", "Link", "LogisticLink", "Rising", "TruncatedLink"]

Rising = Callable[[Tensor], Jet]
Ends = tuple[Tensor, Tensor]


class Link(ABC):
    """A way to read a law on the support between two ends from a rising function."""

    bounded = True

    @abstractmethod
    def read(self, rising: Rising, point: Tensor, ends: Ends) -> Reading:
        """Logit of the CDF and log-density at `point`, in scaled units."""

    @abstractmethod
    def log_mass(self, rising: Rising, lower: Tensor, upper: Tensor, ends: Ends) -> Tensor:
        """log(F(upper) - F(lower)) for points lower < upper."""

    @abstractmethod
    def target(self, rising: Rising, logit: Tensor, ends: Ends) -> Tensor:
        """The value that O takes where the logit of the CDF is `logit`."""


class LogisticLink(Link):
    """F = s(O) on the whole line: logistic tails, no ends to evaluate."""

    bounded = False

    def read(self, rising: Rising, point: Tensor, ends: Ends) -> Reading:
        value, log_slope = rising(point)
        return Reading(value, logsigmoid(value) + logsigmoid(-value) + log_slope)

    def log_mass(self, rising: Rising, lower: Tensor, upper: Tensor, ends: Ends) -> Tensor:
        below, above = _values(rising, lower, upper)
        return log_logistic_difference(_apart(below, above), below)

    def target(self, rising: Rising, logit: Tensor, ends: Ends) -> Tensor:
        return logit


class TruncatedLink(Link):
    """F = (s(O) - s(O_low)) / (s(O_high) - s(O_low)): a half-line, or any mix of open and closed ends."""

    def read(self, rising: Rising, point: Tensor, ends: Ends) -> Reading:
        inside = torch.minimum(torch.maximum(point, ends[0]), ends[1])
        value, log_slope = rising(inside)
        low, high = self._ends(rising, value, ends)
        logit = log_logistic_difference(value, low) - log_logistic_difference(high, value)
        log_density = logsigmoid(value) + logsigmoid(-value) + log_slope - log_logistic_difference(high, low)
        return _silent_outside(Reading(logit, log_density), point, ends)

    def log_mass(self, rising: Rising, lower: Tensor, upper: Tensor, ends: Ends) -> Tensor:
        below, above = _values(rising, lower, upper)
        low, high = self._ends(rising, below, ends)
        return log_logistic_difference(_apart(below, above), below) - log_logistic_difference(high, low)

    def target(self, rising: Rising, logit: Tensor, ends: Ends) -> Tensor:
        low, high = self._ends(rising, logit, ends)
        return torch.logaddexp(logsigmoid(-logit) + logsigmoid(low), logsigmoid(logit) + logsigmoid(high)) - (
            torch.logaddexp(logsigmoid(-logit) + logsigmoid(-low), logsigmoid(logit) + logsigmoid(-high))
        )

    @staticmethod
    def _ends(rising: Rising, like: Tensor, ends: Ends) -> Ends:
        """O at the two ends, infinite where the support is open."""
        finite = [torch.where(end.isinf(), torch.zeros_like(end), end) for end in ends]
        values = _values(rising, *(end.expand(len(like), 1, like.shape[-1]).to(like.dtype) for end in finite))
        return torch.where(ends[0].isinf(), -math.inf, values[0]), torch.where(ends[1].isinf(), math.inf, values[1])


class BoundaryLink(Link):
    """F = (O - O_low) / (O_high - O_low) on a bounded support: the paper's boundary normalisation."""

    def read(self, rising: Rising, point: Tensor, ends: Ends) -> Reading:
        inside = torch.minimum(torch.maximum(point, ends[0]), ends[1])
        low, high = (end.expand(len(point), 1, point.shape[-1]) for end in ends)
        jet = rising(torch.cat([inside, low, high], 1))
        value, at_low, at_high = jet.value.split([point.shape[1], 1, 1], 1)
        logit = (value - at_low).clamp_min(0.0).log() - (at_high - value).clamp_min(0.0).log()
        log_density = jet.log_slope[:, : point.shape[1]] - (at_high - at_low).log()
        return _silent_outside(Reading(logit, log_density), point, ends)

    def log_mass(self, rising: Rising, lower: Tensor, upper: Tensor, ends: Ends) -> Tensor:
        low, high = (end.expand(len(lower), 1, lower.shape[-1]) for end in ends)
        below, above, at_low, at_high = _values(rising, lower, upper, low, high)
        return (_apart(below, above) - below).log() - (at_high - at_low).log()

    def target(self, rising: Rising, logit: Tensor, ends: Ends) -> Tensor:
        low, high = _values(rising, *(end.expand(len(logit), 1, logit.shape[-1]) for end in ends))
        return torch.sigmoid(-logit) * low + torch.sigmoid(logit) * high


class CentralDifference(Link):
    """A link whose density is (F(y + delta) - F(y - delta)) / (2 delta), as in the paper; delta in scaled units.

    A difference below the resolution of the floats that carry O is taken as that resolution.
    """

    def __init__(self, link: Link, delta: float) -> None:
        self.link, self.delta, self.bounded = link, delta, link.bounded

    def read(self, rising: Rising, point: Tensor, ends: Ends) -> Reading:
        exact = self.link.read(rising, point, ends)
        log_mass = self.link.log_mass(rising, point - self.delta, point + self.delta, ends)
        return _silent_outside(Reading(exact.logit, log_mass - math.log(2.0 * self.delta)), point, ends)

    def log_mass(self, rising: Rising, lower: Tensor, upper: Tensor, ends: Ends) -> Tensor:
        return self.link.log_mass(rising, lower, upper, ends)

    def target(self, rising: Rising, logit: Tensor, ends: Ends) -> Tensor:
        return self.link.target(rising, logit, ends)


def _values(rising: Rising, *points: Tensor) -> tuple[Tensor, ...]:
    """O at several sets of points in one pass."""
    sizes = [p.shape[1] for p in points]
    values: tuple[Tensor, ...] = rising(torch.cat(points, 1)).value.split(sizes, 1)
    return values


def _apart(below: Tensor, above: Tensor) -> Tensor:
    """`above`, at least one unit in the last place beyond `below`."""
    resolution = torch.finfo(below.dtype).eps * below.detach().abs().clamp_min(torch.finfo(below.dtype).tiny)
    return torch.maximum(above, below + resolution)


def _silent_outside(reading: Reading, point: Tensor, ends: Ends) -> Reading:
    """No density outside the ends, and a CDF of exactly zero or one from there on."""
    below, above = point < ends[0], point > ends[1]
    logit = torch.where(point <= ends[0], -math.inf, torch.where(point >= ends[1], math.inf, reading.logit))
    return Reading(logit, torch.where(below | above, -math.inf, reading.log_density))
