"""ogive predict, sample and prob: answers for the rows of a table, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from ..errors import DataError
from .options import (
    ModelArgument,
    OutOption,
    SeedOption,
    TableArgument,
    check_folder,
    load_model,
    model_features,
    read_bounds,
    read_levels,
)

if TYPE_CHECKING:
    from ..prediction import Prediction

__all__ = ["predict", "prob", "sample"]

Columns = dict[str, NDArray[np.float64]]


def predict(
    model: ModelArgument,
    table: TableArgument,
    quantiles: Annotated[
        str | None, typer.Option("--quantiles", metavar="LEVELS", help="Quantiles, for example .05,.5,.95")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="COVERAGE", help="A central interval, for example .9"),
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="The mean.")] = False,
    out: OutOption = None,
) -> None:
    """Write quantiles, an interval or the mean of each output, one line for each row of TABLE.

    Columns are named OUTPUT_mean, OUTPUT_q0.05, OUTPUT_lower and OUTPUT_upper. Without an option: the mean, the
    median and the 90 % interval.
    """
    levels = [] if quantiles is None else read_levels(quantiles)
    if interval is not None and not 0.0 < interval < 1.0:
        raise DataError(f"--interval must lie strictly between 0 and 1; got {interval}. Write .9 for 90 %.")
    everything = not levels and interval is None and not mean
    law = _law(model, table, out)
    means = law.mean() if mean or everything else None
    medians = law.median() if everything else None
    ends = law.interval(interval or 0.9) if interval is not None or everything else None
    at_levels = law.quantiles(levels) if levels else None
    found: Columns = {}
    for j, name in enumerate(law.output_names):
        if means is not None:
            found[f"{name}_mean"] = means[:, j]
        if medians is not None:
            found[f"{name}_median"] = medians[:, j]
        if at_levels is not None:
            found |= {f"{name}_q{level:.15g}": at_levels[:, j, k] for k, level in enumerate(levels)}
        if ends is not None:
            found |= {f"{name}_lower": ends[:, j, 0], f"{name}_upper": ends[:, j, 1]}
    _write(found, out)


def sample(
    model: ModelArgument,
    table: TableArgument,
    size: Annotated[int, typer.Option("--size", "-n", min=1, help="Draws for each row.")] = 1,
    seed: SeedOption = 0,
    out: OutOption = None,
) -> None:
    """Draw from the predicted law of each row: one line a draw, with the row (from 0) and a column for each output."""
    law = _law(model, table, out)
    draws = law.sample(size, random_state=seed).reshape(size, len(law), law.n_outputs)
    found: Columns = {"row": np.repeat(np.arange(len(law)), size)}
    found |= {name: draws[:, :, j].T.ravel() for j, name in enumerate(law.output_names)}
    _write(found, out)


def prob(
    model: ModelArgument,
    table: TableArgument,
    above: Annotated[
        list[str] | None,
        typer.Option("--above", metavar="OUTPUT=VALUE", help="The output exceeds this value."),
    ] = None,
    below: Annotated[
        list[str] | None,
        typer.Option("--below", metavar="OUTPUT=VALUE", help="The output is at most this value."),
    ] = None,
    out: OutOption = None,
) -> None:
    """Write the probability, for each row of TABLE, that an output lies above a value, below one, or between two.

    ogive prob houses.ogive new.csv --above price=100 --below price=200
    """
    lows, highs = read_bounds(above or [], "--above"), read_bounds(below or [], "--below")
    names = sorted({name for name, _ in lows + highs})
    if len(names) != 1:
        raise DataError(f"--above and --below must name one output; got {', '.join(names) or 'none'}. Name one.")
    low = max((value for _, value in lows), default=-np.inf)
    high = min((value for _, value in highs), default=np.inf)
    if low >= high:
        raise DataError(f"--above must be less than --below; got {low} and {high}. Swap them.")
    law = _law(model, table, out).marginal(names[0])
    _write({"probability": _between(law, low, high)}, out)


def _between(law: Prediction, low: float, high: float) -> NDArray[np.float64]:
    """P(low < Y <= high) of one output, from the tail in which the interval lies: small answers keep their digits."""
    nothing, all_ = np.zeros(len(law)), np.ones(len(law))
    below_low, above_low = (nothing, all_) if low == -np.inf else (law.cdf(low), law.sf(low))
    below_high, above_high = (all_, nothing) if high == np.inf else (law.cdf(high), law.sf(high))
    return np.where(below_low > 0.5, above_low - above_high, below_high - below_low)


def _law(model: ModelArgument, table: TableArgument, out: OutOption) -> Prediction:
    """The model's prediction for the rows of a table."""
    from ..tables import read_table

    check_folder(out)
    frame = read_table(table)
    fitted = load_model(model)
    return fitted.predict_dist(model_features(fitted, frame))


def _write(found: Columns, out: OutOption) -> None:
    from ..tables import write_table

    write_table(found, out)
