"""Makes the two tables of `ogive demo`: journeys to work by train, and ten journeys still to come.

    python examples/make_demo_table.py [folder]

A journey takes a ride that grows with the distance, a skewed delay that grows with rain and rush hour, and, when the
train at the change is missed, the wait for the next one. So minutes have two humps, one headway apart, and their mean
is a time that hardly any journey takes:

    rush      = exp(-(hour - 8)^2) + exp(-((hour - 17.5) / 1.2)^2)
    missed    ~ Bernoulli(1 / (1 + exp(1.2 - 0.25 rain - rush)))
    minutes   = 9 + 1.9 distance + Gamma(2, scale 0.7 + 0.15 rain + 0.4 rush) + missed headway
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

SEED = 20240229
ROWS = 1000
FEATURES = ("distance_km", "hour", "rain_mm", "headway_min")
# Ten journeys to come: near and far, dry and wet, in and out of the rush hours, with frequent and with rare trains.
NEW = (
    (4.0, 11.0, 0.0, 12.0),
    (4.0, 8.0, 0.0, 12.0),
    (4.0, 8.0, 5.0, 30.0),
    (12.0, 8.0, 0.0, 30.0),
    (12.0, 11.0, 0.0, 30.0),
    (12.0, 17.5, 4.0, 20.0),
    (18.0, 14.0, 1.0, 20.0),
    (18.0, 17.5, 0.0, 35.0),
    (22.0, 8.0, 6.0, 15.0),
    (22.0, 20.0, 0.0, 35.0),
)


def journeys(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw n journeys: the features, and the minutes taken, rounded to what the table keeps."""
    distance = rng.uniform(2.0, 25.0, n).round(1)
    hour = rng.uniform(6.0, 21.0, n).round(2)
    rain = np.where(rng.random(n) < 0.6, 0.0, rng.exponential(2.0, n).clip(max=8.0)).round(1)
    headway = rng.uniform(10.0, 40.0, n).round(0)
    rush = np.exp(-((hour - 8.0) ** 2)) + np.exp(-(((hour - 17.5) / 1.2) ** 2))
    missed = rng.random(n) < 1.0 / (1.0 + np.exp(1.2 - 0.25 * rain - rush))
    delay = rng.gamma(2.0, 0.7 + 0.15 * rain + 0.4 * rush)
    minutes = 9.0 + 1.9 * distance + delay + missed * headway
    return np.column_stack([distance, hour, rain, headway, minutes.round(2)])


def write(path: Path, names: tuple[str, ...], rows: np.ndarray) -> None:
    """Write rows as CSV, numbers as short as they are."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(names)
        lines.writerows([f"{value:g}" for value in row] for row in rows)


if __name__ == "__main__":
    default = Path(__file__).parents[1] / "src" / "ogive" / "data"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    write(folder / "journeys.csv", (*FEATURES, "minutes"), journeys(np.random.default_rng(SEED), ROWS))
    write(folder / "new_journeys.csv", FEATURES, np.array(NEW))
