"""The table of networks that are put to the laws, and the small tools the laws share."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ogive.distribution import Distribution, Law, Triangular
from ogive.estimator import OgiveRegressor
from ogive.fitted import Fitted
from ogive.nn.architecture import Architecture
from ogive.nn.cdf import CDFNetwork
from ogive.training import Recipe, Rows, train

N_FEATURES = 3
EPS = float(np.finfo(np.float64).eps)
CENTER, SPREAD = (5.0, -0.25, 300.0), (3.0, 0.02, 40.0)  # of the outputs, in the user's units
OPEN = (None, None)
TRUNK = {"hidden": (8,), "units": 3, "groups": 4}
PAPER = {"layers": (3, 2, 1), "conditions": (4, 4, 2), "hidden": None, "norm": True, "units": 2, "groups": 4}


@dataclass(frozen=True, eq=False)
class Case:
    """One network: members and the orders of their chains, ends of the outputs' supports, and what it is made of."""

    name: str
    order: tuple[tuple[int, ...], ...] = ((0,),)
    support: tuple[tuple[float | None, float | None], ...] = (OPEN,)
    parts: dict[str, Any] = field(default_factory=dict)
    taught: bool = False
    fitted: bool = False

    def __repr__(self) -> str:
        return self.name

    @property
    def n_outputs(self) -> int:
        return len(self.order[0])

    @property
    def is_chain(self) -> bool:
        return len(set(self.order)) == 1

    @property
    def is_smooth(self) -> bool:
        return self.parts.get("kind") != "hard"

    @property
    def is_exact(self) -> bool:
        return self.parts.get("delta") is None

    @property
    def is_unbounded(self) -> bool:
        return all(ends == OPEN for ends in self.support)

    @property
    def seed(self) -> int:
        return zlib.crc32(self.name.encode())

    def within(self, tolerance: float) -> float:
        """`tolerance` for the relative error of a density, or what rounding leaves of a difference quotient.

        O is wrong by a few eps, its difference over 2 delta O' as well: relatively by eps / delta times a few / O'. The
        slopes O' of these cases go down to 1/20 and a chain adds up two such errors, so 64 eps / delta holds them.
        """
        return tolerance if self.is_exact else max(tolerance, 64.0 * EPS / self.parts["delta"])

    def design(self, **changes: Any) -> Architecture:
        if self.fitted:
            return replace(_fitted(self).design, **changes)
        return Architecture(
            n_features=N_FEATURES, order=self.order, support=self.support, **(TRUNK | self.parts | changes)
        )

    def network(self, **changes: Any) -> CDFNetwork:
        """A network in float64 with seeded parameters; trained a little or fitted where the case says so."""
        return _network(self, self.design(**changes))

    def table(self, n: int) -> tuple[Tensor, Tensor]:
        """Rows in which every output depends on x and on the others, within the supports."""
        generator = torch.Generator().manual_seed(self.seed)
        x = 2.0 + 3.0 * torch.randn(n, N_FEATURES, generator=generator, dtype=torch.float64)
        hump = torch.randint(0, 2, (n, 1), generator=generator) - 0.5
        noise = torch.randn(n, self.n_outputs, generator=generator, dtype=torch.float64)
        z = 0.3 * (x[:, :1] - 2.0) / 3.0 + 1.5 * hump + 0.3 * noise
        ys = []
        for i, (low, high) in enumerate(self.support):
            if low is None and high is None:
                ys.append(CENTER[i] + SPREAD[i] * z[:, i])
            elif low is None or high is None:
                ys.append((low or 0.0) + z[:, i].exp() if high is None else high - z[:, i].exp())
            else:
                ys.append(low + (high - low) * (2.0 * z[:, i]).sigmoid())
        return x, torch.stack(ys, 1)

    def rows(self, n: int) -> Tensor:
        """Rows of x to ask about."""
        return self.table(64)[0][:n]


CASES = [
    Case("line, one member"),
    Case("line", ((0,),) * 3, taught=True),
    Case("line, stack", ((0,),) * 2, parts={"layers": (4, 1), "norm": True}),
    Case("line, hard", ((0,),) * 2, parts={"kind": "hard"}),
    Case("line, squash", ((0,),) * 2, parts={"kind": "squash", "layers": (4, 4, 1)}),
    Case("line, difference", ((0,),) * 2, parts={"delta": 1e-5}),
    Case("half-line above", ((0,),) * 2, ((0.0, None),), taught=True),
    Case("half-line below", ((0,),) * 2, ((None, -2.0),)),
    Case("interval", ((0,),) * 2, ((-2.0, 9.0),), taught=True),
    Case("interval, hard", ((0,),), ((-2.0, 9.0),), parts={"kind": "hard"}),
    Case("pair", ((0, 1),) * 3, (OPEN,) * 2, taught=True),
    Case("pair, fitted", ((0, 1),) * 3, (OPEN,) * 2, fitted=True),
    Case("pair, one end each", ((1, 0),) * 2, ((0.0, None), (None, 3.0))),
    Case("pair, closed and open", ((0, 1),) * 2, ((0.0, 1.0), OPEN), parts={"delta": 1e-5}),
    Case("pair, hard", ((1, 0),) * 2, (OPEN,) * 2, parts={"kind": "hard"}),
    Case("pair, squash", ((0, 1),), ((-1.0, 1.0), (0.0, 50.0)), parts={"kind": "squash", "layers": (3, 1)}),
    Case("pair, paper", ((0, 1),), ((-2.0, 9.0), (0.0, 1.0)), parts={**PAPER, "delta": 5e-6}, taught=True),
    Case("pair, paper but exact", ((1, 0),) * 2, ((-2.0, 9.0), (0.0, 1.0)), parts=PAPER),
    Case("triple", ((2, 0, 1),) * 2, (OPEN,) * 3),
    Case("triple, mixed ends", ((1, 2, 0),), ((None, 2.0), (0.0, 1.0), OPEN)),
    Case("cycled pair", ((0, 1), (1, 0), (0, 1)), (OPEN,) * 2, taught=True),
    Case("cycled triple", ((0, 1, 2), (1, 2, 0), (2, 0, 1)), ((0.0, None), OPEN, (None, 7.0))),
]


