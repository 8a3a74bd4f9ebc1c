"""What an estimator's parameters come to for one table: the design of the network and how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .arrays import Array
from .choices import orders_of, regimes_of, support_of
from .errors import DataError
from .nn.architecture import Architecture
from .training import Recipe

__all__ = ["Plan", "plan_for"]

# Widths of the trunk: few rows fill a narrow one, many deserve a wide one.
NARROW, WIDE, MANY_ROWS = (64, 64), (128, 128), 1500
RAMPS = 8
# Epochs are counted in steps of the optimiser, so that small tables, whose epochs are short, may train for long.
MOST_STEPS, MOST_EPOCHS, FEWEST_EPOCHS = 8000, 1500, 20
PATIENT_STEPS, PATIENT_EPOCHS = 200, 30


class Plan(NamedTuple):
    """A network, its training, and for each member the number of its regime."""

    design: Architecture
    recipe: Recipe
    regimes: list[int]


def plan_for(parameters: Mapping[str, Any], n_rows: int, n_features: int, targets: Array) -> Plan:
    """The plan for `n_rows` rows to learn from, with the targets (n, d) of all rows."""
    order = orders_of(parameters["order"], parameters["n_members"], targets.shape[1])
    regimes = regimes_of(parameters["noise"], parameters["dropout"], order)
    settings: dict[str, Any] = {
        "n_features": n_features,
        "order": order,
        "support": support_of(parameters["support"], targets),
        "groups": parameters["groups"],
        "units": parameters["units"],
        "hidden": parameters["hidden"] or (NARROW if n_rows < MANY_ROWS else WIDE),
        "delta": parameters["delta"] if parameters["derivative"] == "finite-difference" else None,
        "ramps": RAMPS,
        "ramped": tuple(regime.ramps for regime in regimes),
    }
    steps = max(1, round(n_rows / parameters["batch_size"]))
    recipe = Recipe(
        learning_rate=parameters["learning_rate"],
        batch_size=parameters["batch_size"],
        max_epochs=parameters["max_epochs"] or min(MOST_EPOCHS, max(FEWEST_EPOCHS, MOST_STEPS // steps)),
        patience=parameters["patience"] or max(PATIENT_EPOCHS, PATIENT_STEPS // steps),
        validation_fraction=parameters["validation_fraction"],
        weight_decay=parameters["weight_decay"],
        noise=tuple(regime.noise for regime in regimes),
        dropout=tuple(regime.dropout for regime in regimes),
    )
    different = sorted(set(regimes))
    changes = dict(parameters["architecture"] or {})
    unknown = [name for name in changes if name not in Architecture.__dataclass_fields__]
    if unknown:
        raise DataError(f"architecture must name fields of Architecture; got {unknown[0]!r}. Leave it out.")
    design = Architecture(**(settings | changes))
    return Plan(design, recipe, [different.index(regime) for regime in regimes])
