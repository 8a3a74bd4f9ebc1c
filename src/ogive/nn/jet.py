"""A value that rises with the output, and the logarithm of its slope."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["Jet"]


class Jet(NamedTuple):
    """A rising function at a point: its value and log(d value / d point), two tensors of one shape.

    Slopes travel as logarithms so that neither a flat stretch nor a jump leaves the range of a float.
    """

    value: Tensor
    log_slope: Tensor
