"""ogive fit: from a table to a model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import DataError
from .options import JsonOption, SeedOption, TableArgument, check_folder, say_facts

__all__ = ["fit"]

Support = str | list[tuple[float | None, float | None]] | None


def fit(
    table: TableArgument,
    target: Annotated[
        list[str],
        typer.Option("--target", "-t", metavar="A,B", help="The columns to predict, jointly if several."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="MODEL", help="The model's file.", show_default="TABLE's name with .ogive"),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", "--exclude", metavar="C,D", help="Columns that are no features."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="COLUMN", help="A column with the weight of each row.")
    ] = None,
    support: Annotated[
        list[str] | None,
        typer.Option(
            "--support",
            metavar="LAW",
            help="Where outputs can lie: positive, or LOW,HIGH for each target in turn; an open side stays empty.",
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option("--members", min=1, help="Networks in the ensemble.", show_default="the library's"),
    ] = None,
    max_epochs: Annotated[
        int | None,
        typer.Option("--max-epochs", min=1, help="Most passes over the rows.", show_default="the library's"),
    ] = None,
    seed: SeedOption = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a model of TABLE's target columns given its other columns, and write it to a file.

    ogive fit houses.csv --target price --drop id --out houses.ogive
    """
    from ..tables import column_names, read_table, split

    path = out or Path("model.ogive" if table == "-" else f"{Path(table).stem}.ogive")
    check_folder(path)
    bounds = _support(support or [])
    frame = read_table(table)
    dropped = column_names(drop or [], frame)
    parts = split(frame, column_names(target, frame), drop=dropped, weights=weights)
    if parts.X.height < 2:
        raise DataError("TABLE must have at least two rows to be fitted; got one. Add rows.")

    from ..estimator import OgiveRegressor

    chosen: dict[str, Any] = {"n_members": members, "max_epochs": max_epochs}
    model = OgiveRegressor(
        random_state=seed,
        support=bounds,
        verbose=int(not quiet),
        **{name: value for name, value in chosen.items() if value is not None},
    )
    started = time.perf_counter()
    model.fit(parts.X, parts.y, sample_weight=parts.weights)
    seconds = time.perf_counter() - started
    model.save(path)
    facts = {
        "model": str(path),
        "rows": parts.X.height,
        "features": parts.X.columns,
        "outputs": parts.y.columns,
        "members": len(model.weights_),
        "epochs": int(model.n_iter_),
        "seconds": round(seconds, 2),
    }
    say_facts(facts, as_json)


def _support(texts: list[str]) -> Support:
    """The estimator's support from the shell's words."""
    if not texts:
        return None
    if texts == ["positive"]:
        return "positive"
    return [_pair(text) for text in texts]


def _pair(text: str) -> tuple[float | None, float | None]:
    ends = [end.strip() for end in text.split(",")]
    try:
        low, high = (float(end) if end else None for end in ends)
    except ValueError as error:
        raise DataError(
            f"--support must be positive or LOW,HIGH; got '{text}'. Write for example 0,1, or 0, for 0 and above."
        ) from error
    return low, high
