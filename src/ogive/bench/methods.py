"""Methods by name: what makes an estimator with `fit(X, y)` and `predict_dist(X)` for one split of a task.

A method sees the rows to learn from and no others. The one exception is the paper's own, as the paper has it: its
outputs are scaled to the range of all rows, because its density is zero outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from .tasks import Split

__all__ = ["METHODS", "make"]

Factory = Callable[..., Any]


def make(base: str, seed: int, split: Split, settings: Mapping[str, Any]) -> Any:
    """The estimator of that name with these settings, not yet fitted."""
    return METHODS[base](seed, split, **settings)


def _ogive(seed: int, split: Split, **settings: Any) -> Any:
    from ..estimator import OgiveRegressor

    return OgiveRegressor(**({"random_state": seed} | settings))


def _paper(seed: int, split: Split, **settings: Any) -> Any:
    from ..estimator import OgiveRegressor

    ends = zip(split.y_all.min(0).tolist(), split.y_all.max(0).tolist(), strict=True)
    return OgiveRegressor.paper(**({"random_state": seed, "support": list(ends)} | settings))


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
        "ddn": partial(_baseline, "DDN"),
        "ngboost": partial(_baseline, "Boosted"),
    }
)
