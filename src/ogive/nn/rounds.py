"""Draws laid out in rounds, so that what draws of one row share is copied in long runs and never gathered."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Rounds"]


class Rounds:
    """An order of N draws of rising `rows` (N,): round k has one draw of every row with more than k of them.

    Attributes
    ----------
    rows : the distinct rows (r,), those with most draws first, so that every round is of a first part of them
    order : the draws (N,), round after round
    """

    def __init__(self, rows: Tensor) -> None:
        distinct, which, count = rows.unique_consecutive(return_inverse=True, return_counts=True)
        every, most_first = torch.arange(len(rows)), count.argsort(descending=True, stable=True)
        place = torch.empty_like(most_first).scatter_(0, most_first, every[: len(distinct)])
        turn = every - (count.cumsum(0) - count)[which]
        length = turn.bincount()
        at = (length.cumsum(0) - length)[turn] + place[which]
        self.rows, self.order = distinct[most_first], torch.empty_like(every).scatter_(0, at, every)
        self._lengths = length.tolist()

    def spread(self, shared: Tensor) -> Tensor:
        """What the distinct rows have (..., r), for every draw in order (..., N)."""
        full = self._lengths.count(len(self.rows))
        every = shared.repeat(*[1] * (shared.ndim - 1), full)
        return torch.cat([every, *(shared[..., :length] for length in self._lengths[full:])], -1)
