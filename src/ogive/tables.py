"""Tables in files and pipes: CSV and Parquet, read and written with polars.

A table is checked where it enters: every message names the column and the first row that is wrong. Rows are
counted from 0, the header left out. Blanks around the names and values of a CSV do not count.

polars is imported inside the functions, when the bytes are there: from then on Ctrl-C does not end a read.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DataError

if TYPE_CHECKING:
    import polars as pl

    Table = pl.DataFrame

__all__ = ["Parts", "column_names", "columns", "read_table", "split", "write_table"]

MISSING = ("", "na", "n/a", "nan", "null", "none")
SEPARATORS = (",", ";", "\t")
CHUNK = 1 << 16
REMEDY = "Turn it into numbers, or leave the column out."


class Parts(NamedTuple):
    """A table taken apart: features and outputs as frames of floats, and the weights of the rows if any."""

    X: Table
    y: Table
    weights: NDArray[np.float64] | None


def read_table(source: str | os.PathLike[str]) -> Table:
    """Read a table from a CSV or Parquet file, or from standard input.

    A column of text in which every value is a number, true, false or missing becomes floats.

    Parameters
    ----------
    source : str or path
        A file that ends in .csv, .tsv, .txt, .parquet or .pq. "-", standard input, and a name without an ending
        are told apart by their first bytes. Values are separated by commas, or else by semicolons or tabs.

    Raises
    ------
    DataError
        When the table is empty or ragged, is not what its ending says, or has columns without a name of their own.

    Examples
    --------
    >>> read_table("fish.csv").columns  # doctest: +SKIP
    ['length', 'width', 'weight']
    """
    name = "standard input" if str(source) == "-" else f"'{os.fspath(source)}'"
    data = sys.stdin.buffer.read() if str(source) == "-" else Path(source).read_bytes()
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise DataError(f"{name} must hold a table; got nothing. Give it a header and rows.")
    frame = _parquet(data, name) if _is_parquet(source, data) else _csv(data, name)
    if frame.height == 0:
        raise DataError(f"{name} must have at least one row; got a header alone. Add rows.")
    return frame.with_columns(_floats(column) for column in frame.iter_columns())


def write_table(table: Table | Mapping[str, ArrayLike], target: str | os.PathLike[str] | None = None) -> None:
    """Write a table, given as a frame or as columns by name, as CSV or Parquet.

    Parameters
    ----------
    table : DataFrame or mapping
        Columns of one length. Floats are written so that they read back to the same bits.
    target : str or path, optional
        A file that ends in .csv, .parquet or .pq; None and "-" write CSV to standard output.
    """
    import polars as pl

    frame = pl.DataFrame(table)
    if target is None or str(target) == "-":
        rest = memoryview(frame.write_csv().encode())
        while rest:  # an unbuffered stream may take less than it is given
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
        return
    path, buffer = Path(target), io.BytesIO()
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise DataError(
            f"a table's file must end in .csv or .parquet; got '{path}'. Change its ending, or write to '-'."
        )
    if path.suffix.lower() == ".csv":
        frame.write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    path.write_bytes(buffer.getvalue())


def split(table: Table, targets: Sequence[str], *, drop: Sequence[str] = (), weights: str | None = None) -> Parts:
    """Take a table apart for fitting or scoring: the features are whatever is not named.

    Parameters
    ----------
    table : DataFrame
    targets : names of the outputs, in the order wanted
    drop : names of columns that are no features
    weights : name of the column of row weights
    """
    if not targets:
        raise DataError("targets must name at least one column; got none. Name the columns to predict.")
    roles = [*targets, *drop, *([] if weights is None else [weights])]
    _in_table(table, roles)
    twice = [name for place, name in enumerate(roles) if name in roles[:place]]
    if twice:
        raise DataError(f"column '{twice[0]}' must have one role; got it named twice. Name it once.")
    features = [name for name in table.columns if name not in roles]
    if not features:
        raise DataError("the table must have at least one feature; got none besides the named columns. Name fewer.")
    of_rows = None if weights is None else columns(table, [weights])[weights].to_numpy()
    return Parts(columns(table, features), columns(table, targets), of_rows)


def columns(table: Table, names: Sequence[str]) -> Table:
    """The named columns of a table, in that order, as finite floats; the table may have more.

    Raises
    ------
    DataError
        When a column is missing or has a value that is no finite number: names the column and the first such row.
    """
    import polars as pl

    _in_table(table, names)
    chosen = table.select(names)
    for column in chosen.iter_columns():
        _check_numbers(column)
    return chosen.cast(pl.Float64)


def column_names(texts: Iterable[str], table: Table) -> list[str]:
    """Names from the shell: "A,B" are two columns, unless the table has one of that name; quotes keep a comma."""
    found: list[str] = []
    for text in texts:
        found += [text] if text in table.columns else [name.strip() for name in next(csv.reader([text]), [])]
    return [name for name in found if name]


def _is_parquet(source: str | os.PathLike[str], data: bytes) -> bool:
    suffix = "" if str(source) == "-" else Path(source).suffix.lower()
    if suffix in ("", ".parquet", ".pq"):
        return bool(suffix) or data.startswith(b"PAR1")
    if suffix not in (".csv", ".tsv", ".txt"):
        raise DataError(
            f"a table's file must end in .csv or .parquet; got '{os.fspath(source)}'. Save it as one of these."
        )
    return False


def _parquet(data: bytes, name: str) -> Table:
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(data))
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"{name} must be a Parquet file; got another ({reason}). Write it again.") from error


def _csv(data: bytes, name: str) -> Table:
    # Not polars.read_csv: it fills short lines with nulls, renames equal columns and misreads quotes in names.
    import polars as pl

    try:
        text = data.decode().strip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name} must be text in UTF-8; got byte {data[error.start]:#04x} at position {error.start}. "
            "Save it as CSV in UTF-8."
        ) from error
    chunks: list[Table] = []
    reader = _reader(text, ",")
    try:
        reader = _reader(text, _separator(text))
        names = _header([field.strip() for field in next(reader)], name)
        while rows := [row for row in islice(reader, CHUNK) if row]:
            _check_lengths(rows, names, name, sum(chunk.height for chunk in chunks))
            chunks.append(pl.DataFrame(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))))
    except csv.Error as error:
        line = max(1, reader.line_num)
        raise DataError(f"{name} must be a CSV; got {error}, in line {line}. Check its quotes.") from error
    return pl.concat(chunks) if chunks else pl.DataFrame({field: [] for field in names})


def _reader(text: str, separator: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)


def _separator(text: str) -> str:
    """The first separator that cuts the header into several fields."""
    return next((mark for mark in SEPARATORS if len(next(_reader(text, mark))) > 1), ",")


def _header(names: list[str], table: str) -> list[str]:
    for place, name in enumerate(names):
        if not name:
            raise DataError(
                f"{table} must name every column; got no name for column {place}. Name it, or leave it out "
                "(an index that pandas wrote: to_csv(..., index=False))."
            )
        if name in names[:place]:
            raise DataError(
                f"{table} must give every column a name of its own; got '{name}' for columns "
                f"{names.index(name)} and {place}. Rename one."
            )
    return names


def _check_lengths(rows: list[list[str]], names: list[str], table: str, first: int) -> None:
    for place, row in enumerate(rows, start=first):
        if len(row) != len(names):
            raise DataError(
                f"{table} must have {len(names)} values in every row, one for each name; got {len(row)} in "
                f"row {place}. Add or remove separators there."
            )


def _floats(column: pl.Series) -> pl.Series:
    """Text in which every value is a number, true or false, or missing, as floats; anything else as it is."""
    import polars as pl

    if column.dtype == pl.Boolean:
        return column.cast(pl.Float64)
    if column.dtype != pl.String:
        return column
    known, numbers = _numbers(column)
    return column if (known.is_not_null() & numbers.is_null()).any() else numbers


def _numbers(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Text without blanks and with null for what is missing, and its numbers with null where it is none."""
    import polars as pl

    plain = column.str.strip_chars()
    low = plain.str.to_lowercase()
    known = pl.select(pl.when(low.is_in(list(MISSING))).then(None).otherwise(plain)).to_series()
    digits = low.replace({"true": "1", "false": "0"})
    return known, digits.cast(pl.Float64, strict=False).fill_nan(None)


