"""What short parameters mean, and every way in which they can be wrong."""

from __future__ import annotations

import numpy as np
import pytest

from ogive.choices import in_turn, orders_of, support_of
from ogive.errors import DataError

Y = np.array([[1.0, -5.0], [2.0, 0.5], [4.0, 3.0]])


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        ("given", ((0, 1, 2),) * 4),
        ("cycle", ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 1, 2))),
        ((2, 0, 1), ((2, 0, 1),) * 4),
        ([np.int64(1), 0, 2], ((1, 0, 2),) * 4),
    ],
)
def test_orders(order, wanted):
    assert orders_of(order, 4, 3) == wanted


@pytest.mark.parametrize("order", ["reverse", (0, 1), (0, 0, 1), (1, 2, 3), 5, (0.5, 1, 2), None, ("a", "b", "c")])
def test_orders_that_are_none(order):
    with pytest.raises(DataError, match=r"order must be 'given', 'cycle' or a permutation of \(0, 1, 2\); got "):
        orders_of(order, 4, 3)


@pytest.mark.parametrize(
    ("support", "wanted"),
    [
        (None, ((None, None), (None, None))),
        ("range", ((1.0, 4.0), (-5.0, 3.0))),
        ([(0, None), (None, 3)], ((0.0, None), (None, 3.0))),
        ([(-np.inf, np.inf), (-5, np.inf)], ((None, None), (-5.0, None))),
        (np.array([[0.0, 9.0], [-5.0, 9.0]]), ((0.0, 9.0), (-5.0, 9.0))),
    ],
)
def test_supports(support, wanted):
    assert support_of(support, Y) == wanted


def test_positive_is_the_half_line_above_nought():
    assert support_of("positive", Y[:, :1]) == ((0.0, None),)


def test_the_range_of_a_constant_column_has_room():
    ((low, high),) = support_of("range", np.full((3, 1), 7.0))
    assert low < 7.0 < high


@pytest.mark.parametrize(
    ("support", "message"),
    [
        ("negative", r"support must be None, 'positive', 'range' or pairs; got 'negative'\. Use None\."),
        (3, "support must be None, 'positive', 'range' or pairs; got 3"),
        ([1, 2], "support must be None, 'positive', 'range' or pairs; got "),
        ([(0, 1, 2), (0, 1)], "support must be None, 'positive', 'range' or pairs; got "),
        ([("a", None), (None, None)], "support must be None, 'positive', 'range' or pairs; got "),
        ([(np.nan, None), (None, None)], "support must be None, 'positive', 'range' or pairs; got "),
        ([(0, None)], r"support must have one \(low, high\) pair per output \(2\); got 1"),
        ([(5, 0), (None, None)], r"support must have low < high; got \(5.0, 0.0\)"),
        ([(1, 1), (None, None)], r"support must have low < high; got \(1.0, 1.0\)"),
        ([(1.5, None), (None, None)], r"y must lie in its support; got 1 rows outside \(1.5, None\)\. Widen it\."),
        ([(None, None), (None, 0.0)], r"y must lie in its support; got 2 rows outside \(None, 0.0\)"),
        ("positive", r"y must lie in its support; got 1 rows outside \(0.0, None\)"),
    ],
)
def test_supports_that_are_none(support, message):
    with pytest.raises(DataError, match=message):
        support_of(support, Y)


def test_values_go_round_the_members():
    assert in_turn(0.1, 3, float) == (0.1, 0.1, 0.1)
    assert in_turn((0.0, 0.2), 5, float) == (0.0, 0.2, 0.0, 0.2, 0.0)
    assert in_turn([True, False, True], 2, bool) == (True, False)
    assert in_turn(np.array([1, 0]), 3, bool) == (True, False, True)
