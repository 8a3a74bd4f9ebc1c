"""The UCI tables: each published format in a small file, the folder, the cache, the errors."""

from __future__ import annotations

import io
import os
import struct
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from ogive.datasets import uci

SHAPES = {
    "fish": (908, 6, 1),
    "concrete": (1030, 8, 1),
    "energy": (768, 8, 2),
    "parkinsons": (5875, 16, 2),
    "temperature": (7588, 21, 2),
    "air": (8991, 10, 3),
    "skillcraft": (3338, 15, 4),
}
FISH_PUBLISHED = b"3.26;0.829;1.676;0;1;1.453;3.770\r\n2.189;0.58;0.863;0;0;1.348;3.115\r\n"
FISH_NUMBERS = np.array([[3.26, 0.829, 1.676, 0, 1, 1.453, 3.77], [2.189, 0.58, 0.863, 0, 0, 1.348, 3.115]])
FISH_FOLDER = uci.SOURCES["fish"].header + "\n3.26,0.829,1.676,0,1,1.453,3.77\n2.189,.58,.863,0,0,1.348,3.115\n"


def parse(name, data):
    return uci.SOURCES[name].parse(data, uci.SOURCES[name].columns)


def archive(filename, data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("readme.txt", b"")
        opened.writestr(filename, data)
    return buffer.getvalue()


def old_excel(rows):
    """Write the simplest sheet that is an Excel file: a BIFF2 stream of labels and numbers."""

    def record(kind, body):
        return struct.pack("<HH", kind, len(body)) + body

    def cell(row, column, value):
        place = struct.pack("<HH3x", row, column)
        if isinstance(value, str):
            return record(0x0004, place + bytes([len(value)]) + value.encode())
        return record(0x0003, place + struct.pack("<d", value))

    cells = [cell(i, j, value) for i, row in enumerate(rows) for j, value in enumerate(row)]
    return record(0x0009, struct.pack("<HH", 2, 0x10)) + b"".join(cells) + record(0x000A, b"")


def new_excel(rows):
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.create_sheet("second").append(["not", "this"])
    book.save(buffer)
    return buffer.getvalue()


@pytest.fixture
def small_fish(monkeypatch):
    """Let two rows be the whole fish table, and let no test reach the network or the user's data."""
    source = replace(uci.SOURCES["fish"], digest=uci.digest(FISH_NUMBERS))
    monkeypatch.setitem(uci.SOURCES, "fish", source)
    monkeypatch.delenv("OGIVE_DATA", raising=False)


@pytest.fixture
def fetched(monkeypatch, tmp_path):
    """Make pooch find these bytes in its cache."""
    pooch = pytest.importorskip("pooch")

    def become(data):
        (tmp_path / "fish.zip").write_bytes(data)
        monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path)

    return become


# --- the published formats


def test_fish_has_semicolons_and_no_header():
    assert np.array_equal(parse("fish", FISH_PUBLISHED), FISH_NUMBERS)


def test_concrete_is_an_xls_sheet_rounded_as_shown():
    pytest.importorskip("xlrd")
    header = [f"{part} (component {i})(kg in a m^3 mixture)" for i, part in enumerate("abcdefgh")] + ["MPa "]
    first = [540.0, 0.0, 0.0, 162.0, 2.5, 1040.0, 676.0, 28.0, 79.98611076]
    second = [213.76, 98.06, 24.52, 181.74, 6.65, 1066.03, 785.52, 100.0, 49.9725]
    expected = [
        [540.0, 0.0, 0.0, 162.0, 2.5, 1040.0, 676.0, 28.0, 79.99],
        [213.8, 98.1, 24.5, 181.7, 6.7, 1066.0, 785.5, 100.0, 49.97],
    ]
    assert parse("concrete", old_excel([header, first, second, [""] * 9])).tolist() == expected


