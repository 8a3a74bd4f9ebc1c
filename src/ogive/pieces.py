"""Working through the rows of a law in pieces of fixed size: bounded memory, and answers that ignore the other rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .arrays import Array
from .distribution import Distribution, Law

__all__ = ["Pieces", "by_output", "by_rows", "pieces_of"]

CELLS_AT_ONCE = 2048
KEPT_ROWS = 2048
MOST = float(np.finfo(np.float64).max)


def pieces_of(n_rows: int, cells: float) -> list[slice]:
    """Slices of the rows, at least one, short enough for rows that take `cells` points each."""
    step = max(1, int(CELLS_AT_ONCE / cells))
    return [slice(start, min(start + step, n_rows)) for start in range(0, max(1, n_rows), step)]


class Pieces:
    """A joint law in pieces of its rows; those of a few thousand rows are kept, and with them their draws."""

    def __init__(self, law: Distribution) -> None:
        self.n_rows, self.n_outputs = law.n_rows, law.n_outputs
        self._law = law
        self._kept: dict[tuple[int, int], Distribution] = {}

    def rows(self, piece: slice) -> Distribution:
        """The law of one piece."""
        if self.n_outputs == 1 or self.n_rows > KEPT_ROWS:
            return self._law.rows(piece)
        key = (piece.start, piece.stop)
        if key not in self._kept:
            self._kept[key] = self._law.rows(piece)
        return self._kept[key]


def by_rows(
    law: Pieces,
    ask: Callable[[Distribution, Tensor], Tensor],
    points: Array | Tensor | None = None,
    axis_in: int = -2,
    axis_out: int = -1,
    cells: float = 1.0,
) -> Array:
    """ask(law, points) over pieces of rows; rows lie on `axis_in` of the points and `axis_out` of the answer.

    Infinite points are asked about at the ends of the floats.
    """
    points = torch.empty(law.n_rows, 0) if points is None else torch.as_tensor(points).clamp(-MOST, MOST)
    a_row = cells * max(1, points.shape[:axis_in].numel())
    with torch.no_grad():
        found = [
            ask(law.rows(piece), points.narrow(axis_in, piece.start, piece.stop - piece.start))
            for piece in pieces_of(law.n_rows, a_row)
        ]
    return torch.cat(found, axis_out).double().cpu().numpy()


def by_output(law: Pieces, ask: Callable[[Law, int], Tensor], n_paths: int, n_levels: int = 1) -> Array:
    """ask(law of output j, rows) over pieces of rows, stacked to (n, d, ...); `n_paths` lead to a later output."""

    def every(part: Distribution, _: Tensor) -> Tensor:
        return torch.stack([ask(part.marginal(j, n_paths), part.n_rows) for j in range(part.n_outputs)], 1)

    paths = 1 if law.n_outputs == 1 else n_paths // 2
    return by_rows(law, every, axis_out=0, cells=max(paths, n_levels // 16))
