"""The 70/30 permutation split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ogive.datasets.splits import permutation_split


@given(n=st.integers(2, 500), seed=st.integers(0, 2**32), fraction=st.floats(0.5, 0.99))
def test_every_row_is_in_one_part(n, seed, fraction):
    n_train = int(n * fraction)
    train, test = permutation_split(n, seed, train_fraction=fraction)
    assert train.size == n_train
    assert sorted(np.concatenate([train, test])) == list(range(n))


def test_it_is_the_head_of_the_seeded_permutation():
    train, test = permutation_split(908, 3)
    order = np.random.default_rng(3).permutation(908)
    assert train.tolist() == order[:635].tolist()
    assert test.tolist() == order[635:].tolist()
    assert permutation_split(908, 4)[0].tolist() != train.tolist()


def test_the_fraction_of_a_row_is_dropped():
    assert permutation_split(9, 0)[0].size == 6  # 6.3
    assert permutation_split(11, 0, train_fraction=0.9)[0].size == 9  # 9.9


@pytest.mark.parametrize(("n", "fraction"), [(0, 0.7), (1, 0.7), (-5, 0.7), (10, 0.0), (10, 1.0), (10, np.nan)])
def test_both_parts_keep_a_row(n, fraction):
    with pytest.raises(ValueError, match="must leave a row in each part; got n="):
        permutation_split(n, 0, train_fraction=fraction)
