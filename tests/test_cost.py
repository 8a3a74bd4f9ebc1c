"""What work costs, counted in operations and kept bytes: a guard against slowness that needs no clock."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from ogive.fitting import TrainingTable, fresh_network
from ogive.nn.architecture import Architecture
from ogive.nn.softminmax import soft_min_max
from ogive.training import Recipe, Rows, Trainer

UNITS, GROUPS, WIDTH, RAMPS = 4, 4, 16, 3
P, BATCH = 3, 64


class Counted(TorchDispatchMode):
    """Calls of each operation, and elements that each has given out."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()
        self.elements: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.calls[name] += 1
        self.elements[name] += found.numel() if isinstance(found, torch.Tensor) else 0
        return found


def network_of(members: int, d: int = 1, n: int = 200):
    rng = np.random.default_rng(0)
    table = TrainingTable(rng.normal(size=(n, P)), rng.normal(size=(n, d)), np.ones(n))
    design = Architecture(
        P, (tuple(range(d)),) * members, ((None, None),) * d, (1,), UNITS, GROUPS, (WIDTH, WIDTH), ramps=RAMPS
    )
    return fresh_network(design, table, torch.Generator().manual_seed(0)), table


def step_of(members: int, d: int = 1):
    network, table = network_of(members, d)
    rows = Rows(
        network.scale_x(torch.tensor(table.features)).float(),
        network.scale_y(torch.tensor(table.targets)).float(),
        torch.ones(len(table.weights)),
    )
    recipe = Recipe(dropout=(0.1,) * members, noise=(True,) * members)
    trainer = Trainer(network, recipe, torch.Generator().manual_seed(0))
    batch = rows.batch(torch.arange(BATCH).expand(members, -1))
    return lambda: trainer.step(*batch)


def flops(work) -> int:
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def counted(work) -> Counted:
    with Counted() as counter:
        work()
    return counter


@pytest.mark.parametrize("members", [1, 4])
def test_a_step_multiplies_what_its_layers_ask_for_and_no_more(members):
    """Two products a layer on the way back but for the first, whose inputs need no gradient; a product is 2 a b c."""
    inputs, lines = P * (1 + RAMPS), UNITS * GROUPS
    first, others = inputs * WIDTH, WIDTH * WIDTH + WIDTH * lines
    noise = first  # the learnt noise enters at the inputs, so that here they do need one
    assert flops(step_of(members)) == 2 * members * BATCH * (2 * first + noise + 3 * others)


def test_a_step_makes_as_many_calls_for_many_members_as_for_one():
    few, many = (counted(step_of(members)).calls for members in (1, 6))
    for shaping in ("view", "_unsafe_view", "clone"):  # one member may need a copy to be laid out like many
        del few[shaping], many[shaping]
    assert many == few
    assert sum(many.values()) < 320


@pytest.mark.parametrize("d", [1, 3])
def test_a_step_takes_one_exponential_a_line(d):
    """Besides those of size lines for the slopes, groups for the shares, and a few a row."""
    members, lines = 2, UNITS * GROUPS
    found = counted(step_of(members, d)).elements
    exponentials = sum(found[name] for name in ("exp", "exp_", "exp2", "exp2_"))
    assert members * d * lines * BATCH <= exponentials <= members * d * BATCH * (lines + 2 * GROUPS)


def test_the_way_back_keeps_one_tensor_of_all_lines():
    kept: list[int] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    point, bias = torch.randn(2, 5, 40), torch.randn(2, UNITS, GROUPS, 40, requires_grad=True)
    log_weight = torch.randn(2, UNITS, GROUPS, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        soft_min_max(point, bias, log_weight)
    every = 2 * UNITS * GROUPS * 5 * 40
    assert kept.count(every) == 1
    assert sum(kept) < every * (1 + 4 / UNITS)


@torch.no_grad()
def test_a_log_density_costs_in_proportion_to_rows_and_members():
    def cost(members: int, n: int) -> int:
        network, table = network_of(members, n=n)
        x, y = torch.tensor(table.features), torch.tensor(table.targets)
        return flops(lambda: network(x).log_prob(y))

    assert cost(1, 300) * 6 == cost(2, 900)


@torch.no_grad()
def test_a_draw_from_a_mixture_costs_what_one_member_costs():
    def cost(members: int) -> int:
        network, table = network_of(members, d=2, n=20)
        law = network(torch.tensor(table.features))
        return flops(lambda: law.sample(200, torch.Generator().manual_seed(0)))

    assert cost(8) <= 1.05 * cost(1)


@torch.no_grad()
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_chain_of_draws_asks_the_trunk_what_one_pass_over_all_outputs_asks(d):
    network, table = network_of(1, d, n=40)
    x, y = torch.tensor(table.features), torch.tensor(table.targets)
    generator = torch.Generator().manual_seed(0)
    assert flops(lambda: network(x).sample(1, generator)) == flops(lambda: network(x).log_prob(y))


@torch.no_grad()
def test_draws_of_a_row_share_their_first_conditions():
    """In the limit of many draws only the trunk of the second output is left: so many products, and no more."""
    network, table = network_of(1, 2, n=5)
    x, generator = torch.tensor(table.features), torch.Generator().manual_seed(0)
    once, often = (flops(lambda k=k: network(x).sample(k, generator)) for k in (1, 101))
    inputs, half, lines = P * (1 + RAMPS) + 1, WIDTH // 2, UNITS * GROUPS
    assert often - once == 2 * 100 * 5 * (inputs * half + WIDTH * half + WIDTH * lines)


@torch.no_grad()
def test_many_quantiles_read_their_points_less_than_twice():
    """Each level of each row within a millionth of its logit; what a shared node costs has no exponential a line."""
    members, n, levels = 3, 40, 99
    network, table = network_of(members, n=n)
    asked = torch.linspace(0.01, 0.99, levels).double().logit()[:, None].expand(-1, n)
    found = counted(lambda: network.double()(torch.tensor(table.features)).first().icdf(asked)).elements
    assert found["exp2_"] <= 2 * members * n * levels * UNITS * GROUPS


@torch.no_grad()
@pytest.mark.parametrize("levels", [(1, 10), (20, 400)])  # one by one; from a table, which has products of its own
def test_quantiles_ask_the_trunk_once_however_many_levels(levels):
    network, table = network_of(3)
    x = torch.tensor(table.features)
    few, many = (flops(lambda k=k: network(x).first().icdf(torch.zeros(k, len(x)))) for k in levels)
    assert few == many > 0
