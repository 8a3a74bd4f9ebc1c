"""Densities on a grid, small enough for a line of JSON: eight bits each, compressed."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array

__all__ = ["packed", "unpacked"]

STEPS = 255


def packed(density: Array, top: float) -> dict[str, Any]:
    """Densities of any shape in 255 steps from 0 to `top`; what is higher is kept as `top`."""
    steps = np.rint(np.clip(density / top, 0.0, 1.0) * STEPS).astype(np.uint8)
    data = base64.b64encode(zlib.compress(steps.tobytes(), 9)).decode("ascii")
    return {"top": top, "shape": list(density.shape), "data": data}


def unpacked(picture: Mapping[str, Any]) -> Array:
    """What `packed` kept, to within half a step."""
    steps = np.frombuffer(zlib.decompress(base64.b64decode(picture["data"])), dtype=np.uint8)
    density: Array = steps.reshape(picture["shape"]) * (picture["top"] / STEPS)
    return density