def test_energy_is_an_xlsx_sheet_with_empty_rows_and_columns():
    header = ["X1", "X2", "X3", "X4", "X5", "X6", "X7", "X8", "Y1", "Y2", None, None]
    first = [0.98, 514.5, 294.0, 110.25, 7.0, 2, 0.0, 0, 15.55, 21.33, None, None]
    sheet = new_excel([header, first, [None] * 12, first, [None] * 12])
    assert parse("energy", sheet).tolist() == [first[:10]] * 2


def test_parkinsons_has_outputs_in_front_and_four_columns_too_many():
    names = uci.SOURCES["parkinsons"].columns
    header = ["subject#", "age", "sex", "test_time", "motor_UPDRS", "total_UPDRS", *names[:-2]]
    row = ["1", "72", "0", "5.6431", "28.199", "34.398", *map(str, range(15)), "3.38E-05"]
    numbers = parse("parkinsons", f"{','.join(header)}\n{','.join(row)}\n".encode())
    assert numbers.tolist() == [[*range(15), 3.38e-05, 28.199, 34.398]]


def test_temperature_drops_rows_with_a_gap():
    header = ["station", "Date", *uci.SOURCES["temperature"].columns]
    complete = ["1", "2013-06-30", *map(str, range(23))]
    gap = [*complete[:5], "", *complete[6:]]
    extremes = ["", "", *map(str, range(23))]
    text = "\n".join(",".join(row) for row in [header, complete, gap, extremes])
    assert parse("temperature", text.encode()).tolist() == [list(range(23))]


def test_air_has_decimal_commas_and_keeps_marks_of_features():
    text = (
        "Date;Time;CO(GT);PT08.S1(CO);NMHC(GT);C6H6(GT);PT08.S2(NMHC);NOx(GT);PT08.S3(NOx);NO2(GT);"
        "PT08.S4(NO2);PT08.S5(O3);T;RH;AH;;\r\n"
        "10/03/2004;18.00.00;2,6;1360;150;11,9;1046;166;1056;113;1692;1268;13,6;48,9;0,7578;;\r\n"
        "10/03/2004;19.00.00;-200;1292;-200;9,4;955;103;1174;92;1559;972;13,3;47,7;0,7255;;\r\n"
        "10/03/2004;20.00.00;2,2;1402;88;9,0;939;131;1140;114;1555;1074;-200;54,0;0,7502;;\r\n"
        "10/03/2004;21.00.00;2,2;1402;88;9,0;939;131;1140;114;1555;1074;11,9;54,0;-200;;\r\n"
        ";;;;;;;;;;;;;;;;\r\n"
    )
    assert parse("air", text.encode()).tolist() == [
        [2.6, 1360, 150, 11.9, 1046, 166, 1056, 113, 1692, 1268, 13.6, 48.9, 0.7578],
        [-200, 1292, -200, 9.4, 955, 103, 1174, 92, 1559, 972, 13.3, 47.7, 0.7255],
    ]


def test_skillcraft_drops_rows_with_a_question_mark_and_moves_outputs_last():
    names = uci.SOURCES["skillcraft"].columns
    header = ["GameID", *names[:10], *names[15:], *names[10:15]]
    row = ["52", *map(str, range(19))]
    unknown = [*row[:4], "?", *row[5:]]
    text = "\n".join(",".join(f'"{cell}"' for cell in line) for line in [header, row, unknown])
    expected = [*range(10), *range(14, 19), *range(10, 14)]
    assert parse("skillcraft", text.encode()).tolist() == [expected]


# --- load


def test_names_and_unknown_name():
    assert uci.NAMES == ("fish", "concrete", "energy", "parkinsons", "temperature", "air", "skillcraft")
    with pytest.raises(ValueError, match=r"name must be one of fish, concrete, .*; got 'iris'"):
        uci.load("iris")


