"""The paper's page: what is printed there, what is measured here and the difference, from records alone."""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex

from ogive import bench
from ogive.bench import figures, paper, read_protocol, read_records
from ogive.bench import run as running
from ogive.bench.comparison import against, ranks, side_by_side
from ogive.bench.differences import difference_error
from ogive.bench.figures import Column, Curve, density_columns, reliability_panels
from ogive.bench.paper import PARTS, Part, write_paper
from ogive.bench.picture import packed, unpacked
from ogive.bench.protocol import Bar, Method, Protocol, Run, benchmarks_folder
from ogive.bench.record import Record, append
from ogive.bench.report import make_report, make_table
from ogive.bench.selection import selected
from ogive.bench.tasks import KINDS
from ogive.cli import main
from ogive.datasets import toy
from ogive.errors import DataError, NumericalError
from ogive.estimator import OgiveRegressor

# From the paper: its table of the test NLL, and the figures of its text and its other tables.
UCI = ("fish", "concrete", "energy", "parkinsons", "temperature", "air", "skillcraft")
PRINTED_NLL = {
    "mdn": (0.92, 0.76, -0.99, 1.26, 1.08, 1.26, 2.27),
    "maf": (1.10, 1.10, -0.13, 1.54, 1.25, 1.14, 4.06),
    "nsf": (1.57, 1.32, 9.23, 1.72, 1.79, 1.50, 6.72),
    "rnf": (1.24, 1.24, 1.89, 2.30, 1.84, 1.70, 4.49),
    "ddn": (0.92, 0.59, -1.66, 0.36, 0.74, 0.93, 1.66),
    "paper": (0.89, 0.44, -2.03, 0.73, 0.70, 1.06, 1.65),
}
PRINTED = {
    ("uci", "nll"): {name: dict(zip(UCI, values, strict=True)) for name, values in PRINTED_NLL.items()},
    ("uci", "ece"): {
        "paper": {"fish": 0.0045, "concrete": 0.0088},
        "ddn": {"fish": 0.0103, "concrete": 0.0165},
    },
    ("toy", "sse"): {
        "paper": {"squares": 0.101, "half_gaussian": 0.157, "stick": 0.072, "ring": 0.094},
        "nsf": {"ring": 0.253},
    },
    ("ablation", "sse"): {
        "full": {"ring": 0.1293},
        "no-noise": {"ring": 0.157},
        "hard-min-max": {"ring": 0.5167},
        "monotone-mlp": {"ring": 0.5659},
    },
    ("delta", "sse"): {
        "delta-5e-7": {"ring": 0.134},
        "delta-1e-6": {"ring": 0.113},
        "delta-5e-6": {"ring": 0.088},
        "delta-1e-5": {"ring": 0.09},
        "delta-3e-5": {"ring": 0.101},
    },
    ("delta", "sse_seven"): {"delta-5e-6": {"ring": 0.0694}},
}


def record_of(run: Run, **facts: object) -> Record:
    return Record(run, "2020-02-02T02:02:02Z", run.split, **facts)


def protocol_of(kind: str, methods: str, tasks: str, splits: int = 1, **facts: object) -> Protocol:
    listed = tuple(Method(name, "ogive") for name in methods.split())
    return Protocol("p", "A title", kind, tuple(tasks.split()), tuple(range(splits)), listed, **facts)


def with_figures(protocol: Protocol, figures_of: dict[str, dict[str, list[object]]], metric: str) -> dict[str, Record]:
    """Records by key from figures by method and task, one for each split."""
    return {
        run.key: record_of(run, metrics={metric: figures_of[run.method][run.task][run.split]})
        for run in protocol.runs()
        if run.split < len(figures_of.get(run.method, {}).get(run.task, []))
    }


def texts(table) -> list[list[str]]:
    return [[row.name, *(row.cells[t].text if t in row.cells else "-" for t in table.tasks)] for row in table.rows]


# --- beside what is printed


