"""Deconvolutional density network: a histogram for each output, whose logits are refined from coarse to fine."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from ..arrays import Array
from ..choices import Support, support_of
from ..distribution import Distribution, Factor, Reading, Triangular
from ..errors import DataError, NotAvailableError
from ..mixture import Mixture
from .fitting import BaselineNetwork, NeuralBaseline, perceptron

__all__ = ["DDN"]

MARGIN = 0.05  # by which the training range is widened at each end, as a share of itself
COARSEST = 16
LEAST = -650.0


class Histogram(Factor):
    """Piecewise constant law of one output on equal bins, given the outputs before it in the chain.

    `log_mass` (..., n, b) are the bins' log-probabilities. The CDF is summed from both ends.
    """

    def __init__(self, law: HistogramChain, log_mass: Tensor, before: Tensor) -> None:
        self.law, self.log_mass, self.before = law, log_mass, before
        self.low, self.width = law.edges_of(before.shape[-1])
        below, above = _log_sums(log_mass), _log_sums(log_mass.flip(-1)).flip(-1)
        none = torch.full_like(below[..., :1], -torch.inf)
        self.log_below = torch.cat([none, below[..., :-1]], -1)
        self.log_above = torch.cat([above[..., 1:], none], -1)

    def _at(self, values: Tensor, place: Tensor) -> Tensor:
        return values.expand(*place.shape, -1).gather(-1, place[..., None])[..., 0]

    def read(self, y: Tensor) -> Reading:
        bins = self.log_mass.shape[-1]
        position = (y - self.low) / self.width
        place = position.clamp(0, bins - 1).long()
        share = (position - place).clamp(0.0, 1.0)
        mass = self._at(self.log_mass, place)
        log_cdf = torch.logaddexp(self._at(self.log_below, place), mass + share.log())
        log_sf = torch.logaddexp(self._at(self.log_above, place), mass + torch.log1p(-share))
        inside = (position >= 0) & (position <= bins)
        log_density = torch.where(inside, mass - self.width.log(), -torch.inf)
        return Reading(log_cdf - log_sf, log_density)

    def icdf(self, logit: Tensor, tolerance: float | None = None) -> Tensor:
        lower, upper = nn.functional.logsigmoid(logit), nn.functional.logsigmoid(-logit)
        ends = self.log_below - torch.logaddexp(self.log_mass, self.log_above)  # logits at the bins' lower edges
        levels = logit.reshape(-1, *ends.shape[:-1]).movedim(0, -1).contiguous()
        place = (torch.searchsorted(ends.contiguous(), levels, right=True) - 1).movedim(-1, 0).reshape(logit.shape)
        mass = self._at(self.log_mass, place)
        from_left = (lower - mass).exp() - (self._at(self.log_below, place) - mass).exp()
        from_right = (upper - mass).exp() - (self._at(self.log_above, place) - mass).exp()
        share = torch.where(logit < 0, from_left, 1.0 - from_right).clamp(0.0, 1.0)
        return self.low + (place + share) * self.width

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        point = self.icdf(logit)
        return point, point

    def then(self, y: Tensor) -> Factor:
        before = torch.cat([self.before.expand(*y.shape, -1), y[..., None]], -1)
        return Histogram(self.law, self.law.log_mass(before), before)


def _log_sums(log_mass: Tensor) -> Tensor:
    """Logs of the sums of the first 1, 2, ... masses; in logs only where the masses could be no floats."""
    if bool(log_mass.amin() < LEAST):
        return log_mass.logcumsumexp(-1)
    return log_mass.exp().cumsum(-1).log()


class HistogramChain(Triangular):
    """The chain of histograms of one order of the outputs, at scaled features (n, p)."""

    def __init__(self, network: DensityNetwork, chain: int, features: Tensor) -> None:
        self.network, self.chain, self.features = network, chain, features
        self.order = network.orders[chain]
        self.n_rows, self.n_outputs = len(features), len(self.order)

    def rows(self, index: slice) -> Distribution:
        return HistogramChain(self.network, self.chain, self.features[index])

    def edges_of(self, place: int) -> tuple[Tensor, Tensor]:
        """Lower end and width of the bins of an output, in the user's units."""
        output = self.order[place]
        low, high = self.network.support[:, output]
        return low, (high - low) / self.network.bins

    def log_mass(self, before: Tensor) -> Tensor:
        """Log-probabilities (..., n, bins) of the output after those `before` (..., n, i)."""
        scale_y, known = self.network.scale_y, list(self.order[: before.shape[-1]])
        scaled = (before - scale_y.center[known]) / scale_y.scale[known]
        features = self.features.expand(*scaled.shape[:-1], -1)
        logits, _ = self.network.refined(self.chain, torch.cat([features, scaled], -1).flatten(0, -2), None)
        return logits.log_softmax(-1).view(*scaled.shape[:-1], -1)

    def first(self) -> Factor:
        before = self.features[:, :0].double()
        return Histogram(self, self.log_mass(before), before)