def _check_numbers(column: pl.Series) -> None:
    """Refuse a column that is not all finite numbers."""
    import polars as pl

    name, rows = column.name, len(column)
    if column.dtype == pl.String:
        known, numbers = _numbers(column)
        bad = known.is_not_null() & numbers.is_null()
        raise DataError(
            f"column '{name}' must be numeric; got {known[_first(bad)]!r} in row {_first(bad)} "
            f"({bad.sum()} of {rows} rows are no numbers). {REMEDY}"
        )
    if not (column.dtype.is_numeric() or column.dtype == pl.Null):
        raise DataError(f"column '{name}' must be numeric; got {column.dtype}. {REMEDY}")
    values = column.cast(pl.Float64)
    missing = values.is_null() | values.is_nan().fill_null(True)
    if missing.any():
        raise DataError(
            f"column '{name}' must have a value in every row; got none in {missing.sum()} of {rows} rows "
            f"(first: row {_first(missing)}). Fill them in or drop these rows."
        )
    infinite = values.is_infinite()
    if infinite.any():
        raise DataError(
            f"column '{name}' must be finite; got infinity in {infinite.sum()} of {rows} rows "
            f"(first: row {_first(infinite)}). Drop these rows."
        )


def _in_table(table: Table, names: Iterable[str]) -> None:
    """Refuse a name that is no column, with the nearest one that is."""
    for name in names:
        if name not in table.columns:
            near = difflib.get_close_matches(name, table.columns, n=1)
            shown = ", ".join(table.columns[:12]) + ", ..." * (len(table.columns) > 12)
            advice = f"Did you mean '{near[0]}'?" if near else "Name one of these."
            raise DataError(f"column '{name}' must be in the table; got the columns {shown}. {advice}")


def _first(mask: pl.Series) -> int:
    return int(mask.arg_max() or 0)