def test_a_printed_figure_and_the_difference_stand_below_ours():
    bars = (
        Bar("one (printed)", "sse", "a book", {"ring": 0.25, "squares": 0.5, "stick": 0.125}, ("one",)),
        Bar("one (printed)", "nll_above_entropy", "a book", {"ring": 9.0}, ("one",)),
        Bar("must", "sse", "ourselves", {"ring": 0.1}),
    )
    protocol = protocol_of("toy", "one two", "ring squares stick", bars=bars)
    measured = {"one": {"ring": [0.2], "squares": [0.5]}, "two": {"ring": [0.3]}}
    table = make_table(protocol, with_figures(protocol, measured, "sse"), "sse")
    assert "must" in [row.name for row in table.rows]
    shown = side_by_side(protocol, table)
    assert texts(shown) == [
        ["one", "0.2000", "0.5000", "-"],
        ["- printed", "0.25", "0.5", "0.125"],
        ["- difference", "-0.0500", "+0.0000", "-"],
        ["two", "0.3000", "-", "-"],
    ]
    assert shown.rows[2].cells["ring"].numbers["value"] == pytest.approx(-0.05)
    assert shown.notes == ["one than printed: better on ring; no better on squares."]
    assert shown.gaps == [
        "two: not measured yet (splits: squares 1, stick 1)",
        "one: not measured yet (splits: stick 1)",
    ]


@pytest.mark.parametrize("worse", [math.inf, math.nan])
def test_what_is_no_number_is_no_better(worse):
    bars = (Bar("one", "nll", "a book", {"fish": 1.0}, ("one",)),)
    protocol = protocol_of("uci", "one", "fish", bars=bars)
    table = make_table(protocol, with_figures(protocol, {"one": {"fish": [worse]}}, "nll"), "nll")
    assert side_by_side(protocol, table).notes == ["one than printed: no better on fish."]


def test_ranks_are_places_by_the_mean_and_their_mean_needs_every_task():
    protocol = protocol_of("toy", "a b c", "ring stick", bars=(Bar("must", "sse", "us", {"ring": 0.0}),))
    measured = {"a": {"ring": [0.3], "stick": [0.1]}, "b": {"ring": [0.1], "stick": [0.2]}, "c": {"ring": [0.2]}}
    table = ranks(protocol, make_table(protocol, with_figures(protocol, measured, "sse"), "sse"))
    assert list(table.tasks) == ["ring", "stick", "mean"]
    assert texts(table) == [["a", "3", "1", "2.00"], ["b", "1", "2", "1.50"], ["c", "2", "-", "-"]]


# --- against a reference, split by split


def test_a_method_is_compared_with_the_reference_on_the_splits_that_both_have():
    protocol = protocol_of("uci", "mine other idle", "fish air", splits=4, reference="other")
    measured = {
        "mine": {"fish": [1.0, 4.0, 2.0], "air": [-1.0]},
        "other": {"fish": [2.0, 3.0, 5.0, 0.0], "air": [1.0, 1.0]},
    }
    (table,) = against(protocol, list(with_figures(protocol, measured, "nll").values()))
    assert table.name == "nll_against_other"
    cell = table.rows[0].cells["fish"]
    assert cell.numbers["values"] == [-1.0, 1.0, -3.0]
    assert cell.numbers["standard_error"] == pytest.approx(2.0 / math.sqrt(3.0))
    assert texts(table) == [["mine", "-1.000 ± 1.155 (2 of 3)", "-2.000 (1 of 1)"], ["idle", "-", "-"]]
    assert table.notes == ["mine: ahead of other on every task by mean NLL? yes."]


def test_the_outputs_of_a_split_count_once():
    protocol = protocol_of("uci", "mine other", "fish", splits=2, reference="other")
    measured = {"mine": {"fish": [[1.0, 5.0], [2.0, 2.0]]}, "other": {"fish": [[4.0, 4.0], [2.0, 2.0]]}}
    (table,) = against(protocol, list(with_figures(protocol, measured, "crps").values()))
    assert table.rows[0].cells["fish"].numbers["values"] == [-1.0, 0.0]
    assert texts(table) == [["mine", "-0.5000 ± 0.5000 (1 of 2)"]]


@pytest.mark.parametrize(
    ("fish", "air", "said"),
    [
        ([1.0], [9.0], "no, behind on air"),
        ([1.0], [], "so far; not known on air"),
        ([9.0], [], "no, behind on fish; not"),
    ],
)
def test_who_is_ahead_is_said_in_words(fish, air, said):
    protocol = protocol_of("uci", "mine other", "fish air", reference="other")
    measured = {"mine": {"fish": fish, "air": air}, "other": {"fish": [2.0], "air": [2.0]}}
    (table,) = against(protocol, list(with_figures(protocol, measured, "nll").values()))
    assert said in table.notes[0]


