"""Arguments and options that several commands share, and how their text is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError

if TYPE_CHECKING:
    from ..estimator import OgiveRegressor
    from ..tables import Table

__all__ = [
    "JsonOption",
    "ModelArgument",
    "OutOption",
    "SeedOption",
    "TableArgument",
    "check_folder",
    "load_model",
    "model_features",
    "read_bounds",
    "read_levels",
    "say_facts",
]

ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that `ogive fit` wrote.")]
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file, or - for standard input.")]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write a .csv or .parquet file, not to standard output."),
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def load_model(path: Path) -> OgiveRegressor:
    """The model in a file."""
    from ..estimator import OgiveRegressor

    return OgiveRegressor.load(path)


def model_features(model: OgiveRegressor, table: Table) -> Any:
    """The columns of a table that a model reads: by name, or all but the outputs' if it was fitted without names."""
    from ..tables import columns

    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return columns(table, [str(name) for name in names])
    features = [name for name in table.columns if name not in model.output_names_]
    if len(features) != model.n_features_in_:
        raise DataError(
            f"TABLE must have {model.n_features_in_} feature columns, for a model fitted without names; "
            f"got {len(features)}. Keep these columns alone, in their order."
        )
    return columns(table, features).to_numpy()


def check_folder(path: Path | None) -> None:
    """Refuse a file in a folder that does not exist, before any work is done for it."""
    if path is not None and not path.absolute().parent.is_dir():
        raise DataError(f"--out must name a file in a folder that exists; got '{path}'. Make the folder first.")


def read_levels(text: str) -> list[float]:
    """Quantile levels from ".05,.5,.95", each once."""
    levels = [_number(part, "--quantiles") for part in text.split(",")]
    for level in levels:
        if not 0.0 < level < 1.0:
            raise DataError(f"--quantiles must lie strictly between 0 and 1; got {level}. Write .5 for the median.")
    return list(dict.fromkeys(levels))


def read_bounds(texts: list[str], option: str) -> list[tuple[str, float]]:
    """Bounds (output, value) from "A=3"."""
    pairs = [text.rpartition("=") for text in texts]
    for text, (name, _, _) in zip(texts, pairs, strict=True):
        if not name:
            raise DataError(f"{option} must be written OUTPUT=VALUE; got '{text}'. For example {option} A=3.")
    return [(name.strip(), _number(value, option)) for name, _, value in pairs]


def say_facts(facts: dict[str, Any], as_json: bool) -> None:
    """Print facts by name: as JSON, or a line each for people."""
    if as_json:
        print(json.dumps(_finite(facts), indent=2, allow_nan=False))
        return
    width = max(len(name) for name in facts)
    for name, fact in facts.items():
        print(f"{name.replace('_', ' '):<{width}}  {_plain(fact)}")


def _finite(fact: Any) -> Any:
    """A fact with null for what JSON has no number for, such as the log of a density of zero."""
    match fact:
        case float():
            return fact if math.isfinite(fact) else None
        case dict():
            return {name: _finite(inner) for name, inner in fact.items()}
        case list() | tuple():
            return [_finite(inner) for inner in fact]
    return fact


def _plain(fact: Any) -> str:
    """A fact as people write it."""
    match fact:
        case float():
            return f"{fact:.5g}"
        case dict():
            return ", ".join(f"{name} {_plain(inner)}" for name, inner in fact.items())
        case list() | tuple():
            return ", ".join(map(_plain, fact))
    return "none" if fact in (None, "") else str(fact)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise DataError(f"{option} must be given numbers; got '{text.strip()}'. Write them as 0.5 or .5.")
    return value
