"""Draws of rows laid out in rounds."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from ogive.nn.rounds import Rounds


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60))
def test_every_draw_gets_what_its_row_shares(rows):
    row = torch.tensor(sorted(rows))
    rounds = Rounds(row)
    assert sorted(rounds.order.tolist()) == list(range(len(rows)))
    assert sorted(rounds.rows.tolist()) == sorted(set(rows))
    shared = torch.stack([torch.arange(10.0), torch.arange(10.0) ** 2])[None]
    spread = rounds.spread(shared[..., rounds.rows])
    assert torch.equal(spread, shared[..., row[rounds.order]])