def test_without_a_reference_or_its_records_nothing_is_compared():
    protocol = protocol_of("uci", "mine other", "fish")
    records = with_figures(protocol, {"mine": {"fish": [1.0]}}, "nll")
    assert against(protocol, list(records.values())) == []
    assert against(replace(protocol, reference="other"), list(records.values())) == []
    assert [table.name for table in make_report(protocol, records).tables] == ["nll"]


# --- the step of the difference


@pytest.fixture(scope="module")
def fitted():
    """The paper's method, hardly trained, and the rows it learnt from."""
    split = KINDS["toy"].split("ring", 0, 60)
    settings = {"max_epochs": 3, "groups": 3, "units": 3, "support": [(-9.0, 9.0), (-9.0, 9.0)], "random_state": 0}
    return OgiveRegressor.paper(**settings).fit(split.X, split.y), split.X, split.y


def stepped(model: OgiveRegressor, delta: float | None) -> SimpleNamespace:
    """The same network with another step."""
    fit = model._fitted
    return SimpleNamespace(_fitted=SimpleNamespace(design=replace(fit.design, delta=delta), network=fit.network))


def test_a_central_difference_has_an_error_of_second_order(fitted):
    model, X, y = fitted
    assert difference_error(stepped(model, None), X, y, torch.float64) == 0.0
    errors = [difference_error(stepped(model, step), X, y, torch.float64) for step in (1e-2, 5e-3, 2.5e-3)]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.05)


def test_the_papers_step_is_lost_in_the_rounding_of_float32(fitted):
    model, X, y = fitted
    assert model._fitted.design.delta == 5e-6
    exact, rounded = (difference_error(model, X, y, dtype) for dtype in (torch.float64, torch.float32))
    assert exact < 1e-6 < 1e-3 < rounded
    assert 0.0 < difference_error(stepped(model, None), X, y, torch.float32) < 1e-3  # the slope itself is not


def test_where_the_exact_density_is_zero_there_is_no_difference(fitted):
    model, X, y = fitted
    with pytest.raises(NumericalError, match="the exact density must be positive at every row; got zero"):
        difference_error(model, X, np.full_like(y, 10.0), torch.float64)


