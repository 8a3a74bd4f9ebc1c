"""From a table of numbers to a trained ensemble: scaling, held-back rows, training, pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .arrays import Array
from .devices import device_of, move_network
from .nn.architecture import Architecture
from .nn.cdf import CDFNetwork
from .plan import Plan
from .pooling import pool_members
from .training import EpochReport, History, Rows, train

__all__ = ["Ensemble", "TrainingTable", "fit_ensemble", "fresh_network", "held_back_parts"]

Report = Callable[[EpochReport], None]


@dataclass(frozen=True)
class TrainingTable:
    """Features (n, p), targets (n, d) and weights (n,); the last `held_back` rows only decide when to stop."""

    features: Array
    targets: Array
    weights: Array
    held_back: int = 0

    @property
    def n_taught(self) -> int:
        """Rows to learn from."""
        return len(self.features) - self.held_back


@dataclass(frozen=True)
class Ensemble:
    """A trained network, the design that builds it and the history of its members."""

    design: Architecture
    network: CDFNetwork
    history: History


def fit_ensemble(plan: Plan, table: TrainingTable, generator: torch.Generator, report: Report, device: str) -> Ensemble:
    """Build the network of a plan, train it on `device` and weigh its members; it ends on the CPU."""
    place = device_of(device)
    network = fresh_network(plan.design, table, generator)
    learn, hold = held_back_parts(table, plan.recipe.validation_fraction, plan.regimes, generator)
    there = torch.Generator(place).manual_seed(int(torch.randint(2**62, (), generator=generator)))
    move_network(network, place)
    history = train(
        network, _rows(network, table, place), (learn.to(place), hold.to(place)), plan.recipe, there, report
    )
    move_network(network, torch.device("cpu"))
    rows = _rows(network, table, torch.device("cpu"))
    pool_members(network, rows, hold, plan.regimes)
    return Ensemble(plan.design, network, history)


def fresh_network(design: Architecture, table: TrainingTable, generator: torch.Generator) -> CDFNetwork:
    """The network that `design` describes, with the parts that no gradient learns fitted to the rows to learn from."""
    network = design.build(generator)
    features, targets = (torch.tensor(part[: table.n_taught]) for part in (table.features, table.targets))
    network.scale_x.fit(features)
    network.conditioner.fit(network.scale_x(features))
    if bool(network.support.isfinite().all()):
        network.scale_y.fit_range(*network.support)
    else:
        network.scale_y.fit(targets)
    return network


def held_back_parts(
    table: TrainingTable, fraction: float, regimes: Sequence[int], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Rows each member learns from (m, n - h), and rows it holds back (m, h).

    Held back are the last ones if the table says so. Else the rows are shuffled, and the first members of all regimes
    hold back the first share of them, the second members the second, and round again: so regimes can be compared on
    the same rows, and all rows teach.
    """
    n, m = len(table.features), len(regimes)
    if table.held_back:
        learn, hold = torch.arange(n).split([table.n_taught, table.held_back])
        return learn.expand(m, -1), hold.expand(m, -1)
    size = min(n - 1, max(1, round(n * fraction)))
    shuffled = torch.randperm(n, generator=generator)
    n_shares = n // size
    shares = [list(regimes[:k]).count(regime) % n_shares for k, regime in enumerate(regimes)]
    turned = torch.stack([shuffled.roll(-share * size) for share in shares])
    return turned[:, size:], turned[:, :size]


def _rows(network: CDFNetwork, table: TrainingTable, place: torch.device) -> Rows:
    features, targets = network.scale_x(torch.tensor(table.features)), network.scale_y(torch.tensor(table.targets))
    return Rows(*(part.to(network.dtype).to(place) for part in (features, targets, torch.tensor(table.weights))))
