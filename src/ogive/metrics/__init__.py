"""How good a prediction was: functions of (prediction, y), never of a model.

Any object with the public methods of a Prediction can be scored, whoever made it. A score per output has the
shape of one row of y: a number for y (n,), an array (d,) for y (n, d).
"""

from __future__ import annotations

from .calibration import coverage, ece, ece_band, ece_of_pit, pit
from .recording import recording_step, rounded_nll
from .scorers import scorer
from .scores import crps, energy_score, interval_score, nll, pinball

__all__ = [
    # proper scores
    "nll",
    "crps",
    "energy_score",
    "interval_score",
    "pinball",
    # calibration
    "pit",
    "ece",
    "ece_of_pit",
    "ece_band",
    "coverage",
    # outputs recorded to a step
    "rounded_nll",
    "recording_step",
    # scikit-learn
    "scorer",
]
