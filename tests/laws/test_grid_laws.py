"""Laws of `pdf_grid`: the joint density at every node of a grid, for the price of one factor a prefix."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from cases import CASES, Case

from ogive import distribution, pieces
from ogive.errors import DataError, DataTypeError
from ogive.nn import ensemble, grid
from ogive.nn.softminmax import soft_min_max
from ogive.prediction import Prediction

NAMES = ["a", "b", "c"]
BY_NAME = {case.name: case for case in CASES}


def predict(case: Case | str, n: int = 4) -> Prediction:
    case = BY_NAME[case] if isinstance(case, str) else case
    return Prediction(case.network()(case.rows(n)), NAMES[: case.n_outputs])


def axes_of(p: Prediction, sizes: tuple[int, ...] = (5, 4, 3)) -> list[np.ndarray]:
    """Values of each output, in no order, the last of them far outside."""
    draws = p.sample(max(sizes), 3).reshape(max(sizes), len(p), p.n_outputs)[:, 0]
    return [
        np.append(draws[: size - 1, j], draws[0, j] + 1e4 * np.ptp(draws[:, j]))
        for j, size in enumerate(sizes[: p.n_outputs])
    ]


def node_by_node(p: Prediction, axes: list[np.ndarray]) -> np.ndarray:
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1)[..., None, :]
    every = np.broadcast_to(nodes, (*nodes.shape[:-2], len(p), p.n_outputs))
    return np.moveaxis(p.pdf(every), -1, 0)


def test_a_grid_holds_the_density_at_every_node(case):
    p = predict(case)
    axes = axes_of(p)
    found = p.pdf_grid(*axes)
    assert found.shape == (4, *map(len, axes)) and found.dtype == np.float64
    assert found.max() > 0.0
    np.testing.assert_allclose(found, node_by_node(p, axes), rtol=case.within(1e-12), atol=0.0)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_grid_keeps_the_users_order_of_outputs_whatever_the_chains(order):
    p = predict(Case("triple " + "".join(map(str, order)), (order,) * 2, ((None, None), (0.0, None), (None, 9.0))))
    axes = axes_of(p, (3, 4, 5))
    np.testing.assert_allclose(p.pdf_grid(*axes), node_by_node(p, axes), rtol=1e-12, atol=0.0)


def test_a_grid_of_a_marginal_holds_its_density(mixed_case):
    p = predict(mixed_case, 2)
    for j, axis in enumerate(axes_of(p)):
        marginal = p.marginal(j)
        node_by_node = marginal.pdf(axis[:, None].repeat(2, 1)).T
        np.testing.assert_allclose(marginal.pdf_grid(axis), node_by_node, rtol=mixed_case.within(1e-12))


def test_a_grid_is_the_same_in_small_pieces_and_for_fewer_rows(mixed_case, monkeypatch):
    p = predict(mixed_case)
    axes = axes_of(p)
    whole = p.pdf_grid(*axes)
    rtol = mixed_case.within(1e-10)
    np.testing.assert_allclose(p[2].pdf_grid(*axes), whole[2:3], rtol=rtol)
    for module, name in (
        (pieces, "CELLS_AT_ONCE"),
        (distribution, "NODES_AT_ONCE"),
        (ensemble, "NODES_AT_ONCE"),
        (grid, "CELLS_AT_ONCE"),
    ):
        monkeypatch.setattr(module, name, 2)
    np.testing.assert_allclose(p.pdf_grid(*axes), whole, rtol=rtol)


@pytest.mark.parametrize("name", ["line", "pair", "triple", "pair, paper", "triple, mixed ends"])
def test_the_conditioner_runs_once_for_each_prefix(name, monkeypatch):
    case, rows = BY_NAME[name], []
    network = case.network()
    further = network.conditioner.further

    def watched(known, x, before, at):
        rows.append(x.shape[-1])
        return further(known, x, before, at)

    monkeypatch.setattr(network.conditioner, "further", watched)
    p, sizes = Prediction(network(case.rows(4)), NAMES[: case.n_outputs]), (7, 6, 5)[: case.n_outputs]
    p.pdf_grid(*(np.linspace(0.1, 0.9, size) for size in sizes))
    chain = [sizes[i] for i in case.order[0]]
    assert sum(rows) == 4 * sum(np.prod(chain[:i], dtype=int) for i in range(len(chain)))


def test_the_products_of_a_grid_are_the_soft_min_max():
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    nodes, bias, log_weight = 3.0 * normal(2, 7), 5.0 * normal(2, 4, 3, 11), normal(2, 4, 3)
    jet = grid.product_soft_min_max(nodes, bias, log_weight)
    plain = soft_min_max(nodes[..., None].expand(-1, -1, 11), bias, log_weight)
    torch.testing.assert_close(jet.value, plain.value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(jet.log_slope, plain.log_slope, rtol=1e-12, atol=1e-12)
    # Either the nodes or the laws may be far apart, not both.
    assert grid.product_soft_min_max(1e3 * nodes, bias, log_weight) is not None
    assert grid.product_soft_min_max(nodes, 1e3 * bias, log_weight) is not None
    assert grid.product_soft_min_max(1e3 * nodes, 1e3 * bias, log_weight) is None
    for far, apart in ((1e3, 1.0), (1.0, 1e3)):
        jet = grid.product_soft_min_max(far * nodes, apart * bias, log_weight)
        plain = soft_min_max(far * nodes[..., None].expand(-1, -1, 11), apart * bias, log_weight)
        torch.testing.assert_close(jet.log_slope, plain.log_slope, rtol=1e-12, atol=1e-12)


def test_axes_may_be_any_arrays():
    p = predict("pair")
    plain = p.pdf_grid(np.array([4.0, 5.0]), np.array([0.0]))
    np.testing.assert_array_equal(p.pdf_grid([4, 5], pd.Series([0])), plain)
    np.testing.assert_array_equal(p.pdf_grid(np.array([4.0, 9.0, 5.0])[::2], (0.0,)), plain)


@pytest.mark.parametrize(
    ("axes", "error", "message"),
    [
        ([[1.0]], DataError, r"axes must be one for each of \['a', 'b'\]; got 1\. Pass an array for each output\."),
        ([[1.0]] * 3, DataError, r"axes must be one for each of \['a', 'b'\]; got 3"),
        (
            [[1.0], 2.0],
            DataError,
            r"the axis of 'b' must have shape \(k,\) with k of at least 1; got \(\)\. Use np.lin",
        ),
        ([np.ones((2, 2)), [1.0]], DataError, r"the axis of 'a' must have shape \(k,\) .*; got \(2, 2\)"),
        ([[1.0], []], DataError, r"the axis of 'b' must have shape \(k,\) .*; got \(0,\)"),
        ([[1.0], [0.0, np.nan]], DataError, r"the axis of 'b' must be finite; got NaN in 1 of 2 nodes \(first: node 1"),
        ([[np.inf, 1.0], [0.0]], DataError, r"the axis of 'a' must be finite; got infinity in 1 of 2 nodes"),
        ([["x"], [0.0]], DataTypeError, r"the axis of 'a' must be numeric; got "),
    ],
)
def test_axes_that_cannot_be_used(axes, error, message):
    with pytest.raises(error, match=message):
        predict("pair").pdf_grid(*axes)
