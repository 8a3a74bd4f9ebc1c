"""ogive plot: a picture of the law predicted for one row."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import DataError
from .options import ModelArgument, TableArgument, check_folder, load_model, model_features

__all__ = ["plot"]


def plot(
    model: ModelArgument,
    table: TableArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FIG", help="The picture's file: .png, .pdf, .svg, ...")],
    row: Annotated[int, typer.Option("--row", min=0, help="The row of TABLE, counted from 0.")] = 0,
    output: Annotated[
        str | None,
        typer.Option("--output", metavar="A", help="Draw this output alone, of a model with several."),
    ] = None,
) -> None:
    """Draw the density predicted for one row of TABLE; what was observed is marked if TABLE has it."""
    from .. import plotting
    from ..tables import columns, read_table

    check_folder(out)
    frame = read_table(table)
    if row >= frame.height:
        raise DataError(f"--row must lie in 0..{frame.height - 1}; got {row}. Rows are counted from 0.")
    fitted = load_model(model)
    one = frame[row : row + 1]
    law = fitted.predict_dist(model_features(fitted, one))
    law = law if output is None else law.marginal(output)
    known = all(name in frame.columns for name in law.output_names)
    observed = columns(one, law.output_names).to_numpy()[0] if known else None
    plotting.save(plotting.density(law, y=observed), out)
    print(out)