@cache
def _fitted(case: Case) -> Fitted:
    model = OgiveRegressor(n_members=len(case.order), hidden=(16,), max_epochs=30, random_state=0)
    return model.fit(*(part.numpy() for part in case.table(400)))._fitted


@cache
def _network(case: Case, design: Architecture) -> CDFNetwork:
    generator = torch.Generator().manual_seed(case.seed)
    network = design.build(generator)
    if case.fitted:
        network.double().load_state_dict(_fitted(case).network.state_dict())
        return network.eval()
    x, y = case.table(256)
    network.scale_x.fit(x)
    if network.support.isfinite().all():
        network.scale_y.fit_range(*network.support)
    else:
        network.scale_y.fit(y)
    if case.taught:
        rows = Rows(network.scale_x(x).float(), network.scale_y(y).float(), torch.ones(len(x)))
        learn, hold = torch.arange(200), torch.arange(200, 256)
        parts = (learn.expand(network.n_members, -1), hold.expand(network.n_members, -1))
        train(network, rows, parts, Recipe(max_epochs=20, batch_size=50, learning_rate=1e-2), generator)
    else:
        for norm in network.stack.norms:
            norm.mean.normal_(generator=generator)
            norm.variance.uniform_(0.5, 2.0, generator=generator)
    weights = torch.rand(network.n_members, generator=generator, dtype=torch.float64) + 0.1
    network.log_weights.copy_((weights / weights.sum()).log())
    network.stack.log_sharpness.normal_(0.0, 0.2, generator=generator)
    return network.double().eval()


def chains(law: Distribution) -> list[Triangular]:
    """The exact chains a law is made of."""
    return [law] if isinstance(law, Triangular) else list(law.parts)


def single_laws(law: Distribution, seed: int = 0) -> dict[str, Law]:
    """Every one-dimensional law in sight: the links of its chains at a drawn point, and its marginals."""
    found: dict[str, Law] = {}
    y = law.sample(1, torch.Generator().manual_seed(seed))[0]
    for k, chain in enumerate(chains(law)):
        factor = chain.first()
        for i in chain.order:
            found[f"chain {k}, output {i}"] = factor
            factor = factor.then(y[:, i]) if i != chain.order[-1] else factor
    for i in range(law.n_outputs):
        found[f"marginal of output {i}"] = law.marginal(i, 16)
    return found


Ends = tuple[float | None, float | None]


class Chart:
    """A map from an interval of t to a support: even on a bounded one, else y = middle + spread sinh t."""

    def __init__(self, ends: Ends, center: float, spread: float) -> None:
        low, high = ends
        if low is not None and high is not None:
            self.left, self.right, self.stretch = low, high, None
        else:
            self.middle, self.stretch = (low if low is not None else high if high is not None else center), spread
            self.left, self.right = 0.0 if low is not None else -REACH, 0.0 if high is not None else REACH

    def rule(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Points y and weights (k, 4) of Gauss and Legendre on k panels of t."""
        abscissa, share = map(torch.tensor, np.polynomial.legendre.leggauss(4))
        half = 0.5 * (right - left)[:, None]
        t, weight = left[:, None] + half * (1.0 + abscissa), half * share
        if self.stretch is None:
            return t, weight
        return self.middle + self.stretch * t.sinh(), weight * self.stretch * t.cosh()


REACH = float(np.arcsinh(1e4))


def nodes(ends: Ends, center: float, spread: float, n_panels: int) -> tuple[Tensor, Tensor]:
    """Points and weights (k,) of an integral over the whole support, dense at `center` and reaching far out."""
    chart = Chart(ends, center, spread)
    edges = torch.linspace(chart.left, chart.right, n_panels + 1, dtype=torch.float64)
    y, weight = chart.rule(edges[:-1], edges[1:])
    return y.flatten(), weight.flatten()


def integral(
    log_density: Callable[[Tensor], Tensor], ends: Ends, center: float, spread: float, n_panels: int
) -> Tensor:
    """Integral (n,) of exp(log_density(y)), y (k,), over the support; panels are halved until halves agree."""
    chart = Chart(ends, center, spread)

    def on(left: Tensor, right: Tensor) -> Tensor:
        y, weight = chart.rule(left, right)
        density = log_density(y.flatten()).exp().unflatten(0, y.shape)
        return (density * weight[..., None]).sum(1)

    edges = torch.linspace(chart.left, chart.right, n_panels + 1, dtype=torch.float64)
    left, right, total = edges[:-1], edges[1:], torch.zeros((), dtype=torch.float64)
    whole = on(left, right)
    while len(left):
        middle = 0.5 * (left + right)
        first, second = on(left, middle), on(middle, right)
        rough = ((first + second - whole).abs() > 1e-9).any(1)
        total = total + (first + second)[~rough].sum(0)
        left, right = torch.cat([left[rough], middle[rough]]), torch.cat([middle[rough], right[rough]])
        whole = torch.cat([first[rough], second[rough]])
    return total


def spread_of(network: CDFNetwork, output: int) -> tuple[float, float]:
    """Center and scale at which an output was fitted."""
    return network.scale_y.center[output].item(), network.scale_y.scale[output].item()
