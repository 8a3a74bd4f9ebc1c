"""What is asked of a fitted method, for each kind of task: names, and functions that answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from .. import metrics
from ..arrays import Array
from ..datasets import toy
from ..errors import NotAvailableError
from .differences import difference_error
from .picture import packed
from .protocol import Run
from .tasks import Split

__all__ = ["COVERAGE", "LEVELS", "PLACES", "QUESTIONS"]

Questions = Mapping[str, Callable[[], Any]]

LEVELS = 10
COVERAGE = 0.9
# A metric that would take longer is left out, with the reason: seconds, and seconds before that is judged.
LONGEST, PATIENCE = 600.0, 5.0
MOST_ROWS = 256
# Where the squared error of a density is taken: x, by kind.
PLACES: Mapping[str, tuple[float, ...]] = {
    "toy": tuple(toy.SSE_X.tolist()),
    "ablation": (-0.75, 0.0, 0.75),
    "delta": (-0.75, -0.25, 0.0, 0.25, 0.75),
}
SEVEN = (-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
PICTURED = 0  # the split of which a picture of the densities is kept


def table_questions(model: Any, split: Split, run: Run) -> Questions:
    """What is asked on the test rows of a table; lists hold a number for each output.

    ``pit_counts`` are the numbers of PIT values up to each of ten equally spaced levels, (d, 10): they add up over
    splits.
    """
    law, y = model.predict_dist(split.X_test), split.y_test
    piece = cache(lambda start, stop: law[start:stop])  # what it draws for one question serves the next
    return {
        "nll": lambda: metrics.nll(law, y),
        "rounded_nll": lambda: metrics.rounded_nll(law, y, split.step),
        "pit_counts": lambda: _counts(metrics.pit(law, y)),
        "crps": lambda: _by_rows(metrics.crps, piece, y),
        "energy_score": lambda: _by_rows(metrics.energy_score, piece, y),
        "coverage": lambda: _by_rows(lambda p, t: metrics.coverage(p, t, COVERAGE), piece, y),
    }


def toy_questions(model: Any, split: Split, run: Run) -> Questions:
    """What is asked where the truth is known.

    ``divergence`` is the mean of log p - log q over the test rows, with p the truth: it estimates the same as
    ``nll_above_entropy``, with less noise. ``picture`` holds the densities of the first split.
    """
    truth: toy.Toy = split.truth
    places = np.array(PLACES[run.kind])
    law = model.predict_dist(split.X_test)
    log_truth = truth.logpdf(split.X_test[:, 0], split.y_test)
    grid = cache(lambda: _density_grid(model, places))
    asked: dict[str, Callable[[], Any]] = {
        "sse": lambda: toy.sse(grid(), truth, x=places),
        "nll": lambda: metrics.nll(law, split.y_test),
        "nll_above_entropy": lambda: metrics.nll(law, split.y_test) - truth.entropy(),
        "divergence": lambda: metrics.nll(law, split.y_test) + float(log_truth.mean()),
    }
    if run.split == PICTURED:
        peak = float(truth.pdf_grid(places, toy.SSE_AXIS, toy.SSE_AXIS).max())
        asked["picture"] = lambda: packed(grid(), 2.0 * peak)
    return asked


def delta_questions(model: Any, split: Split, run: Run) -> Questions:
    """As of a toy, and how far the density is from the exact slope of the CDF it belongs to."""
    seven = np.array(SEVEN)
    error = partial(difference_error, model, split.X_test, split.y_test)
    return {
        **toy_questions(model, split, run),
        "sse_seven": lambda: toy.sse(_density_grid(model, seven), split.truth, x=seven),
        "difference_error": lambda: error(torch.float64),
        "difference_error_float32": lambda: error(torch.float32),
    }


QUESTIONS: Mapping[str, Callable[[Any, Split, Run], Questions]] = {
    "uci": table_questions,
    "toy": toy_questions,
    "ablation": toy_questions,
    "delta": delta_questions,
    "nested": table_questions,
}


def _density_grid(model: Any, places: Array) -> Array:
    """The density on the grid of `toy.sse`: one row for each node, for a log-density is all that this asks."""
    nodes = np.stack(np.meshgrid(toy.SSE_AXIS, toy.SSE_AXIS, indexing="ij"), -1)
    X = np.repeat(places, nodes[..., 0].size)[:, None]
    y = np.tile(nodes.reshape(-1, 2), (places.size, 1))
    density: Array = np.exp(model.predict_dist(X).logpdf(y)).reshape(places.size, *nodes.shape[:2])
    return density


def _counts(pit: Array) -> Any:
    levels = np.arange(1, LEVELS + 1) / LEVELS
    return (pit[:, :, None] <= levels).sum(0)


def _by_rows(metric: Callable[[Any, Array], Any], piece: Callable[[int, int], Any], y: Array) -> Any:
    """A mean over rows, in growing pieces, given up when it would take too long."""
    total, done, step, started = np.zeros(()), 0, 1, time.perf_counter()
    while done < len(y):
        part = y[done : done + step]
        total = total + np.asarray(metric(piece(done, done + len(part)), part)) * len(part)
        done, step = done + len(part), min(2 * step, MOST_ROWS)
        taken = time.perf_counter() - started
        if taken > PATIENCE and taken / done * len(y) > LONGEST:
            raise NotAvailableError(f"the test rows would take more than {LONGEST / 60.0:.0f} minutes.")
    return total / len(y)
