"""One run measured: fitted, timed, and asked for every metric of its kind."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from .. import metrics
from ..arrays import Array
from ..datasets import toy
from ..errors import NotAvailableError
from . import methods, provenance, tasks
from .protocol import Run
from .record import Record, plain
from .tasks import Split

__all__ = ["COVERAGE", "LEVELS", "failed", "measure"]

Questions = Mapping[str, Callable[[], Any]]

LEVELS = 10
COVERAGE = 0.9
# A metric that would take longer is left out, with the reason: seconds, and seconds before that is judged.
LONGEST, PATIENCE = 600.0, 5.0
MOST_ROWS = 256


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
    for name, ask in QUESTIONS[run.kind](model, split).items():
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


def table_questions(model: Any, split: Split) -> Questions:
    """What is asked on the test rows of a table; lists hold a number for each output.

    ``pit_counts`` are the numbers of PIT values up to each of ten equally spaced levels, (d, 10): they add up over
    splits.
    """
    law, y = model.predict_dist(split.X_test), split.y_test
    return {
        "nll": lambda: metrics.nll(law, y),
        "rounded_nll": lambda: metrics.rounded_nll(law, y, split.step),
        "pit_counts": lambda: _counts(metrics.pit(law, y)),
        "crps": lambda: _by_rows(metrics.crps, law, y),
        "energy_score": lambda: _by_rows(metrics.energy_score, law, y),
        "coverage": lambda: _by_rows(lambda p, t: metrics.coverage(p, t, COVERAGE), law, y),
    }


def toy_questions(model: Any, split: Split) -> Questions:
    """What is asked where the truth is known.

    ``divergence`` is the mean of log p - log q over the test rows, with p the truth: it estimates the same as
    ``nll_above_entropy``, with less noise.
    """
    truth: toy.Toy = split.truth
    law = model.predict_dist(split.X_test)
    log_truth = truth.logpdf(split.X_test[:, 0], split.y_test)
    nodes = np.stack(np.meshgrid(toy.SSE_AXIS, toy.SSE_AXIS, indexing="ij"), -1)

    def sse() -> float:
        # One row for each node: a log-density is all that this asks of a method.
        X = np.repeat(toy.SSE_X, nodes[..., 0].size)[:, None]
        y = np.tile(nodes.reshape(-1, 2), (toy.SSE_X.size, 1))
        log_density = model.predict_dist(X).logpdf(y)
        return toy.sse(np.exp(log_density).reshape(toy.SSE_X.size, *nodes.shape[:2]), truth)

    return {
        "sse": sse,
        "nll": lambda: metrics.nll(law, split.y_test),
        "nll_above_entropy": lambda: metrics.nll(law, split.y_test) - truth.entropy(),
        "divergence": lambda: metrics.nll(law, split.y_test) + float(log_truth.mean()),
    }


QUESTIONS: Mapping[str, Callable[[Any, Split], Questions]] = {"uci": table_questions, "toy": toy_questions}


def _counts(pit: Array) -> Any:
    levels = np.arange(1, LEVELS + 1) / LEVELS
    return (pit[:, :, None] <= levels).sum(0)


def _by_rows(metric: Callable[[Any, Array], Any], law: Any, y: Array) -> Any:
    """A mean over rows, in growing pieces, given up when it would take too long."""
    total, done, step, started = np.zeros(()), 0, 1, time.perf_counter()
    while done < len(y):
        part = slice(done, done + step)
        total = total + np.asarray(metric(law[part], y[part])) * len(y[part])
        done, step = done + len(y[part]), min(2 * step, MOST_ROWS)
        taken = time.perf_counter() - started
        if taken > PATIENCE and taken / done * len(y) > LONGEST:
            raise NotAvailableError(f"the test rows would take more than {LONGEST / 60.0:.0f} minutes.")
    return total / len(y)


def _size(split: Split) -> dict[str, int]:
    return {
        "train": len(split.y),
        "test": len(split.y_test),
        "all": len(split.y_all),
        "features": split.X.shape[1],
        "outputs": split.y.shape[1],
    }


def _reason(error: Exception) -> str:
    """Type and message of an error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]