def test_the_folder_comes_first(small_fish, monkeypatch, tmp_path):
    (tmp_path / "fish.csv").write_text(FISH_FOLDER)
    monkeypatch.setenv("OGIVE_DATA", str(tmp_path))
    table = uci.load("fish")
    assert np.array_equal(np.hstack([table.X, table.y]), FISH_NUMBERS)
    assert (table.name, table.X.dtype, table.y.shape) == ("fish", np.float64, (2, 1))
    assert (table.feature_names[0], table.output_names) == ("CIC0", ("LC50",))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (FISH_FOLDER.replace("3.77", "3.78"), "got 2 rows with digest"),
        (FISH_FOLDER.rsplit("\n", 2)[0], "got 1 rows with digest"),
        (FISH_FOLDER.replace("3.77", "many"), "got a cell that is not a number"),
        (FISH_FOLDER.replace("3.77", ""), "got a cell that is not a number"),
        (FISH_FOLDER.replace(",3.77", ""), "got 6 cells in row 2 and 7 in row 1"),
        (FISH_FOLDER.replace("LC50", "LD50"), "got a header without LC50"),
        (FISH_FOLDER.split("\n")[0], "got no rows"),
        ("", "got a header without CIC0"),
        ("\x00\x01\xff", "got a header without CIC0"),
    ],
)
def test_other_numbers_in_the_folder_are_refused(small_fish, monkeypatch, tmp_path, content, problem):
    (tmp_path / "fish.csv").write_text(content, encoding="latin-1")
    monkeypatch.setenv("OGIVE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=rf"fish must hold the numbers .*{problem}.* in .*fish.csv"):
        uci.load("fish")


def test_the_archive_is_read_from_the_cache(small_fish, fetched):
    fetched(archive("folder/qsar_fish_toxicity.csv", FISH_PUBLISHED))
    assert np.array_equal(uci.load("fish").y, FISH_NUMBERS[:, 6:])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"<html>try later</html>", "does not open as a zip archive"),
        (archive("other.csv", b""), "an archive without qsar_fish_toxicity.csv"),
        (archive("qsar_fish_toxicity.csv", FISH_PUBLISHED[:34]), "1 rows with digest"),
        (archive("qsar_fish_toxicity.csv", b"1;2\n"), "2 columns instead of 7"),
    ],
)
def test_other_numbers_from_the_network_are_refused(small_fish, fetched, data, problem):
    fetched(data)
    with pytest.raises(ValueError, match=rf"fish must hold the numbers .*{problem}.* in .*fish.zip"):
        uci.load("fish")


def test_without_folder_and_network_the_error_names_url_and_variable(small_fish, monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch")

    def fetch(self, filename):
        raise ConnectionError

    monkeypatch.setattr(pooch.Pooch, "fetch", fetch)
    monkeypatch.setenv("OGIVE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"no fish.csv with OGIVE_DATA='.*nowhere' .*") as caught:
        uci.load("fish")
    assert uci.SOURCES["fish"].url in str(caught.value)
    assert "Set OGIVE_DATA to a folder with fish.csv" in str(caught.value)


def test_a_missing_package_is_named(small_fish, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"fish must be fetched and read by optional packages; got .*pooch"):
        uci.load("fish")


def test_digest_does_not_see_the_eleventh_digit_or_the_sign_of_zero():
    numbers = np.array([[1.0, -0.0], [1 / 3, 2e-7]])
    assert uci.digest(numbers) == uci.digest(np.array([[1.0 + 1e-11, 0.0], [1 / 3, 2e-7]]))
    assert uci.digest(numbers) != uci.digest(np.array([[1.0 + 1e-8, 0.0], [1 / 3, 2e-7]]))
    assert uci.digest(numbers) != uci.digest(numbers.reshape(1, 4))


@pytest.mark.skipif("OGIVE_DATA" not in os.environ, reason="OGIVE_DATA names no folder with the tables")
@pytest.mark.parametrize("name", uci.NAMES)
def test_the_tables_in_the_folder(name):
    table = uci.load(name)
    n, p, d = SHAPES[name]
    assert (table.X.shape, table.y.shape) == ((n, p), (n, d))
    assert (len(table.feature_names), len(table.output_names)) == (p, d)
    assert table.X.flags.c_contiguous and table.y.flags.c_contiguous