class HistogramMixture(Mixture):
    """The average of chains of different orders, which is a chain of none."""

    def rows(self, index: slice) -> Distribution:
        return HistogramMixture([part.rows(index) for part in self.parts], self.log_weights)

    def _refusal(self, question: str) -> NotAvailableError:
        return NotAvailableError(
            f"{question} must come from outputs taken in one order; got a DDN that averages {len(self.parts)} orders. "
            "Ask for logpdf, sample, quantiles or scores, or fit with n_orders=1."
        )


class Deconvolution(nn.Module):
    """Transposed convolution of stride two and kernel six on a row (n, l, c): twice as many cells, half the channels.

    Each pair of new cells is linear in the old cell and its two neighbours: one matrix product for the parts of all
    three, which are then added up, is fast also in float64.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.taps = nn.Linear(3 * channels, channels)

    def forward(self, row: Tensor) -> Tensor:
        channels = row.shape[-1]
        left, own, right = (row @ self.taps.weight.view(channels, 3, channels).permute(2, 1, 0).flatten(1)).chunk(3, -1)
        pairs = own + self.taps.bias
        pairs[:, 1:] += left[:, :-1]
        pairs[:, :-1] += right[:, 1:]
        row_of_pairs: Tensor = pairs.unflatten(-1, (2, -1)).flatten(1, 2)
        return row_of_pairs


class Refiner(nn.Module):
    """Features -> noisy codes -> a coarse row of channels -> deconvolutions -> logits of the bins."""

    def __init__(self, n_in: int, hidden: tuple[int, ...], codes: int, channels: int, bins: int) -> None:
        super().__init__()
        doublings = int(math.log2(bins // COARSEST))
        self.encoder = perceptron(n_in, hidden, 2 * codes)
        self.spread = nn.Linear(codes, channels * 2**doublings * COARSEST)
        self.steps = nn.ModuleList(Deconvolution(channels * 2 ** (doublings - k)) for k in range(doublings))
        self.last = nn.Linear(channels, 1)

    def forward(self, inputs: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Logits (n, bins), and the codes' divergence from standard normals (n,); noise only with a generator."""
        code, log_scale = self.encoder(inputs).chunk(2, -1)
        divergence = 0.5 * (code.square() + (2.0 * log_scale).exp() - 1.0 - 2.0 * log_scale).sum(-1)
        if generator is not None:
            code = code + log_scale.exp() * torch.randn(code.shape, generator=generator)
        row = silu(self.spread(code)).unflatten(-1, (COARSEST, -1))
        for step in self.steps:
            row = silu(step(row))
        return self.last(row)[..., 0], divergence


