"""Where training runs, and what has to move there."""

from __future__ import annotations

import torch

from .errors import DataError
from .nn.factors import FactorNetwork

__all__ = ["device_of", "move_network"]


def device_of(name: str) -> torch.device:
    """The device that `name` means; "auto" is the first there is of cuda, mps and cpu."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return torch.device(next(kind for kind, usable in there.items() if usable))
    kind = name.partition(":")[0]
    if kind not in there:
        raise DataError(f"device must be 'auto', 'cpu', 'cuda' or 'mps'; got {name!r}. Use 'auto'.")
    if not there[kind]:
        raise DataError(f"device must be one that this machine has; got {name!r}. Use 'auto'.")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise DataError(f"device must be named as torch names it; got {name!r}. Use 'auto'.") from error


def move_network(network: FactorNetwork, device: torch.device) -> None:
    """Move all that training touches; the scaling stays behind, in float64, which not every device knows."""
    network.conditioner.to(device)
    network.stack.to(device)
    network.order = network.order.to(device)