# --- pictures


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were to be written."""
    kept = []
    monkeypatch.setattr(figures, "_write", lambda figure, path: kept.append(figure))
    return kept


def test_a_density_comes_back_from_its_picture_to_within_half_a_step():
    density = np.random.default_rng(0).uniform(0.0, 3.0, (2, 5, 4))
    picture = packed(density, 2.0)
    assert np.abs(unpacked(picture) - density.clip(max=2.0)).max() <= 0.5 * 2.0 / 255 * (1.0 + 1e-9)
    assert packed(unpacked(picture), 2.0) == picture


def test_every_method_has_a_column_and_every_x_a_row(drawn, tmp_path):
    axis = np.linspace(-3.0, 3.0, 4)
    dense = np.zeros((2, 4, 4))
    dense[1, 3, 0] = 0.7  # large y1, small y2
    density_columns(tmp_path / "a.png", [Column("one", dense), Column("none", None)], (0.5, -0.25), axis, 0.7)
    panels = np.array(drawn[0].axes).reshape(2, 2)
    assert [panel.get_title() for panel in panels[0]] == ["one", "none"]
    assert [panel.get_ylabel() for panel in panels[:, 0]] == ["x = 0.5", "x = -0.25"]
    (image,) = panels[1, 0].get_images()
    shown = image.get_array()
    assert (image.origin, shown[0, 3], shown.sum()) == ("lower", 0.7, 0.7)  # a row of the image is a y2
    assert image.get_extent() == [-4.0, 4.0, -4.0, 4.0]
    assert to_hex(image.to_rgba(shown)[0, 3]) == figures.DENSE[-1]
    assert to_hex(image.to_rgba(shown)[3, 0]) == figures.DENSE[0] == "#ffffff"
    assert [text.get_text() for text in panels[0, 1].texts] == ["none\non record"]
    assert not panels[0, 1].get_images()


def test_the_largest_picture_is_small_and_has_the_same_bytes_again(tmp_path):
    noise = np.random.default_rng(0).uniform(0.0, 1.0, (5, 64, 64))
    columns = [Column(f"method {i}", np.roll(noise, i)) for i in range(10)]
    for name in ("a.png", "b.png"):
        density_columns(tmp_path / name, columns, (-0.75, -0.25, 0.0, 0.25, 0.75), toy.SSE_AXIS, 1.0)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").stat().st_size < 200_000


def test_a_reliability_diagram_shows_the_shares_at_their_levels_and_the_band_of_the_fewest(drawn, tmp_path):
    curves = [Curve("one", [0.1, 0.6, 0.8, 1.0], 400), Curve("two", [0.2, 0.5, 0.7, 1.0], 100)]
    reliability_panels(tmp_path / "a.png", {"fish": curves, "air": []})
    fish, air = drawn[0].axes
    assert (fish.get_title(), air.get_title()) == ("fish", "air")
    lines = fish.lines[1:]  # the first is the diagonal
    assert [line.get_label() for line in lines] == ["one", "two"]
    for line, curve in zip(lines, curves, strict=True):
        assert line.get_xdata().tolist() == [0.25, 0.5, 0.75, 1.0]
        assert line.get_ydata().tolist() == curve.share
    band = fish.collections[0].get_paths()[0].vertices
    at_half = band[np.isclose(band[:, 0], 0.5), 1]
    assert sorted({*at_half.round(6)}) == [pytest.approx(0.5 - 1.96 * 0.05), pytest.approx(0.5 + 1.96 * 0.05)]
    assert fish.get_legend() is not None
    assert (len(air.lines), len(air.collections), air.get_legend()) == (1, 0, None)


def test_there_are_colours_enough_for_any_number_of_curves(drawn, tmp_path):
    curves = [Curve(str(i), [0.5, 1.0], 9) for i in range(2 * len(figures.SERIES) + 1)]
    reliability_panels(tmp_path / "a.png", {"fish": curves})
    assert [line.get_label() for line in drawn[0].axes[0].lines[1:]] == [curve.title for curve in curves]


# --- which runs are meant


def small_parts() -> dict[str, Protocol]:
    return {"uci": protocol_of("uci", "a b", "fish air", 3), "toy": protocol_of("toy", "a c", "ring stick", 2)}


def titles(names=(), splits=()) -> list[str]:
    chosen = selected(small_parts(), names, splits)
    assert list(chosen) == ["uci", "toy"]
    return [f"{part} {run.title}" for part, runs in chosen.items() for run in runs]


def test_without_names_all_runs_are_meant_in_their_order():
    assert selected(small_parts()) == {name: protocol.runs() for name, protocol in small_parts().items()}


def test_names_of_one_kind_are_added_up_and_kinds_narrow_each_other():
    assert titles(["toy", "c"], [1]) == ["toy c on ring 1", "toy c on stick 1"]
    assert titles(["fish", "stick", "a"], [0]) == ["uci a on fish 0", "toy a on stick 0"]
    assert titles(["b"], [2]) == ["uci b on fish 2", "uci b on air 2"]
    assert titles(["uci", "toy"]) == titles()
    assert titles(splits=[2]) == ["uci a on fish 2", "uci b on fish 2", "uci a on air 2", "uci b on air 2"]


def test_names_that_mean_nothing_are_refused():
    choice = r"protocols \(uci, toy\), tasks \(fish, air, ring, stick\), methods \(a, b, c\); got 'rnig'"
    with pytest.raises(DataError, match=f"--only must name some of {choice}"):
        titles(["fish", "rnig"])
    with pytest.raises(DataError, match=r"--splits must lie in 0\.\.2; got 3"):
        titles(splits=[0, 3])
    with pytest.raises(DataError, match="--only and --splits must leave runs to measure; got none"):
        titles(["toy", "fish"])


# --- the page


@pytest.fixture
def undrawn(monkeypatch) -> dict[str, object]:
    """The page without its pictures, which take most of the time: what was to be drawn, by the file's name."""
    kept = {}
    monkeypatch.setattr(paper, "density_columns", lambda path, columns, *_: kept.update({path.name: columns}))
    monkeypatch.setattr(paper, "reliability_panels", lambda path, panels: kept.update({path.name: panels}))
    return kept


@pytest.fixture(scope="module")
def protocols() -> dict[str, Protocol]:
    return {name: read_protocol(benchmarks_folder() / f"{name}.toml") for name in PARTS}


def figure_of(run: Run) -> float:
    """A figure that is different for every method, task and split."""
    return int(run.key[:8], 16) / 2**32


