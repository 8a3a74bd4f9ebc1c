"""Masked autoregressive and neural spline flows, built by zuko, alone and as an ensemble."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ..arrays import Array
from ..distribution import Distribution, Factor, Law, Reading, Triangular
from ..errors import DataError, NotAvailableError
from ..mixture import Mixture
from ..numerics import logit_of_mixture
from .autoregression import Inverse
from .fitting import BaselineNetwork, LawAt, NeuralBaseline
from .radial import Bijection, DrawnLaw, FlowChain, FlowLaw, no_chain

__all__ = ["MAF", "NSF", "NSFEnsemble"]


def _flows() -> ModuleType:
    """zuko's flows. Its import switches off the checks of torch's distributions for everyone: we switch them back."""
    checked = torch.distributions.Distribution._validate_args
    try:
        import zuko.flows
    except ImportError as error:
        raise ImportError(
            "zuko must be installed for MAF and NSF; got none. Install it: pip install 'ogive[bench]'.", name="zuko"
        ) from error
    torch.distributions.Distribution.set_default_validate_args(checked)
    flows: ModuleType = zuko.flows
    return flows


class AutoregressiveBijection(Bijection):
    """Several autoregressive maps on end, at scaled features (n, p), and their inverses."""

    def __init__(self, network: AutoregressiveNetwork, features: Tensor, inverses: Sequence[Inverse]) -> None:
        self.network, self.features, self.inverses = network, features, inverses
        self.center, self.scale = network.scale_y.center, network.scale_y.scale
        self.n_rows, self.n_outputs = len(features), len(self.center)

    def rows(self, index: slice) -> Bijection:
        return AutoregressiveBijection(self.network, self.features[index], self.inverses)

    def normalise(self, y: Tensor) -> tuple[Tensor, Tensor]:
        z, log_slopes = self.network.normalise(self.features, (y - self.center) / self.scale)
        return z, log_slopes - self.scale.log()

    def restore(self, z: Tensor) -> Tensor:
        for inverse in reversed(self.inverses):
            z = inverse(self.features, z)
        return self.center + self.scale * z


class AutoregressiveNetwork(BaselineNetwork):
    """zuko's maps with the scaling before them."""

    def __init__(self, n_features: int, n_outputs: int, maps: Sequence[nn.Module], mixed: bool) -> None:
        super().__init__(n_features, n_outputs)
        self.maps: Any = nn.ModuleList(maps)
        self.mixed = mixed

    def normalise(self, features: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """z and log-slopes of every output (..., n, d) in scaled units: zuko's own sum over outputs is undone."""
        total = torch.zeros_like(z)
        for lazy in self.maps:
            found = lazy(features)
            each = found.meta(z) if hasattr(found, "meta") else found
            z, log_slopes = each.base.call_and_ladj(z)
            total = total + log_slopes
        return z, total

    def loss(self, features: Tensor, outputs: Tensor, generator: torch.Generator | None) -> Tensor:
        z, log_slopes = self.normalise(features, outputs)
        return (0.5 * z.square() + 0.5 * math.log(2.0 * math.pi) - log_slopes).sum(-1)

    def law(self, features: Tensor) -> Distribution:
        bijection = AutoregressiveBijection(self, features, [Inverse(lazy) for lazy in self.maps])
        return FlowLaw(bijection) if self.mixed else FlowChain(bijection)


class AutoregressiveFlow(NeuralBaseline, ABC):
    """What MAF and NSF share."""

    def __init__(
        self,
        *,
        transforms: int = 5,
        order: str = "alternate",
        hidden: tuple[int, ...] = (128, 128),
        learning_rate: float = 1e-3,
        max_epochs: int = 2000,
        patience: int = 30,
        random_state: Any = None,
    ) -> None:
        super().__init__(hidden, learning_rate, max_epochs, patience, random_state)
        self.transforms, self.order = transforms, order

    @abstractmethod
    def _flow(self) -> Callable[..., Any]:
        """zuko's class of the flow."""

    def _network(self, features: Array, targets: Array) -> BaselineNetwork:
        self._must_be_positive("transforms")
        if self.order not in ("alternate", "given"):
            raise DataError(f"order must be 'alternate' or 'given'; got {self.order!r}. Use 'given' for exact CDFs.")
        p, d = features.shape[1], targets.shape[1]
        settings = {"features": d, "context": p, "hidden_features": tuple(self.hidden)}
        if self.order == "alternate":
            maps = list(self._flow()(transforms=self.transforms, **settings).transform.transforms)
        else:  # zuko turns the order round from one map to the next, so each is made by itself
            singles = [self._flow()(transforms=1, **settings) for _ in range(self.transforms)]
            maps = [flow.transform.transforms[0] for flow in singles]
        return AutoregressiveNetwork(p, d, maps, mixed=d > 1 and self.transforms > 1 and self.order == "alternate")


class MAF(AutoregressiveFlow):
    r"""Masked autoregressive flow: maps :math:`z_i = e^{a_i} y_i + b_i` with a, b given by x and the outputs before.

    Parameters
    ----------
    transforms : int
        Autoregressive maps.
    order : "alternate" or "given"
        "alternate" turns the order of the outputs round from map to map, as is usual. For several outputs that
        leaves no chain of conditional CDFs, so `pit` and `cdf` are refused; "given" keeps them exact.
    hidden : tuple of int
        Widths of each map's network.
    learning_rate, max_epochs, patience, random_state
        Of the training that all neural baselines share.

    References
    ----------
    Papamakarios et al., "Masked autoregressive flow for density estimation", 2017.
    """

    def _flow(self) -> Callable[..., Any]:
        return _flows().MAF  # type: ignore[no-any-return]


class NSF(AutoregressiveFlow):
    r"""Neural spline flow: each :math:`z_i` is a rising rational-quadratic spline of :math:`y_i` with 8 pieces.

    The spline's knots are given by x and the outputs before; beyond five standard deviations it is the identity.

    Parameters
    ----------
    transforms : int
        Autoregressive maps.
    order : "alternate" or "given"
        "alternate" turns the order of the outputs round from map to map, as is usual. For several outputs that
        leaves no chain of conditional CDFs, so `pit` and `cdf` are refused; "given" keeps them exact.
    hidden : tuple of int
        Widths of each map's network.
    learning_rate, max_epochs, patience, random_state
        Of the training that all neural baselines share.

    References
    ----------
    Durkan et al., "Neural spline flows", 2019.
    """

    def _flow(self) -> Callable[..., Any]:
        return _flows().NSF  # type: ignore[no-any-return]


class NSFEnsemble(NSF):
    r"""Equal-weight mixture of neural spline flows, each with its own first weights and validation part.

    Parameters
    ----------
    n_members : int
        Flows in the mixture.
    transforms, order, hidden, learning_rate, max_epochs, patience, random_state
        As for `NSF`.

    References
    ----------
    Lakshminarayanan et al., "Simple and scalable predictive uncertainty estimation using deep ensembles", 2017.
    """

    def __init__(
        self,
        *,
        n_members: int = 5,
        transforms: int = 3,
        order: str = "alternate",
        hidden: tuple[int, ...] = (128, 128),
        learning_rate: float = 1e-3,
        max_epochs: int = 2000,
        patience: int = 30,
        random_state: Any = None,
    ) -> None:
        NeuralBaseline.__init__(self, hidden, learning_rate, max_epochs, patience, random_state)
        self.n_members, self.transforms, self.order = n_members, transforms, order

    def _learn(self, features: Array, targets: Array, generator: torch.Generator) -> LawAt:
        self._must_be_positive("n_members", "max_epochs", "patience")
        members = [self._trained(features, targets, generator) for _ in range(self.n_members)]
        self.history_ = {name: [history[name] for _, history in members] for name in ("train", "validation")}
        return NetworkEnsemble([network for network, _ in members])


class NetworkEnsemble(nn.Module):
    """Several networks; the forward pass gives the mixture of their laws."""

    def __init__(self, networks: Sequence[nn.Module]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Distribution:
        return equal_mixture([network(x) for network in self.networks])


def equal_mixture(laws: Sequence[Distribution]) -> Distribution:
    """The mixture with equal weights: a chain where every law is one, in the same order."""
    log_weights = torch.full((len(laws),), -math.log(len(laws)), dtype=torch.float64)
    chains = [law for law in laws if isinstance(law, Triangular)]
    if len(chains) == len(laws):
        return ChainMixture(chains, log_weights)
    return DrawnMixture(laws, log_weights)


class DrawnMixture(Mixture):
    """A mixture of flows whose outputs are mixed; only draws answer for one output."""

    def marginal(self, output: int, n_paths: int) -> Law:
        return DrawnLaw(self, output, 2 * n_paths)

    def rows(self, index: slice) -> Distribution:
        return DrawnMixture([part.rows(index) for part in self.parts], self.log_weights)

    def _refusal(self, question: str) -> NotAvailableError:
        return no_chain(question)


class ChainMixture(Triangular):
    """A mixture of chains over the same order: factor i weighs them by their densities of the outputs before."""

    def __init__(self, parts: Sequence[Triangular], log_weights: Tensor) -> None:
        self.parts, self.log_weights = parts, log_weights
        self.n_rows, self.n_outputs, self.order = parts[0].n_rows, parts[0].n_outputs, parts[0].order

    def rows(self, index: slice) -> Distribution:
        return equal_mixture([part.rows(index) for part in self.parts])

    def first(self) -> Factor:
        weights = self.log_weights[:, None].expand(-1, self.n_rows)
        return ChainMixtureFactor([part.first() for part in self.parts], weights)

    def log_prob(self, y: Tensor) -> Tensor:
        return Mixture(self.parts, self.log_weights).log_prob(y)

    def sample(self, size: int, generator: torch.Generator) -> Tensor:
        return Mixture(self.parts, self.log_weights).sample(size, generator)

    def _paths(self, size: int) -> tuple[Tensor, Tensor]:
        return Mixture(self.parts, self.log_weights).paths(size)


class ChainMixtureFactor(Factor):
    """One link of each chain, and the log-weights (m, ..., n) of the chains given the outputs before."""

    def __init__(self, factors: Sequence[Factor], log_weights: Tensor) -> None:
        self.factors, self.log_weights = factors, log_weights

    def _each(self, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-weights, logits and log-densities of the chains, (m, ..., n)."""
        weights = self.log_weights
        weights = weights.view(len(weights), *[1] * (y.ndim + 1 - weights.ndim), *weights.shape[1:])
        logits, log_densities = zip(*(factor.read(y) for factor in self.factors), strict=True)
        return weights, torch.stack(logits), torch.stack(log_densities)

    def read(self, y: Tensor) -> Reading:
        weights, logits, log_densities = self._each(y)
        return Reading(logit_of_mixture(weights, logits), torch.logsumexp(weights + log_densities, 0))

    def bracket(self, logit: Tensor) -> tuple[Tensor, Tensor]:
        points = torch.stack([factor.icdf(logit) for factor in self.factors])
        return points.amin(0), points.amax(0)

    def then(self, y: Tensor) -> Factor:
        weights, _, log_densities = self._each(y)
        return ChainMixtureFactor([factor.then(y) for factor in self.factors], (weights + log_densities).log_softmax(0))
