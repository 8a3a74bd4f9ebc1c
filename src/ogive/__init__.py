"""ogive: conditional density estimation through the CDF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimator import OgiveRegressor, load
    from .prediction import Prediction

__version__ = "0.1.0"

__all__ = ["OgiveRegressor", "Prediction", "__version__", "load", "metrics"]

# Imported when first asked for, so that `ogive --help` does not wait for torch.
_WHERE = {"OgiveRegressor": "estimator", "load": "estimator", "Prediction": "prediction"}


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module(".metrics", __name__)
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_WHERE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
