"""Methods by name: what makes an estimator with `fit(X, y)` and `predict_dist(X)` for one split of a task.

A method sees the rows to learn from and no others. The exceptions are the paper's own and the DDN, as their authors
have it: their outputs lie in the range of all rows, because their densities are zero outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from .tasks import Split

__all__ = ["METHODS", "NOTES", "make"]

Factory = Callable[..., Any]


def make(base: str, seed: int, split: Split, settings: Mapping[str, Any]) -> Any:
    """The estimator of that name with these settings, not yet fitted."""
    return METHODS[base](seed, split, **settings)


def _ogive(seed: int, split: Split, **settings: Any) -> Any:
    from ..estimator import OgiveRegressor

    return OgiveRegressor(**({"random_state": seed} | settings))


def _paper(seed: int, split: Split, **settings: Any) -> Any:
    from ..estimator import OgiveRegressor

    paper = {"random_state": seed, "support": _range(split)} | settings
    if "architecture" in settings:  # a file of TOML names what differs, and has no word for None
        paper["architecture"] = {**(OgiveRegressor.paper().architecture or {}), **settings["architecture"]}
    return OgiveRegressor.paper(**paper)


def _ddn(seed: int, split: Split, **settings: Any) -> Any:
    return _baseline("DDN", seed, split, **({"support": _range(split)} | settings))


def _range(split: Split) -> list[tuple[float, float]]:
    """The least and the greatest value of each output in all rows."""
    return list(zip(split.y_all.min(0).tolist(), split.y_all.max(0).tolist(), strict=True))


def _baseline(name: str, seed: int, split: Split, **settings: Any) -> Any:
    from .. import baselines

    return getattr(baselines, name)(**({"random_state": seed} | settings))


METHODS: Mapping[str, Factory] = MappingProxyType(
    {
        "ogive": _ogive,
        "paper": _paper,
        "mdn": partial(_baseline, "MDN"),
        "maf": partial(_baseline, "MAF"),
        "nsf": partial(_baseline, "NSF"),
        "nsf-ensemble": partial(_baseline, "NSFEnsemble"),
        "rnf": partial(_baseline, "RNF"),
        "ddn": _ddn,
        "ngboost": partial(_baseline, "Boosted"),
    }
)

# What a table must say of a method.
NOTES: Mapping[str, str] = MappingProxyType(
    {
        "paper": "knows the range of all rows, those to be judged on included, as its authors have it",
        "ddn": "knows the range of all rows, those to be judged on included, as its authors have it",
    }
)
