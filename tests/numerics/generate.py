"""Write tables.json: extreme values of the log-space functions, from mpmath with 60 digits.

Run by hand (`python tests/numerics/generate.py`) when a column is added; the tests read only the table.
Inputs are floats, stored as Python writes them; answers are rounded once, to the nearest float64.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
TABLE = Path(__file__).with_name("tables.json")


def logistic(z: mp.mpf) -> mp.mpf:
    return 1 / (1 + mp.exp(-z))


def difference(upper: mp.mpf, lower: mp.mpf) -> mp.mpf:
    """s(upper) - s(lower) with as many digits as it takes."""
    with mp.workdps(60 + int(max(abs(upper), abs(lower)) / 2)):
        return logistic(upper) - logistic(lower)


def log1mexp() -> list[list[float]]:
    points = [-(10.0**k) for k in range(-300, 3, 12)]
    points += [-1e-17, -1e-16, -1e-8, -0.1, -0.5, -0.69, -0.6931471805599453, -0.70, -1.0, -5.0, -36.7, -40.0, -700.0]
    rows = []
    for log_p in sorted(set(points)):
        with mp.workdps(700):
            rows.append([log_p, float(mp.log(-mp.expm1(mp.mpf(log_p))))])
    return rows


def log_logistic_difference() -> list[list[float]]:
    ends = [-700.0, -80.0, -40.0, -20.7, -3.0, -1e-3, 0.0, 1e-9, 0.5, 12.0, 36.0, 41.0, 90.0, 700.0]
    pairs = [(upper, lower) for upper, lower in itertools.product(ends, ends) if upper > lower]
    pairs += [(z + gap, z) for z in (-600.0, -30.0, -1.0, 0.25, 4.0, 33.0, 600.0) for gap in (2.0**-30, 2.0**-12, 0.5)]
    return [[u, low, float(mp.log(difference(mp.mpf(u), mp.mpf(low))))] for u, low in pairs]


def logit_of_mixture() -> list[list[list[float]]]:
    """Weights in 64ths, which are floats; logits; and logit of the mixture."""
    shares = [[64], [32, 32], [1, 63], [16, 16, 32], [1, 2, 61]]
    ends = [-650.0, -45.0, -20.7, -2.0, 0.0, 0.75, 20.7, 44.0, 650.0]
    rows = []
    for share in shares:
        for start in range(len(ends)):
            logits = [ends[(start + 3 * k) % len(ends)] for k in range(len(share))]
            with mp.workdps(700):
                cdf = sum(mp.mpf(w) / 64 * logistic(mp.mpf(z)) for w, z in zip(share, logits, strict=True))
                sf = sum(mp.mpf(w) / 64 * logistic(-mp.mpf(z)) for w, z in zip(share, logits, strict=True))
                rows.append([[w / 64 for w in share], logits, [float(mp.log(cdf) - mp.log(sf))]])
    return rows


def soft_min_max() -> list[dict[str, object]]:
    """Lines by group: log-weights and biases (g, u), a point, and the jet there."""
    rows: list[dict[str, object]] = []
    networks = [
        ([[0.0]], [[0.0]]),
        ([[0.5, -1.0], [0.25, 2.0]], [[0.5, -0.25], [1.5, -2.0]]),
        ([[-20.0, 20.0], [20.0, -20.0]], [[0.0, 1.0], [-1.0, 0.5]]),
        ([[-3.0, 0.0, 3.0], [4.0, -4.0, 0.5]], [[30.0, -700.0, 5.0], [-30.0, 600.0, 0.0]]),
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]),
    ]
    for log_weight, bias in networks:
        for point in (-1e6, -37.5, -1.0, -1e-3, 0.0, 1e-8, 0.7, 3.0, 512.0, 1e6):
            tops, slopes = [], []
            for w, b in zip(log_weight, bias, strict=True):
                weights = [mp.exp(mp.mpf(v)) for v in w]
                powers = [mp.exp(a * mp.mpf(point) + mp.mpf(c)) for a, c in zip(weights, b, strict=True)]
                tops.append(mp.log(sum(powers)))
                slopes.append(sum(p * a for p, a in zip(powers, weights, strict=True)) / sum(powers))
            shares = [mp.exp(-top) for top in tops]
            slope = sum(share * s for share, s in zip(shares, slopes, strict=True)) / sum(shares)
            rows.append(
                {
                    "log_weight": log_weight,
                    "bias": bias,
                    "point": point,
                    "value": float(-mp.log(sum(shares))),
                    "log_slope": float(mp.log(slope)),
                }
            )
    return rows


def main() -> None:
    tables = {
        "log1mexp": log1mexp(),
        "log_logistic_difference": log_logistic_difference(),
        "logit_of_mixture": logit_of_mixture(),
        "soft_min_max": soft_min_max(),
    }
    body = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]" for name, rows in tables.items()
    )
    TABLE.write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
