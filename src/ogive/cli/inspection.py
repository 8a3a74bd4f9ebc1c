"""ogive score and info: how good a model is on a table, and what it is."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ..errors import NotAvailableError
from .options import JsonOption, ModelArgument, TableArgument, load_model, model_features, say_facts

__all__ = ["info", "score"]


def score(model: ModelArgument, table: TableArgument, as_json: JsonOption = False) -> None:
    """Score a model on the rows of TABLE, which needs the columns of the outputs too.

    log likelihood: mean log-density of what was observed, jointly, in the units of the outputs; larger is better.

    crps: mean distance of the predicted law from what was observed, in the units of each output; smaller is better.

    coverage 90: share of observations inside the central 90 % interval.

    calibration error: mean distance of observed from predicted frequencies (10 levels); 0 is perfect.
    """
    from ..tables import columns, read_table

    frame = read_table(table)

    from .. import metrics

    fitted = load_model(model)
    y = columns(frame, fitted.output_names_).to_numpy()
    law = fitted.predict_dist(model_features(fitted, frame))
    facts: dict[str, Any] = {
        "rows": len(law),
        "log_likelihood": -metrics.nll(law, y),
        "crps": _by_output(law.output_names, metrics.crps(law, y)),
        "coverage_90": _by_output(law.output_names, metrics.coverage(law, y, 0.9)),
    }
    try:
        facts["calibration_error"] = metrics.ece(law, y)
    except NotAvailableError:
        # Members with different orders of the outputs have no one PIT.
        facts["calibration_error"] = None
    say_facts(facts, as_json)


def info(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Say what a model is: what it reads and predicts, how it was made, and by which version of ogive."""
    from .. import storage

    header, tensors = storage.read(model)
    fitted = load_model(model)
    # By way of JSON, in which a tuple and a list are one.
    parameters, defaults = (json.loads(json.dumps(each.get_params())) for each in (fitted, type(fitted)()))
    names = getattr(fitted, "feature_names_in_", None)
    facts: dict[str, Any] = {
        "model": str(model),
        "library_version": header["library_version"],
        "format_version": header["format_version"],
        "features": [f"column {i}" for i in range(fitted.n_features_in_)] if names is None else list(names),
        "outputs": fitted.output_names_,
        "members": len(fitted.weights_),
        "epochs": fitted.n_iter_,
        "validation_log_likelihood": -float(np.mean(fitted.history_["best_validation"])),
        "numbers_stored": sum(tensor.numel() for tensor in tensors.values()),
        "parameters": parameters
        if as_json
        else {name: value for name, value in parameters.items() if value != defaults[name]},
    }
    say_facts(facts, as_json)


def _by_output(names: list[str], scores: Any) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, np.atleast_1d(scores), strict=True)}