def full_record(run: Run, picture: object) -> Record:
    """A record with a figure for everything."""
    value = figure_of(run)
    if run.kind == "uci":
        counts = [[round(30 * (level / 10) ** (1.0 + value)) for level in range(1, 11)]]
        metrics = {"nll": value, "crps": [value], "pit_counts": counts}
    else:
        names = ("sse", "nll_above_entropy", "sse_seven", "difference_error", "difference_error_float32")
        metrics = dict.fromkeys(names, value) | ({"picture": picture} if run.split == 0 else {})
    return record_of(run, metrics=metrics, size={"all": 100, "outputs": 1}, versions={"ogive": "1"})


@pytest.fixture(scope="module")
def whole(protocols) -> dict[str, Part]:
    """All that the committed protocols plan, measured."""
    rng = np.random.default_rng(0)
    parts = {}
    for name, protocol in protocols.items():
        picture = packed(rng.uniform(0.0, 0.1, (5 if name == "delta" else 3 if name == "ablation" else 4, 64, 64)), 0.1)
        parts[name] = Part(protocol, {run.key: full_record(run, picture) for run in protocol.runs()})
    return parts


@pytest.fixture(scope="module")
def page(whole, tmp_path_factory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("page")
    return write_paper(folder, whole), folder


def sections(text: str) -> dict[tuple[str, str], str]:
    """The parts of a page by their headings of both levels; a title that comes again adds to the first."""
    found, top, title = {}, "", ""
    for line in text.splitlines():
        if line.startswith("## "):
            top, title = line[3:], ""
        elif line.startswith("### "):
            title = line[4:]
        found[top, title] = found.get((top, title), "") + line + "\n"
    return found


def cells(text: str) -> list[list[str]]:
    """The rows of the table in a section."""
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [row for row in rows if set(row[0]) != {"-"}]


HEADINGS = {
    ("uci", "nll"): ("UCI tables", "Test NLL, joint"),
    ("uci", "ece"): ("Calibration", "ECE pooled"),
    ("toy", "sse"): ("Toy tasks", "SSE of the density on the grid"),
    ("ablation", "sse"): ("Ablation", "SSE of the density on the grid"),
    ("delta", "sse"): ("The step of the finite difference", "SSE of the density on the grid"),
    ("delta", "sse_seven"): ("The step of the finite difference", "SSE of the density at seven x"),
}


def rows_of(text: str, name: tuple[str, str]) -> list[list[str]]:
    top, title = HEADINGS[name]
    (section,) = (body for (a, b), body in sections(text).items() if a == top and b.startswith(title))
    return cells(section)


@pytest.mark.parametrize("name", PRINTED, ids="-".join)
def test_every_figure_of_the_paper_stands_between_ours_and_the_difference(whole, page, name):
    header, *rows = rows_of(page[0], name)
    names = [row[0] for row in rows]
    protocol, records = whole[name[0]].protocol, whole[name[0]].records
    for method, printed in PRINTED[name].items():
        ours, theirs, apart = rows[names.index(method) :][:3]
        assert [theirs[0], apart[0]] == ["- printed", "- difference"]
        for task, value in printed.items():
            column = header.index(task)
            own = float(re.match(r"-?[\d.]+", ours[column])[0])
            assert float(theirs[column]) == pytest.approx(value, abs=1e-12)
            assert float(apart[column]) == pytest.approx(own - value, abs=0.0011 if name[1] == "nll" else 0.00011)
            if name[1] != "ece":
                runs = [run for run in protocol.runs() if (run.method, run.task) == (method, task)]
                mean = np.mean([records[run.key].metrics[name[1]] for run in runs])
                assert own == pytest.approx(mean, abs=0.00051 if name[1] == "nll" else 0.000051)


def test_ece_is_that_of_the_pooled_counts(whole, page):
    (row,) = (row for row in rows_of(page[0], ("uci", "ece")) if row[0] == "ddn")
    runs = [run for run in whole["uci"].protocol.runs() if (run.method, run.task) == ("ddn", "fish")]
    counts = np.sum([whole["uci"].records[run.key].metrics["pit_counts"][0] for run in runs], 0)
    error = np.abs(counts / counts[-1] - np.arange(1, 11) / 10).mean()
    assert row[1].startswith(f"{error:.4f} / ")


def test_a_whole_page_has_no_gap(page):
    assert "Gaps" not in page[0] and "No density" not in page[0] and "not measured" not in page[0]
    assert page[0].count("630 of 630") == page[0].count("180 of 180") == 1


def test_every_picture_of_the_page_is_beside_it_and_small(page):
    text, folder = page
    shown = re.findall(r"!\[.*?\]\((.*?)\)", text)
    toys = [f"toy_{task}.png" for task in ("squares", "half_gaussian", "stick", "ring")]
    assert shown == [*toys, "ablation_ring.png", "delta_ring.png", "reliability.png"]
    assert sorted(path.name for path in folder.iterdir()) == sorted([*shown, "README.md"])
    for name in shown:
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
        assert (folder / name).stat().st_size < 200_000
    assert (folder / "README.md").read_text(encoding="utf-8") == text


def test_the_same_records_give_the_same_bytes(whole, page, tmp_path):
    backwards = {name: Part(part.protocol, dict(reversed(part.records.items()))) for name, part in whole.items()}
    write_paper(tmp_path / "deep" / "again", backwards)
    for path in page[1].iterdir():
        assert (tmp_path / "deep" / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_page_says_how_the_papers_own_configuration_stands_to_its_figures(protocols):
    printed = PRINTED["toy", "sse"]["paper"]

    def said(factors: dict[str, float]) -> str:
        protocol = protocols["toy"].narrowed(["paper"], [1])
        measured = {task: [math.nan, factor * printed[task]] for task, factor in factors.items()}
        records = with_figures(protocol, {"paper": measured}, "sse")
        return "\n".join(paper._shares(protocol, make_table(protocol, records, "sse")))

    assert said(dict.fromkeys(printed, 1.25)) == (
        "paper, as a share of the printed figure: squares 1.25, half_gaussian 1.25, stick 1.25, ring 1.25; "
        "at most 25 % above it everywhere."
    )
    assert said({"squares": 1.0, "ring": 1.26, "stick": math.nan}).endswith("more than 25 % above it on stick, ring.")
    assert said({}) == ""


def test_the_page_says_whether_the_order_is_the_printed_one(whole, protocols, tmp_path, undrawn):
    def said(figures_of: dict[str, float]) -> str:
        measured = {name: {"ring": [value] * 10} for name, value in figures_of.items()}
        records = with_figures(protocols["ablation"], measured, "sse")
        text = write_paper(tmp_path, whole | {"ablation": Part(protocols["ablation"], records)})
        return "".join(re.findall("- From best to worst: .*\n", text))

    order = ["full", "no-noise", "hard-min-max", "monotone-mlp"]
    best_first = dict(zip(order, (0.1, 0.2, 0.3, 0.4), strict=True))
    assert said(best_first) == f"- From best to worst: {', '.join(order)}; the printed order.\n"
    swapped = best_first | {"no-noise": 0.05}
    assert said(swapped) == (
        f"- From best to worst: no-noise, full, hard-min-max, monotone-mlp; printed: {', '.join(order)}.\n"
    )
    assert said({name: value for name, value in best_first.items() if name != "no-noise"}) == ""


# --- gaps


def test_without_records_every_printed_figure_is_there_and_every_gap_has_its_reason(protocols, tmp_path, undrawn):
    text = write_paper(tmp_path, {name: Part(protocol, {}) for name, protocol in protocols.items()})
    for name, methods in PRINTED.items():
        header, *rows = rows_of(text, name)
        names = [row[0] for row in rows]
        for method, printed in methods.items():
            ours, theirs, apart = rows[names.index(method) :][:3]
            assert {*ours[1:], *apart[1:]} == {"-"}
            assert {task: float(theirs[header.index(task)]) for task in printed} == pytest.approx(printed)
    for (top, title), body in sections(text).items():
        if title.startswith("Ranks") or not cells(body):
            continue
        (gap,) = re.findall("^- (.*): not measured yet .everywhere.$", body, re.M)
        without = [row[0] for row in cells(body)[1:] if set(row[1:]) == {"-"} and not row[0].startswith("- ")]
        assert gap.split(", ") == without, (top, title)
    assert len(re.findall("^- .*: not measured yet$", text, re.M)) == 6  # one for each picture of densities
    assert [column.title for column in undrawn["toy_ring.png"] if column.density is not None] == ["truth"]
    assert undrawn["reliability.png"] == {"fish": [], "concrete": []}


def test_a_gap_shows_with_its_reason(whole, protocols, tmp_path, undrawn):
    toys = protocols["toy"].narrowed(["ogive", "paper", "mdn", "nsf", "ring"], [0])
    early = tuple(replace(method, splits=(0,)) for method in toys.methods)
    toys = replace(toys, methods=(*early, Method("late", "ogive", splits=(1,))), splits=(0, 1))
    runs = {run.method: run for run in toys.runs() if run.split == 0}
    records = [
        record_of(runs["ogive"], failure="RuntimeError: it fell over"),
        record_of(
            runs["paper"], metrics={"sse": None}, reasons={"sse": "ValueError: odd", "picture": "ValueError: dim"}
        ),
        record_of(runs["mdn"], metrics={"sse": 0.2}),
    ]
    text = write_paper(tmp_path, whole | {"toy": Part(toys, {record.run.key: record for record in records})})
    table = sections(text)["Toy tasks", "SSE of the density on the grid"]
    assert re.findall("^- .*", table.partition("Gaps:")[2], re.M) == [
        "- ogive: RuntimeError: it fell over (everywhere)",
        "- nsf, late: not measured yet (everywhere)",
        "- paper: ValueError: odd (everywhere)",
    ]
    (pictured,) = (body for body in sections(text).values() if "toy_ring.png" in body)
    assert re.findall("^- .*", pictured.partition("No density:")[2], re.M) == [
        "- ogive: RuntimeError: it fell over",
        "- paper: ValueError: dim",
        "- mdn: measured before records held pictures",
        "- nsf: not measured yet",
        "- late: not in the protocol",
    ]


def test_calibration_is_shown_of_those_that_have_it(whole, protocols, tmp_path, undrawn):
    records = {
        key: record
        for key, record in whole["uci"].records.items()
        if (record.run.method, record.run.task) in {("ogive", "fish"), ("ddn", "fish"), ("ddn", "concrete")}
    }
    text = write_paper(tmp_path, whole | {"uci": Part(protocols["uci"], records)})
    given = undrawn["reliability.png"]
    assert {task: [curve.title for curve in curves] for task, curves in given.items()} == {
        "fish": ["ogive", "ddn"],
        "concrete": ["ddn"],
    }
    (section,) = (body for (top, title), body in sections(text).items() if top == "Calibration" and title)
    assert "- paper: not measured yet (everywhere)\n- ogive: not measured yet (splits: concrete 10)\n" in section
    tested = len(np.unique([KINDS["uci"].judged(100, split) for split in range(10)]))
    assert given["fish"][0].share[-1] == 1.0 and given["fish"][0].distinct == tested


# --- the shell


def shell(*arguments: object, code: int = 0) -> None:
    assert main(["bench", "paper", *map(str, arguments)]) == code


def test_committed_records_make_the_page_and_nothing_else_is_touched(tmp_path, capsys):
    shell("--out", tmp_path / "new" / "page")
    out, err = capsys.readouterr()
    assert err == ""
    assert (tmp_path / "new" / "page" / "README.md").read_text(encoding="utf-8") == out
    for name, methods in PRINTED.items():
        shown = {row[0] for row in rows_of(out, name)}
        assert set(methods) <= shown
    for path in (tmp_path / "new" / "page").glob("*.png"):
        assert path.stat().st_size < 200_000
    records = read_records(benchmarks_folder() / "records", "uci")
    assert f"- Records: {len(records)} of 630 runs" in out


def test_the_page_goes_to_docs_paper_beside_the_benchmarks(tmp_path, monkeypatch, capsys, undrawn):
    folder = tmp_path / "benchmarks"
    shutil.copytree(benchmarks_folder(), folder, ignore=shutil.ignore_patterns("records"))
    monkeypatch.setattr(bench, "benchmarks_folder", lambda: folder)
    protocol = read_protocol(folder / "toy.toml")
    run = protocol.runs()[0]
    append(folder / "records", record_of(run, metrics={"sse": 0.4321}))
    shell()
    page = tmp_path / "docs" / "paper" / "README.md"
    assert page.read_text(encoding="utf-8") == capsys.readouterr().out
    assert "0.4321 (1)" in page.read_text(encoding="utf-8")


def test_a_quick_run_goes_the_whole_way(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shell("--quick", "--out", tmp_path / "page")
    out, err = capsys.readouterr()
    assert [name for name in ("uci", "toy", "ablation", "delta") if f"{name}-quick: 100%" not in err] == []
    assert "9/9" in err and "3/3" in err and "2/2" in err
    assert "Gaps" not in out
    assert re.findall("^- .*", "".join(re.findall("No density:\n\n.*\n", out)), re.M) == ["- mdn: not in the protocol"]
    assert re.findall(r"Records: (\d+) of (\d+) runs; ", out) == [("9", "9"), ("9", "9"), ("3", "3"), ("2", "2")]
    assert [path.name for path in tmp_path.iterdir()] == ["page"]  # the records are gone
    rows = rows_of(out, ("delta", "sse"))[1:]
    assert [row[0] for row in rows] == ["delta-5e-6", "- printed", "- difference", "exact"]
    assert float(rows[2][1]) == pytest.approx(float(rows[0][1]) - 0.088, abs=1.1e-4)
    (errors,) = (body for (_, title), body in sections(out).items() if title.endswith("in float64"))
    found = dict(cells(errors)[1:])
    assert float(found["exact"]) == 0.0 < float(found["delta-5e-6"]) < 1e-5


@pytest.fixture
def measured(monkeypatch) -> list[str]:
    """Runs that were to be measured."""
    kept = []

    def fake(run: Run) -> Record:
        kept.append(f"{run.protocol} {run.title}")
        return record_of(run, failure="ValueError: no" if run.method == "exact" else None)

    monkeypatch.setattr(running, "measure", fake)
    return kept


def test_what_is_named_is_measured_and_the_page_is_of_all(tmp_path, measured, capsys, undrawn):
    where = ("--records", tmp_path / "kept", "--out", tmp_path / "page", "--quiet")
    shell("--quick", *where, "--only", "toy,ring,ogive", "--splits", "1")
    assert measured == ["toy-quick ogive on ring 1"]
    assert capsys.readouterr().err == ""
    measured.clear()
    shell("--quick", *where, "--only", "ablation", "--only", "delta", "--limit", "4")
    assert len(measured) == 4 and measured[2:] == [
        "ablation-quick monotone-mlp on ring 0",
        "delta-quick delta-5e-6 on ring 0",
    ]
    measured.clear()
    shell("--quick", *where, "--only", "ablation,delta", "--limit", "4")
    assert measured == ["delta-quick exact on ring 0"]
    measured.clear()
    shell("--quick", *where, "--only", "ablation,delta")
    assert measured == []
    shell("--quick", *where, "--only", "ablation,delta", "--retry")
    assert measured == ["delta-quick exact on ring 0"]
    out = capsys.readouterr().out
    assert "- exact: ValueError: no (everywhere)\n" in out
    assert [line for line in out.splitlines() if line.startswith("# ")] == ["# The paper, reproduced"] * 4


def test_run_measures_what_has_no_record(tmp_path, measured, capsys, undrawn):
    where = ("--records", tmp_path / "kept", "--out", tmp_path / "page", "--quiet", "--only", "ablation")
    shell("--run", *where, "--splits", "0,3", "--jobs", "1")
    assert len(measured) == 8 and measured[-1] == "ablation monotone-mlp on ring 3"
    assert len(read_records(tmp_path / "kept", "ablation")) == 8
    shell("--run", *where, "--limit", "1")
    assert measured[8:] == ["ablation full on ring 1"]
    assert "- Records: 9 of 40 runs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--only", "ring"], "--only, --splits, --limit and --retry must come with --run; got none"),
        (["--retry"], "must come with --run; got none"),
        (["--run", "--only", "rnig"], "--only must name some of protocols (uci, toy, ablation, delta), tasks (fish, "),
        (["--run", "--splits", "10"], "--splits must lie in 0..9; got 10"),
        (["--run", "--splits", "a"], "--splits must be whole numbers; got 'a'"),
        (["--run", "--only", "delta", "--splits", "9"], "must leave runs to measure; got none"),
    ],
)
def test_a_users_error_is_one_line_and_writes_nothing(tmp_path, capsys, arguments, fact):
    shell("--out", tmp_path / "page", "--records", tmp_path / "kept", *arguments, code=2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert fact in said.err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_nothing_is_measured(tmp_path, measured, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shell("--quick", "--out", tmp_path / "page", code=2)
    assert "pip install 'ogive[plot]'" in capsys.readouterr().err
    assert measured == []
    assert list(tmp_path.iterdir()) == []