class DensityNetwork(BaselineNetwork):
    """A refiner for each output in each chain."""

    support: Tensor

    def __init__(
        self, n_features: int, support: Tensor, orders: list[tuple[int, ...]], beta: float, bins: int, refiner: Any
    ) -> None:
        super().__init__(n_features, support.shape[1])
        self.orders, self.beta, self.bins = orders, beta, bins
        self.register_buffer("support", support)
        self.refiners = nn.ModuleList(
            nn.ModuleList(refiner(n_features + place) for place in range(len(order))) for order in orders
        )

    def refined(self, chain: int, inputs: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        """Logits and divergence of the output of a chain to which these inputs belong, by their width."""
        place = inputs.shape[-1] - len(self.scale_x.center)
        found: tuple[Tensor, Tensor] = self.refiners[chain][place](inputs, generator)  # type: ignore[index]
        return found

    def loss(self, features: Tensor, outputs: Tensor, generator: torch.Generator | None) -> Tensor:
        low, high = self.scale_y(self.support).to(outputs.dtype)
        place = ((outputs - low) / (high - low) * self.bins).long().clamp(0, self.bins - 1)
        width = (high - low).log() - math.log(self.bins)
        chains, penalty = [], outputs.new_zeros(len(outputs))
        for chain, order in enumerate(self.orders):
            total = -width.sum().expand(len(outputs))
            for i, output in enumerate(order):
                inputs = torch.cat([features, outputs[:, order[:i]]], -1)
                logits, divergence = self.refined(chain, inputs, generator)
                total = total + logits.log_softmax(-1).gather(-1, place[:, output, None])[:, 0]
                penalty = penalty + self.beta * divergence
            chains.append(total)
        log_densities = torch.stack(chains)
        if generator is None:  # the stop is decided by what is predicted, the average of the chains' densities
            return math.log(len(chains)) - torch.logsumexp(log_densities, 0)
        return penalty / len(chains) - log_densities.mean(0)

    def law(self, features: Tensor) -> Distribution:
        chains = [HistogramChain(self, chain, features) for chain in range(len(self.orders))]
        if len(chains) == 1:
            return chains[0]
        return HistogramMixture(chains, torch.full((len(chains),), -math.log(len(chains)), dtype=torch.float64))


class DDN(NeuralBaseline):
    r"""Deconvolutional density network: :math:`p(y_i \mid x, y_{<i})` is a histogram refined from coarse to fine.

    A trunk gives the means and scales of noisy codes; a coarse row made from a draw of the codes is doubled by
    deconvolutions until it holds a logit for each bin, so that neighbouring bins share strength. Training adds
    :math:`\beta` times the codes' Kullback-Leibler divergence from standard normals; predictions use their means.

    Parameters
    ----------
    bins : int
        Bins of each output: 16 times a power of two.
    codes : int
        Noisy codes.
    beta : float
        Weight of the divergence.
    n_orders : int
        Orders of the outputs: as given, and random others, as far as there are so many. The densities of more than
        one are averaged, which leaves no exact chain; 1 keeps it.
    support : "range" or one (low, high) pair per output
        Where y can lie; beyond, the density is zero. "range" is that of y in training, widened by 5 % at each end.
    channels, hidden
        Channels of the finest row, doubled at each step towards the coarsest; widths of the trunk.
    learning_rate, max_epochs, patience, random_state
        Of the training that all neural baselines share.

    Notes
    -----
    The published description fixes bins, codes, beta and the deconvolutions; sizes that it leaves open (channels,
    kernels, a coarse row of 16) are ours.

    DIFF: each order has networks of its own, where the authors' code masks the inputs of one network.

    References
    ----------
    Chen, Islam, Gao and Wang, "Deconvolutional density network: modeling free-form conditional distributions", 2022.
    """

    def __init__(
        self,
        *,
        bins: int = 256,
        codes: int = 16,
        beta: float = 0.02,
        n_orders: int = 5,
        support: Support = "range",
        channels: int = 2,
        hidden: tuple[int, ...] = (128, 128),
        learning_rate: float = 1e-3,
        max_epochs: int = 2000,
        patience: int = 30,
        random_state: Any = None,
    ) -> None:
        super().__init__(hidden, learning_rate, max_epochs, patience, random_state)
        self.bins, self.codes, self.beta, self.channels = bins, codes, beta, channels
        self.n_orders, self.support = n_orders, support

    def _network(self, features: Array, targets: Array) -> BaselineNetwork:
        self._must_be_positive("codes", "channels", "n_orders")
        if self.bins < COARSEST or math.log2(self.bins / COARSEST) % 1:
            raise DataError(f"bins must be {COARSEST} times a power of two; got {self.bins}. Use 256.")
        d = targets.shape[1]
        orders = [tuple(range(d))]
        while len(orders) < min(self.n_orders, math.factorial(d)):
            order = tuple(torch.randperm(d).tolist())
            orders += [order] * (order not in orders)

        def refiner(n_in: int) -> Refiner:
            return Refiner(n_in, tuple(self.hidden), self.codes, self.channels, self.bins)

        return DensityNetwork(features.shape[1], self._range(targets), orders, self.beta, self.bins, refiner)

    def _range(self, targets: Array) -> Tensor:
        """Ends of the outputs' supports (2, d)."""
        pairs = support_of(self.support, targets)
        if any(end is None for pair in pairs for end in pair):
            raise DataError(f"support must be finite at both ends; got {self.support!r}. Use 'range' or pairs.")
        ends = torch.tensor(pairs, dtype=torch.float64).T
        if not isinstance(self.support, str):
            return ends
        reach = MARGIN * (ends[1] - ends[0])
        reach = torch.where(reach > 0, reach, ends[0].abs().clamp(min=1.0))
        return torch.stack([ends[0] - reach, ends[1] + reach])
