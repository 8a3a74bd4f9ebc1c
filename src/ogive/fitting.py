"""From a table of numbers to a trained network: scaling, held-back rows, training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from .arrays import Array
from .devices import device_of, move_network
from .nn.architecture import Architecture
from .nn.cdf import CDFNetwork
from .training import EpochReport, History, Recipe, Rows, train

__all__ = ["TrainingTable", "fit_network", "member_log_weights"]

WEIGHING_STEPS = 10
ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class TrainingTable:
    """Features (n, p), targets (n, d) and weights (n,); the last `held_back` rows only decide when to stop."""

    features: Array
    targets: Array
    weights: Array
    held_back: int = 0


def fit_network(
    design: Architecture,
    table: TrainingTable,
    recipe: Recipe,
    generator: torch.Generator,
    report: Callable[[EpochReport], None],
    device: str = "cpu",
) -> tuple[CDFNetwork, History]:
    """Build the network that `design` describes, fit its scaling to the table and train it; it ends on the CPU."""
    place = device_of(device)
    network = design.build(generator)
    features, targets, weights = (torch.tensor(part) for part in (table.features, table.targets, table.weights))
    n_learn = len(features) - table.held_back
    network.scale_x.fit(features[:n_learn])
    if bool(network.support.isfinite().all()):
        network.scale_y.fit_range(*network.support)
    else:
        network.scale_y.fit(targets[:n_learn])
    scaled = (network.scale_x(features), network.scale_y(targets), weights)
    rows = Rows(*(part.to(network.dtype).to(place) for part in scaled))
    parts = _parts(len(features), table.held_back, recipe.validation_fraction, generator)
    learn, hold = (part.expand(network.n_members, -1).to(place) for part in parts)
    there = torch.Generator(place).manual_seed(int(torch.randint(2**62, (), generator=generator)))
    move_network(network, place)
    history = train(network, rows, (learn, hold), recipe, there, report)
    if place.type != "cpu":
        move_network(network, torch.device("cpu"))
        rows = Rows(rows.features.cpu(), rows.outputs.cpu(), rows.weights.cpu())
    network.log_weights.copy_(member_log_weights(network, rows, parts[1]))
    return network, history


@torch.no_grad()
def member_log_weights(network: CDFNetwork, rows: Rows, held_back: Tensor) -> Tensor:
    """Log-weights (m,) of the mixture that makes the rows held back likely, shrunk towards equal weights.

    A few steps of expectation-maximisation from equal weights: w_m becomes the mean share of member m in the
    mixture's density. Stopping early is the shrinkage; few rows allow few steps.
    """
    pieces = []
    for part in held_back.split(ROWS_AT_ONCE):
        features, outputs, _ = rows.batch(part[None])
        pieces.append(network.readings(features, network.chain(outputs)).log_density.sum(1))
    log_density, weight = torch.cat(pieces, 1).double(), rows.weights[held_back].double()
    log_weights = network.log_weights.clone()
    for _ in range(min(WEIGHING_STEPS, len(held_back) // 3)):
        log_share = (log_weights[:, None] + log_density).log_softmax(0)
        log_weights = ((log_share.exp() * weight).sum(1) / weight.sum()).log()
    return log_weights


def _parts(n: int, held_back: int, fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows to learn from, and rows held back: the last ones if given, else a random share."""
    if held_back:
        return torch.arange(n - held_back), torch.arange(n - held_back, n)
    size = min(n - 1, max(1, round(n * fraction)))
    hold, learn = torch.randperm(n, generator=generator).split([size, n - size])
    return learn, hold
