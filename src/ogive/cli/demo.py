"""ogive demo: a first look, on a small table that comes with the library."""

from __future__ import annotations

import time
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from .options import SeedOption

if TYPE_CHECKING:
    from ..tables import Table

__all__ = ["demo"]

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
NEAR = 2.0  # minutes

STORY = """\
Fitted 1,000 train journeys in {seconds:.0f} seconds. Now in {folder}/:

  quantiles.csv  for ten journeys to come, the mean and five quantiles of their minutes
  density.png    the law predicted for row {row} of them (rows count from 0)
  model.ogive    the model

Look at the picture: two humps, for the train at the change caught or missed. The mean, {mean:.0f} minutes, lies
between them: the journey takes that long, give or take {near:.0f} minutes, with a probability of {chance:.1f} % only.

Next:
  ogive predict {folder}/model.ogive {folder}/quantiles.csv --interval .8
  ogive prob {folder}/model.ogive {folder}/quantiles.csv --above minutes={mean:.0f}
  ogive fit --help
"""


def demo(
    seed: SeedOption = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
) -> None:
    """Fit a bundled table in half a minute; write quantiles, a picture and the model to the folder ogive-demo."""
    from .. import plotting
    from ..tables import split, write_table

    ax = plotting.new_axes(6.4, 3.6)
    folder = Path("ogive-demo")
    folder.mkdir(exist_ok=True)
    parts, new = split(_bundled("journeys.csv"), ["minutes"]), _bundled("new_journeys.csv")

    from ..estimator import OgiveRegressor

    started = time.perf_counter()
    model = OgiveRegressor(random_state=seed, verbose=int(not quiet))
    model.fit(parts.X, parts.y)
    seconds = time.perf_counter() - started

    law = model.predict_dist(new)
    mean = law.mean()[:, 0]
    row = int(np.argmax(np.abs(mean - law.median()[:, 0])))
    columns = {name: new[name].to_numpy() for name in new.columns} | {"minutes_mean": mean}
    columns |= {f"minutes_q{level}": values for level, values in zip(LEVELS, law.ppf(LEVELS).T, strict=True)}
    write_table(columns, folder / "quantiles.csv")
    plotting.density(law, row, ax=ax).axvline(mean[row], color=plotting.RED, linestyle="--", label="mean")
    ax.legend(frameon=False)
    plotting.save(ax, folder / "density.png")
    model.save(folder / "model.ogive")

    one = law[row]
    chance = 100.0 * (one.cdf(mean[row] + NEAR) - one.cdf(mean[row] - NEAR))[0]
    print(
        STORY.format(seconds=seconds, folder=folder, row=row, mean=mean[row], near=NEAR, chance=chance),
        end="",
    )


def _bundled(name: str) -> Table:
    from ..tables import read_table

    with as_file(files("ogive") / "data" / name) as path:
        return read_table(path)
