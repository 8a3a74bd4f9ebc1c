"""One run measured: fitted, timed, and asked for every metric of its kind."""

from __future__ import annotations

import time
import warnings
from datetime import UTC, datetime
from typing import Any

import numpy as np

from . import methods, provenance, tasks
from .protocol import Run
from .questions import QUESTIONS
from .record import Record, plain
from .tasks import Split

__all__ = ["failed", "measure"]


def measure(run: Run) -> Record:
    """The record of a run. An error of the method is a fact of the record, not an error."""
    provenance.versions()  # of the code as it is now: it may be edited under a long fit
    split = tasks.KINDS[run.kind].split(run.task, run.split, run.rows)
    with warnings.catch_warnings(record=True) as caught:
        try:
            found = _measured(run, split)
        except Exception as error:
            found = {"failure": _reason(error)}
    said = sorted({f"{type(w.message).__name__}: {w.message}" for w in caught})
    return _record(run, size=_size(split), warnings=said, **found)


def failed(run: Run, reason: str) -> Record:
    """The record of a run that could not be measured."""
    return _record(run, failure=reason)


def _record(run: Run, **facts: Any) -> Record:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Record(run, now, run.split, versions=provenance.versions(), machine=provenance.machine(), **facts)


def _measured(run: Run, split: Split) -> dict[str, Any]:
    model = methods.make(run.base, run.split, split, run.settings)
    started = time.perf_counter()
    model.fit(split.X, split.y)
    fitted = time.perf_counter()
    answers, reasons = {}, {}
    for name, ask in QUESTIONS[run.kind](model, split, run).items():
        try:
            answers[name] = np.asarray(ask()).tolist()
        except Exception as error:
            answers[name], reasons[name] = None, _reason(error)
    seconds = {"fit": fitted - started, "score": time.perf_counter() - fitted}
    parameters = plain(model.get_params(deep=False)) if hasattr(model, "get_params") else {}
    return {
        "seconds": {name: round(value, 3) for name, value in seconds.items()},
        "metrics": answers,
        "reasons": reasons,
        "parameters": parameters,
    }


def _size(split: Split) -> dict[str, int]:
    return {
        "train": len(split.y),
        "test": len(split.y_test),
        "all": split.size,
        "features": split.X.shape[1],
        "outputs": split.y.shape[1],
    }


def _reason(error: Exception) -> str:
    """Type and message of an error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
