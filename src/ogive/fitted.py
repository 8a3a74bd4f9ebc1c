"""What fitting leaves behind, and its trip to a file and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

import numpy as np
import torch

from . import storage
from .arrays import Array
from .errors import FileFormatError
from .nn.architecture import Architecture
from .nn.cdf import CDFNetwork

__all__ = ["Fitted", "all_or_nothing"]


@dataclass(frozen=True)
class Fitted:
    """A trained network with its design, the names of its outputs and the history of its training.

    `one_column` says that y was given without an axis of outputs, so that answers have none either.
    """

    design: Architecture
    network: CDFNetwork
    outputs: list[str]
    one_column: bool
    history: dict[str, Array]

    def write(self, path: str | PathLike[str], parameters: Mapping[str, Any], features: list[str]) -> None:
        """Save with the estimator's parameters and the names of its features."""
        header = {
            "parameters": _plain(parameters),
            "architecture": self.design.as_dict(),
            "features": features,
            "outputs": self.outputs,
            "one_column": self.one_column,
            "history": _plain(self.history),
        }
        learnt = {name for name, _ in self.network.named_parameters()}  # trained in float32, widened for answers
        tensors = self.network.state_dict()
        storage.write(path, header, {name: t.float() if name in learnt else t for name, t in tensors.items()})

    @classmethod
    def read(cls, path: str | PathLike[str]) -> tuple[Fitted, dict[str, Any], list[str]]:
        """What `write` wrote: the fit, the parameters and the names of features."""
        header, tensors = storage.read(path)
        try:
            design = Architecture.from_dict(header["architecture"])
            network = design.build(torch.Generator())
            network.load_state_dict(tensors)
            history = {name: np.asarray(values, dtype=np.float64) for name, values in header["history"].items()}
            fitted = cls(design, network.double().eval(), header["outputs"], header["one_column"], history)
            return fitted, header["parameters"], header["features"]
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise FileFormatError(
                f"'{fspath(path)}' must describe the network it holds; got {type(error).__name__}: {reason}. "
                "Save the model again."
            ) from error


@contextmanager
def all_or_nothing(estimator: object) -> Iterator[None]:
    """Leave an estimator as it was if what happens inside fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _plain(value: Any) -> Any:
    """A value as JSON can hold it; NaN and what JSON does not know become null."""
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else None
