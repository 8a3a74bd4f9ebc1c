"""From a table of numbers to a trained ensemble: scaling, held-back rows, regularisation, training, weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .arrays import Array
from .devices import device_of, move_network
from .nn.architecture import Architecture
from .nn.cdf import CDFNetwork
from .training import EpochReport, History, Recipe, Rows, train

__all__ = ["Ensemble", "TrainingTable", "fit_ensemble", "fit_members", "member_log_weights"]

WEIGHING_STEPS = 10
ROWS_AT_ONCE = 1024
# What the pilot members try: dropout rate, and whether with the paper's learnt noise.
REGIMES = ((0.0, False), (0.0, True), (0.1, False), (0.2, False), (0.3, False))

Report = Callable[[EpochReport], None]


@dataclass(frozen=True)
class TrainingTable:
    """Features (n, p), targets (n, d) and weights (n,); the last `held_back` rows only decide when to stop."""

    features: Array
    targets: Array
    weights: Array
    held_back: int = 0


@dataclass(frozen=True)
class Ensemble:
    """A trained network, the design that builds it and the history of its members."""

    design: Architecture
    network: CDFNetwork
    history: History


def fit_ensemble(
    design: Architecture, table: TrainingTable, recipe: Recipe, generator: torch.Generator, report: Report, device: str
) -> Ensemble:
    """Train the members that `design` lists, after pilots that find how much regularisation this table wants.

    Where the recipe leaves dropout and noise open, one pilot member is trained under each regime; the members then
    share out the regimes as the pilots' weights on held-back rows say, and of pilots and members together the
    heaviest are kept, as many as `design` lists.
    """
    parts = _parts(table, recipe.validation_fraction, generator)
    if recipe.dropout is not None:
        return fit_members(design, table, parts, recipe, generator, report, device)
    size = len(design.order)
    trial = replace(design, order=design.order[:1] * len(REGIMES))
    under = _under(recipe, REGIMES)
    halfway = recipe.max_epochs
    pilots = fit_members(
        trial, table, parts, under, generator, lambda r: report(replace(r, max_epochs=2 * halfway)), device
    )
    if pilots.history.interrupted:
        return pilots
    regimes = _share_out(pilots.network.log_weights.exp(), size)
    under = _under(recipe, tuple(REGIMES[k] for k in regimes))
    members = fit_members(
        design,
        table,
        parts,
        under,
        generator,
        lambda r: report(replace(r, epoch=halfway + r.epoch, max_epochs=2 * halfway)),
        device,
    )
    return _heaviest(pilots, members, size, lambda network: _weigh(network, table, parts[1]))


def fit_members(
    design: Architecture,
    table: TrainingTable,
    parts: tuple[Tensor, Tensor],
    recipe: Recipe,
    generator: torch.Generator,
    report: Report,
    device: str,
) -> Ensemble:
    """Build the network that `design` describes, fit its scaling, train it on `device`; it ends on the CPU."""
    place = device_of(device)
    network = design.build(generator)
    learn = table.features[parts[0].numpy()], table.targets[parts[0].numpy()]
    network.scale_x.fit(torch.tensor(learn[0]))
    if bool(network.support.isfinite().all()):
        network.scale_y.fit_range(*network.support)
    else:
        network.scale_y.fit(torch.tensor(learn[1]))
    rows = _rows(network, table, place)
    own = tuple(part.expand(network.n_members, -1).to(place) for part in parts)
    there = torch.Generator(place).manual_seed(int(torch.randint(2**62, (), generator=generator)))
    move_network(network, place)
    history = train(network, rows, (own[0], own[1]), recipe, there, report)
    move_network(network, torch.device("cpu"))
    _weigh(network, table, parts[1])
    return Ensemble(design, network, history)


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
    log_weights = torch.full((network.n_members,), 1.0 / network.n_members, dtype=torch.float64).log()
    for _ in range(min(WEIGHING_STEPS, len(held_back) // 3)):
        log_share = (log_weights[:, None] + log_density).log_softmax(0)
        log_weights = ((log_share.exp() * weight).sum(1) / weight.sum()).log()
    return log_weights


def _weigh(network: CDFNetwork, table: TrainingTable, held_back: Tensor) -> None:
    rows = _rows(network, table, torch.device("cpu"))
    network.log_weights.copy_(member_log_weights(network, rows, held_back))


def _rows(network: CDFNetwork, table: TrainingTable, place: torch.device) -> Rows:
    features, targets = network.scale_x(torch.tensor(table.features)), network.scale_y(torch.tensor(table.targets))
    return Rows(*(part.to(network.dtype).to(place) for part in (features, targets, torch.tensor(table.weights))))


def _parts(table: TrainingTable, fraction: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows to learn from, and rows held back: the last ones if given, else a random share."""
    n = len(table.features)
    if table.held_back:
        return torch.arange(n - table.held_back), torch.arange(n - table.held_back, n)
    size = min(n - 1, max(1, round(n * fraction)))
    hold, learn = torch.randperm(n, generator=generator).split([size, n - size])
    return learn, hold


def _under(recipe: Recipe, regimes: tuple[tuple[float, bool], ...]) -> Recipe:
    return replace(recipe, dropout=tuple(rate for rate, _ in regimes), noise=tuple(noise for _, noise in regimes))


def _share_out(shares: Tensor, size: int) -> list[int]:
    """`size` regimes in proportion to their shares, by largest remainder."""
    exact = shares * size
    counts = exact.floor().long()
    for k in (exact - counts).argsort(descending=True)[: size - int(counts.sum())].tolist():
        counts[k] += 1
    return [k for k, count in enumerate(counts.tolist()) for _ in range(count)]


def _heaviest(pilots: Ensemble, members: Ensemble, size: int, weigh: Callable[[CDFNetwork], None]) -> Ensemble:
    """The `size` members of greatest weight among pilots and members together, weighed anew."""
    together = _assemble((pilots, members), torch.arange(len(pilots.design.order) + len(members.design.order)))
    weigh(together.network)
    kept = _assemble((together,), together.network.log_weights.topk(size).indices.sort().values)
    weigh(kept.network)
    return kept


def _assemble(parts: tuple[Ensemble, ...], keep: Tensor) -> Ensemble:
    """The members `keep` of several ensembles laid end to end."""
    orders = [order for part in parts for order in part.design.order]
    design = replace(parts[0].design, order=tuple(orders[k] for k in keep.tolist()))
    network = design.build(torch.Generator())
    states = [part.network.state_dict() for part in parts]
    of_members = {name for name, _ in network.named_parameters()} | {"log_weights"}
    for name, values in network.state_dict().items():
        if name in of_members:
            values.copy_(torch.cat([state[name] for state in states])[keep])
        elif name != "order":
            values.copy_(states[0][name])
    return Ensemble(design, network.eval(), History.joined([part.history for part in parts], keep.tolist()))
