"""What a table shows: how the records of one method and task are summed up over splits, and written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..metrics import ece_band
from .questions import COVERAGE, LEVELS
from .record import Record
from .tasks import KINDS

__all__ = ["QUANTITIES", "Quantity", "mean_and_error", "mean_text"]

Numbers = Mapping[str, Any]
Records = Sequence[Record]


@dataclass(frozen=True)
class Quantity:
    """One quantity, one table.

    Attributes
    ----------
    name : str
        As bars and `--json` call it.
    title : str
    source : str
        The entry of a record's metrics, or its seconds, that it is made of.
    sum_up : callable (records, their entries) -> numbers
    show : callable (numbers) -> text
    show_bar : callable (number) -> text
    main : str
        Which of the numbers is compared with figures from elsewhere.
    digits : int
        Of a difference.
    """

    name: str
    title: str
    source: str
    sum_up: Callable[[Records, Sequence[Any]], Numbers]
    show: Callable[[Numbers], str]
    show_bar: Callable[[float], str]
    main: str = "mean"
    digits: int = 3

    def read(self, record: Record) -> Any:
        """The entry of a record; None where it has none."""
        return {**record.metrics, **record.seconds}.get(self.source)


def mean_and_error(records: Records, values: Sequence[Any]) -> Numbers:
    """Mean over outputs, then mean over splits and its standard error, which one split does not have."""
    each = np.array([np.mean(value) for value in values])
    sure = len(each) > 1 and np.isfinite(each).all()
    error = float(each.std(ddof=1)) / math.sqrt(len(each)) if sure else None
    return {"mean": float(each.mean()), "standard_error": error, "values": each.tolist()}


def range_of_outputs(records: Records, values: Sequence[Any]) -> Numbers:
    """Mean over splits of each output, and the least and the greatest of these."""
    outputs = np.mean(values, axis=0)
    return {"lowest": float(outputs.min()), "highest": float(outputs.max()), "outputs": outputs.tolist()}


def pooled_calibration(records: Records, values: Sequence[Any]) -> Numbers:
    """ECE of the PIT pooled over splits and outputs, and the 95th percentile of a calibrated model's.

    The latter is simulated for as many values as there are outputs of distinct rows: in ten splits a row is a test
    row about three times, and that makes no three rows of it.
    """
    counts = np.sum(values, axis=(0, 1))
    share = counts / counts[-1]
    error = float(np.abs(share - np.arange(1, LEVELS + 1) / LEVELS).mean())
    tested = [KINDS[record.run.kind].judged(record.size["all"], record.run.split) for record in records]
    n = len(np.unique(np.concatenate(tested))) * records[0].size["outputs"]
    return {"ece": error, "calibrated": _band(n), "distinct": n, "share": share.tolist()}


@lru_cache
def _band(n: int) -> float:
    return ece_band(n, LEVELS)


def mean_text(form: str, numbers: Numbers) -> str:
    """Mean and standard error in a format as ".3f"."""
    error = numbers["standard_error"]
    return f"{numbers['mean']:{form}}" + (f" ± {error:{form.lstrip('+')}}" if error is not None else "")


def _range_text(numbers: Numbers) -> str:
    low, high = _percent(numbers["lowest"]), _percent(numbers["highest"])
    return low if low == high else f"{low} to {high}"


def _calibration_text(numbers: Numbers) -> str:
    return f"{numbers['ece']:.4f} / {numbers['calibrated']:.4f}"


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}"


def _mean(name: str, title: str, digits: int = 3, bar: str = "{:.2f}") -> Quantity:
    return Quantity(name, title, name, mean_and_error, partial(mean_text, f".{digits}f"), bar.format, digits=digits)


def _small(name: str, title: str) -> Quantity:
    return Quantity(name, title, name, mean_and_error, partial(mean_text, ".1e"), "{:g}".format)


SECONDS = _mean("fit", "Seconds to fit", 1, "{:g}")

OF_TABLES = (
    _mean("nll", "Test NLL, joint, in nats of standardised outputs"),
    _mean("crps", "CRPS, mean over standardised outputs", 4),
    _mean("energy_score", "Energy score of the standardised outputs", 4),
    _mean("rounded_nll", "NLL of the recorded interval (value ± half its recording step), in the same nats"),
    Quantity(
        "ece",
        "ECE pooled over splits and outputs / 95th percentile of a calibrated model's",
        "pit_counts",
        pooled_calibration,
        _calibration_text,
        "{:.4f}".format,
        main="ece",
        digits=4,
    ),
    Quantity(
        "coverage",
        f"Coverage of the central {100 * COVERAGE:.0f} % interval in %, from the least to the most covered output",
        "coverage",
        range_of_outputs,
        _range_text,
        _percent,
    ),
    SECONDS,
)

OF_TOYS = (
    _mean("sse", "SSE of the density on the grid", 4, "{:g}"),
    _mean("nll_above_entropy", "Test NLL above the entropy of the truth, in nats", bar="{:.3f}"),
    _mean("divergence", "Kullback-Leibler divergence from the truth on the test rows, in nats"),
    SECONDS,
)

OF_DELTAS = (
    *OF_TOYS[:-1],
    _mean("sse_seven", "SSE of the density at seven x instead of five", 4, "{:g}"),
    _small("difference_error", "Mean absolute error of the log-density against the exact slope, in float64"),
    _small("difference_error_float32", "The same in float32, in which training sees the density"),
    SECONDS,
)

QUANTITIES: Mapping[str, tuple[Quantity, ...]] = {
    "uci": OF_TABLES,
    "toy": OF_TOYS,
    "ablation": OF_TOYS,
    "delta": OF_DELTAS,
    "nested": OF_TABLES,
}
