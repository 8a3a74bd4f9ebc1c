"""Tables come back as they were written, and what is wrong with one is named: the column, the first row, the cure."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ogive.errors import DataError
from ogive.tables import column_names, columns, read_table, split, write_table

NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).map(str.strip).filter(bool)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def read(content: str | bytes, folder: Path, name: str = "t.csv") -> pl.DataFrame:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path)


# --- there and back


@pytest.mark.parametrize("ending", [".csv", ".CSV", ".parquet", ".pq"])
@given(names=st.lists(NAMES, min_size=2, max_size=4, unique=True), data=st.data())
def test_a_table_comes_back_to_the_bit(tmp_path_factory, ending, names, data):
    n = data.draw(st.integers(1, 4))
    table = {name: data.draw(st.lists(NUMBERS, min_size=n, max_size=n)) for name in names}
    path = tmp_path_factory.mktemp("table") / f"t{ending}"
    write_table(table, path)
    found = read_table(path)
    assert found.columns == names
    for name, values in table.items():
        assert np.array_equal(found[name].to_numpy(), np.array(values))
        assert np.array_equal(np.signbit(found[name].to_numpy()), np.signbit(values))


@pytest.mark.parametrize("writer", ["pandas", "polars", "numpy"])
def test_csv_of_other_writers_is_read(tmp_path, writer):
    values = np.random.default_rng(0).normal(size=(20, 3)) * 10.0 ** np.arange(-200, 400, 200)
    frame = pd.DataFrame(values, columns=["a b", 'say "c"', "d,e"])
    path = tmp_path / "t.csv"
    if writer == "pandas":
        frame.to_csv(path, index=False)
    elif writer == "polars":
        pl.DataFrame(values, schema=list(frame.columns)).write_csv(path)
    else:
        np.savetxt(path, values, delimiter=", ", fmt="%.17g", header='a b, "say ""c""", "d,e"', comments="")
    found = read_table(path)
    assert found.columns == list(frame.columns)
    assert np.allclose(found.to_numpy(), values, rtol=1e-15)


def test_parquet_of_pandas_is_read(tmp_path):
    pd.DataFrame({"i": [1, 2], "f": [0.5, 1.5], "b": [True, False], "s": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet")
    assert columns(found, ["i", "f", "b"]).rows() == [(1.0, 0.5, 1.0), (2.0, 1.5, 0.0)]
    assert found["s"].to_list() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", {"a": [1.0], "b": [2.0]}),
        ("a,b\r\n1,2\r\n", {"a": [1.0], "b": [2.0]}),
        ("a,b\r1,2", {"a": [1.0], "b": [2.0]}),
        ("\ufeffa,b\n1,2\n", {"a": [1.0], "b": [2.0]}),
        ("\n\n a , b\n 1 , 2\n\n\n3,4\n\n", {"a": [1.0, 3.0], "b": [2.0, 4.0]}),
        ("a;b\n1;2\n", {"a": [1.0], "b": [2.0]}),
        ("a\tb\n1\t2\n", {"a": [1.0], "b": [2.0]}),
        ("a\n1\n2\n", {"a": [1.0, 2.0]}),
        ("a\n1e3\n-.5\n", {"a": [1000.0, -0.5]}),
        ("a\ntrue\nFalse\n", {"a": [1.0, 0.0]}),
        ("a\n1\n NA \nnan\nNULL\n", {"a": [1.0, None, None, None]}),
        ('a,"b\nc"\n"1",x\n', {"a": [1.0], "b\nc": ["x"]}),
    ],
)
def test_csv_is_read_as_people_write_it(tmp_path, text, expected):
    assert read(text, tmp_path).to_dict(as_series=False) == expected


def test_many_rows_are_read_in_pieces(tmp_path):
    rows = np.arange(2 * (1 << 16) + 5)
    write_table({"a": rows, "b": -rows}, tmp_path / "t.csv")
    assert np.array_equal(read_table(tmp_path / "t.csv")["a"].to_numpy(), rows)


class Pipe:
    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_standard_input_is_told_by_its_bytes(tmp_path, monkeypatch, ending):
    write_table({"a": [1.0, 2.0], "b": [3.0, 4.0]}, tmp_path / f"t{ending}")
    data = (tmp_path / f"t{ending}").read_bytes()
    monkeypatch.setattr(sys, "stdin", Pipe(data))
    assert read_table("-").rows() == [(1.0, 3.0), (2.0, 4.0)]
    assert read(data, tmp_path, "no_ending").rows() == [(1.0, 3.0), (2.0, 4.0)]


@pytest.mark.parametrize("target", [None, "-"])
def test_standard_output_is_csv(monkeypatch, target):
    monkeypatch.setattr(sys, "stdout", Pipe())
    write_table(pl.DataFrame({"größe": [0.1]}), target)
    assert sys.stdout.buffer.getvalue() == "größe\n0.1\n".encode()


# --- what is refused as a whole


