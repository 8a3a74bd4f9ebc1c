"""The published files of the seven UCI sets: from bytes to numbers.

One parser for each file, `parse(data, columns)`: the file's bytes and the wanted columns in; a
float64 array (rows, columns) out. Columns are taken by name where the published header has these
names, by position where it has others or none. The readers of Excel files are imported when needed.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = list[list[Any]]


def plain(data: bytes, columns: Sequence[str]) -> Array:
    """Commas and a header; every row is complete."""
    return _numbers(_pick(_cells(data, ","), columns))


def fish(data: bytes, columns: Sequence[str]) -> Array:
    """Semicolons and no header."""
    return _numbers(_first(_cells(data, ";"), columns))


def concrete(data: bytes, columns: Sequence[str]) -> Array:
    """An xls sheet with a long header, rounded to what it shows: strength 2 decimals, the rest 1.

    The cells hold more digits than the sheet shows; the tables in use hold the shown ones.
    """
    rows = _first(_xls(data)[1:], columns)
    return _numbers([[*(_shown(cell, "0.1") for cell in row[:-1]), _shown(row[-1], "0.01")] for row in rows])


def energy(data: bytes, columns: Sequence[str]) -> Array:
    """An xlsx sheet with empty rows and columns around the table."""
    return _numbers(_pick(_xlsx(data), columns))


def parkinsons(data: bytes, columns: Sequence[str]) -> Array:
    """Commas and a header; subject, age, sex and time of the test are left out."""
    return plain(data, columns)


def temperature(data: bytes, columns: Sequence[str]) -> Array:
    """Commas and a header; rows with a gap are dropped.

    A gap anywhere counts: the last two rows are extremes of the columns, without station and date.
    """
    return _numbers(_pick([row for row in _cells(data, ",") if not any(map(_is_gap, row))], columns))


def air(data: bytes, columns: Sequence[str]) -> Array:
    """Semicolons, decimal commas, empty rows at the end and two empty columns.

    Date and time are left out. -200 means not measured: rows without T, RH or AH are dropped, the
    marks in the other columns stay.
    """
    rows = [row[2:] for row in _filled(_cells(data, ";"))[1:]]
    numbers = _numbers([[cell.replace(",", ".") for cell in row] for row in _first(rows, columns)])
    return numbers[np.all(numbers[:, -3:] != -200.0, axis=1)]


def skillcraft(data: bytes, columns: Sequence[str]) -> Array:
    """Commas and a header; rows with a question mark are dropped, and so is the game's number."""
    return _numbers(_pick([row for row in _cells(data, ",") if "?" not in row], columns))


def member(archive: bytes, filename: str) -> bytes:
    """Take one file out of a zip archive, whatever folder it lies in there."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for path in opened.namelist():
                if path.rsplit("/", 1)[-1] == filename:
                    return opened.read(path)
    except zipfile.BadZipFile as error:
        raise ValueError("a file that does not open as a zip archive") from error
    raise ValueError(f"an archive without {filename}")


def _cells(data: bytes, delimiter: str) -> Rows:
    """Read delimited text; all rows must be equally long."""
    text = data.decode("utf-8-sig", errors="replace")
    rows: Rows = [
        [cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row
    ]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise ValueError(f"{len(row)} cells in row {number} and {len(rows[0])} in row 1")
    return rows


def _xls(data: bytes) -> Rows:
    """Cells of the first sheet of an old Excel file."""
    import xlrd

    # xlrd prints its remarks on standard output unless they are given another place.
    sheet = xlrd.open_workbook(file_contents=data, logfile=io.StringIO()).sheet_by_index(0)
    return _filled([sheet.row_values(row) for row in range(sheet.nrows)])


def _xlsx(data: bytes) -> Rows:
    """Cells of the first sheet of a newer Excel file."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    rows = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    book.close()
    return _filled(rows)


def _is_gap(cell: Any) -> bool:
    """Whether a cell of a text or of a sheet is empty."""
    return cell is None or cell == ""


def _filled(rows: Rows) -> Rows:
    """Drop the rows without any content."""
    return [row for row in rows if not all(map(_is_gap, row))]


def _shown(cell: Any, step: str) -> float:
    """Round half away from zero, as a sheet shows its numbers."""
    return float(Decimal(repr(float(cell))).quantize(Decimal(step), ROUND_HALF_UP))


def _pick(rows: Rows, columns: Sequence[str]) -> Rows:
    """Take the named columns, in this order, of rows whose first is the header."""
    header = rows[0] if rows else []
    missing = [name for name in columns if name not in header]
    if missing:
        raise ValueError(f"a header without {', '.join(missing)}")
    order = [header.index(name) for name in columns]
    return [[row[i] for i in order] for row in rows[1:]]


def _first(rows: Rows, columns: Sequence[str]) -> Rows:
    """Take as many leading columns as there are names."""
    if rows and len(rows[0]) < len(columns):
        raise ValueError(f"{len(rows[0])} columns instead of {len(columns)}")
    return [row[: len(columns)] for row in rows]


def _numbers(rows: Rows) -> Array:
    """Turn cells into float64."""
    if not rows:
        raise ValueError("no rows")
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a cell that is not a number ({error})") from error
