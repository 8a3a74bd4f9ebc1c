"""The description of a network as plain values, and the one place that builds a network from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from ..errors import DataError
from .cdf import CDFNetwork
from .conditioner import ChainConditioner, TrunkConditioner
from .links import BoundaryLink, CentralDifference, Link, LogisticLink, TruncatedLink
from .monotone import HardMinMaxLayer, LinearLayer, Lines, MonotoneStack, RisingNorm, SoftMinMaxLayer, SquashLayer
from .scaling import FeatureScaling, OutputScaling

__all__ = ["Architecture"]

LAYERS: dict[str, type[Lines]] = {"soft": SoftMinMaxLayer, "hard": HardMinMaxLayer, "squash": SquashLayer}


@dataclass(frozen=True)
class Architecture:
    """Everything that shapes a network but its numbers; survives a trip through JSON.

    Parameters
    ----------
    order : for each member, the outputs as its chain meets them.
    support : (low, high) of each output, None where open.
    layers : features out of each monotone layer; the last is 1.
    units, groups : lines of each layer; of a layer with several features, the groups are shared out among them.
    hidden : widths of the trunk; None for the paper's chain of conditions, whose widths are then `conditions`.
    kind : "soft", "hard" or "squash".
    delta : step of the central difference, None for the exact density.
    ramps : number of ramps laid over each feature, for the members that `ramped` names; for all, if it names none.
    """

    n_features: int
    order: tuple[tuple[int, ...], ...]
    support: tuple[tuple[float | None, float | None], ...]
    layers: tuple[int, ...] = (1,)
    units: int = 8
    groups: int = 8
    hidden: tuple[int, ...] | None = (128, 128)
    conditions: tuple[int, ...] = ()
    kind: str = "soft"
    norm: bool = False
    delta: float | None = None
    ramps: int = 0
    ramped: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in LAYERS:
            raise DataError(f"architecture must have a kind of {[*LAYERS]}; got {self.kind!r}. Use 'soft'.")
        if not self.layers or min(*self.layers, self.units, self.groups) < 1:
            sizes = (self.layers, self.units, self.groups)
            raise DataError(f"architecture must have layers, units, groups of at least 1; got {sizes}. Use (1,), 8, 8.")
        several = len(set(self.order)) > 1
        period = len(self.order[0])
        if several and any(chain != self.order[k % period] for k, chain in enumerate(self.order)):
            raise DataError(
                f"order must go round the members, member k as member k mod {period}; got {self.order}. Use 'cycle'."
            )

    def as_dict(self) -> dict[str, object]:
        """Plain values for a JSON header."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Architecture:
        """The inverse of `as_dict`, also after a trip through JSON, which knows no tuples."""
        return cls(**{name: _as_tuples(value) for name, value in values.items()})

    def build(self, generator: torch.Generator, dtype: torch.dtype = torch.float32) -> CDFNetwork:
        """A network with fresh parameters drawn from `generator`."""
        factors = (len(self.order), len(self.order[0]))
        support = torch.tensor(
            [[-torch.inf if low is None else low for low, _ in self.support],
             [torch.inf if high is None else high for _, high in self.support]], dtype=torch.float64
        )  # fmt: skip
        conditioner = (
            ChainConditioner(factors, self.n_features, self.conditions, generator)
            if self.hidden is None
            else TrunkConditioner(
                factors, self.n_features, self.hidden, len(self.layers), generator, self.ramps, self.ramped
            )
        )
        network = CDFNetwork(
            FeatureScaling(self.n_features),
            OutputScaling(factors[1]),
            conditioner,
            self._stack(factors, conditioner.widths, generator),
            self._link(support),
            torch.tensor(self.order),
            support,
        )
        for parameter in network.parameters():
            parameter.data = parameter.data.to(dtype)
        return network

    def _stack(self, factors: tuple[int, int], conditions: Sequence[int], generator: torch.Generator) -> MonotoneStack:
        layers: list[Lines] = []
        n_in = 1
        for n_out, n_conditions in zip(self.layers, conditions, strict=True):
            last = len(layers) == len(self.layers) - 1
            if self.kind == "squash":
                kind = LinearLayer if last else SquashLayer
                layers.append(kind(factors, n_in, n_out, 1, 1, n_conditions, generator))
            else:
                groups = max(1, self.groups // n_out)
                layers.append(LAYERS[self.kind](factors, n_in, n_out, self.units, groups, n_conditions, generator))
            n_in = n_out
        norms = [RisingNorm(factors, n_out) for n_out in self.layers] if self.norm else []
        return MonotoneStack(factors, layers, norms)

    def _link(self, support: torch.Tensor) -> Link:
        link: Link
        if bool(support.isinf().all()):
            link = LogisticLink()
        elif bool(support.isfinite().all()):
            link = BoundaryLink()
        else:
            link = TruncatedLink()
        return link if self.delta is None else CentralDifference(link, self.delta)


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(part) for part in value) if isinstance(value, list | tuple) else value