def test_no_such_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        write_table({"a": [1.0]}, tmp_path / "none" / "t.csv")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "'.*t.csv' must hold a table; got nothing. Give it a header and rows"),
        (" \n\r\n", "must hold a table; got nothing"),
        ("\ufeff\n", "must hold a table; got nothing"),
        ("a,b\n", "must have at least one row; got a header alone"),
        ("a,b\n1,2\n3\n", "must have 2 values in every row, one for each name; got 1 in row 1"),
        ("a,b\n1,2\n\n3,4,5\n", "must have 2 values in every row, one for each name; got 3 in row 1"),
        ("a,b,a\n1,2,3\n", "every column a name of its own; got 'a' for columns 0 and 2. Rename one"),
        (",a\n0,1\n", r"must name every column; got no name for column 0.*index=False"),
        ('a,b\n"1,2\n', "must be a CSV; got unexpected end of data, in line 2. Check its quotes"),
        ('"a"b,c\n1,2\n', "must be a CSV; got .*, in line 1"),
        (b"a,b\n\xff,2\n", "must be text in UTF-8; got byte 0xff at position 4"),
        ("a,b\n1,2\n".encode("utf-16"), "must be text in UTF-8; got byte 0xff at position 0"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, content, match):
    with pytest.raises(DataError, match=match):
        read(content, tmp_path)


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"must end in \.csv or \.parquet; got '.*t\.xlsx'\. Save it"):
        read("a\n1\n", tmp_path, "t.xlsx")
    with pytest.raises(DataError, match=r"must end in \.csv or \.parquet; got 't\.xlsx'\. Change its ending"):
        write_table({"a": [1.0]}, "t.xlsx")
    with pytest.raises(DataError, match=r"must be a Parquet file; got another \("):
        read("a\n1\n", tmp_path, "t.parquet")


@given(content=st.binary(max_size=60) | st.text(st.sampled_from('a,;"\n\r\t 1.\ufeff'), max_size=40).map(str.encode))
def test_no_bytes_raise_anything_but_our_error(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("t.csv", "no_ending", "t.parquet"):
        try:
            frame = read(content, folder, name)
        except DataError:
            continue
        assert frame.height > 0
        assert all(frame.columns)


# --- what is refused in a column


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (["1", "x", "", "y"], r"column 'a' must be numeric; got 'x' in row 1 \(2 of 4 rows are no numbers\)"),
        (["1,5", "2,5"], r"column 'a' must be numeric; got '1,5' in row 0"),
        ([None, None, 1.0], r"column 'a' must have a value in every row; got none in 2 of 3 rows \(first: row 0\)"),
        ([1.0, float("nan")], r"must have a value in every row; got none in 1 of 2 rows \(first: row 1\)"),
        ([None, None], r"must have a value in every row; got none in 2 of 2 rows"),
        ([1.0, float("-inf"), float("inf")], r"'a' must be finite; got infinity in 2 of 3 rows \(first: row 1\)"),
        ([pd.Timestamp("2026-01-01").to_pydatetime()], r"column 'a' must be numeric; got Datetime"),
    ],
)
def test_what_is_no_finite_number_is_refused_with_its_row(column, match):
    table = pl.DataFrame({"a": column, "b": range(len(column))}, strict=False)
    with pytest.raises(DataError, match=match):
        columns(table, ["b", "a"])
    assert columns(table, ["b"]).columns == ["b"]  # a column nobody asked for may hold anything


@given(values=st.lists(st.one_of(NUMBERS, st.none(), st.text(max_size=3)), min_size=1, max_size=5))
def test_a_column_is_floats_or_refused(values):
    texts = ["" if value is None else str(value) for value in values]
    table = pl.DataFrame({"a": texts})
    try:
        found = columns(table, ["a"])["a"]
    except DataError:
        return
    assert found.dtype == pl.Float64
    assert np.isfinite(found.to_numpy()).all()


def test_a_missing_column_is_named_with_the_nearest():
    table = pl.DataFrame({"length": [1.0], "width": [2.0]})
    with pytest.raises(DataError, match=r"'lenght' must be in the table; .*length, width\. Did you mean 'length'\?"):
        columns(table, ["lenght"])
    with pytest.raises(DataError, match=r"column 'price' must be in the table; .*\. Name one of these"):
        columns(table, ["price"])
    with pytest.raises(DataError, match=r"got the columns c0, .*, c11, \.\.\.\. Name one"):
        columns(pl.DataFrame({f"c{i}": [1.0] for i in range(20)}), ["price"])


# --- taking a table apart

TABLE = pl.DataFrame({"a": [1, 2], "b": [3.0, 4.0], "c,d": [5, 6], "id": ["x", "y"], "w": [1, 2]})


def test_the_features_are_what_is_not_named():
    parts = split(TABLE, ["b", "a"], drop=["id"], weights="w")
    assert parts.X.columns == ["c,d"]
    assert parts.y.columns == ["b", "a"]
    assert parts.y.rows() == [(3.0, 1.0), (4.0, 2.0)]
    assert parts.weights.tolist() == [1.0, 2.0]
    assert split(TABLE, ["a"], drop=["id"]).weights is None


@pytest.mark.parametrize(
    ("targets", "drop", "weights", "match"),
    [
        ([], [], None, "targets must name at least one column; got none"),
        (["z"], [], None, "column 'z' must be in the table"),
        (["a"], ["z"], None, "column 'z' must be in the table"),
        (["a"], [], "z", "column 'z' must be in the table"),
        (["a", "a"], [], None, "column 'a' must have one role; got it named twice"),
        (["a"], ["a"], None, "column 'a' must have one role"),
        (["a"], ["id"], "a", "column 'a' must have one role"),
        (["a", "b"], ["c,d", "id"], "w", "the table must have at least one feature; got none"),
        (["a"], [], None, "column 'id' must be numeric; got 'x' in row 0"),
        (["id"], [], None, "column 'id' must be numeric; got 'x' in row 0"),
    ],
)
def test_what_cannot_be_taken_apart_is_refused(targets, drop, weights, match):
    with pytest.raises(DataError, match=match):
        split(TABLE, targets, drop=drop, weights=weights)


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["a,b"], ["a", "b"]),
        (["a", "b"], ["a", "b"]),
        ([" a , b,"], ["a", "b"]),
        (["c,d"], ["c,d"]),
        (['a,"c,d"'], ["a", "c,d"]),
        (["", ","], []),
    ],
)
def test_names_from_the_shell(texts, names):
    assert column_names(texts, TABLE) == names
