"""The harness: what is recorded survives, what is recorded is not measured again, and tables are its arithmetic."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ogive import metrics
from ogive.bench import (
    Record,
    Run,
    append,
    benchmarks_folder,
    carry_out,
    make_report,
    open_runs,
    provenance,
    questions,
    read_protocol,
    read_records,
    report_text,
    tasks,
)
from ogive.bench import methods as registry
from ogive.bench import run as running
from ogive.bench.measure import measure
from ogive.bench.picture import STEPS, unpacked
from ogive.bench.provenance import commit
from ogive.bench.quantities import QUANTITIES
from ogive.bench.record import plain
from ogive.bench.tasks import KINDS
from ogive.cli import main
from ogive.datasets import toy, uci
from ogive.errors import DataError, FileFormatError, NotAvailableError

RUN = Run("small", "toy", "ring", 3, "quiet", "ogive", {"noise": False, "hidden": [8, 8]}, 30)
TINY = "{ n_members = 1, max_epochs = 2, hidden = [4], groups = 2, units = 2 }"
SMALL = f"""
name = "small"
title = "A small one"
kind = "toy"
tasks = ["squares", "ring"]
splits = 3
rows = 20
methods = [
    {{ name = "tiny", base = "ogive", settings = {TINY} }},
    {{ name = "broken", base = "ogive", settings = {{ n_members = 0 }}, splits = [1], tasks = ["ring"] }},
]

[[bars]]
name = "printed"
metric = "sse"
source = "a book"
values = {{ squares = 0.5 }}
"""


def written(folder: Path, text: str = SMALL, name: str = "small") -> Path:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def record_of(run: Run, **facts: object) -> Record:
    return Record(run, "2020-02-02T02:02:02Z", run.split, **facts)


def bench(*arguments: object, code: int = 0) -> tuple[str, str]:
    """Run `ogive bench` in a process of its own in which warnings are errors; its standard output and error."""
    command = [sys.executable, "-W", "error", "-m", "ogive", "bench", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


# --- a run and its key


def test_the_key_of_a_run_is_the_same_on_every_machine_and_day():
    assert RUN.key == "5cc4beb479fccd70"
    assert replace(RUN, settings={"hidden": [8, 8], "noise": False}).key == RUN.key
    assert replace(RUN, protocol="another").key == RUN.key


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "uci"},
        {"task": "stick"},
        {"split": 4},
        {"method": "loud"},
        {"base": "paper"},
        {"rows": 31},
        {"rows": None},
        {"settings": {}},
        {"settings": {"noise": True, "hidden": [8, 8]}},
        {"settings": {"noise": False, "hidden": [8, 9]}},
    ],
)
def test_the_key_of_a_run_tells_what_is_measured(change):
    assert replace(RUN, **change).key != RUN.key


# --- protocols


def test_a_protocol_plans_whole_splits_one_after_the_other(tmp_path):
    protocol = read_protocol(written(tmp_path))
    plan = [(run.split, run.task, run.method) for run in protocol.runs()]
    tiny = [(split, task, "tiny") for split in range(3) for task in ("squares", "ring")]
    assert plan == [*tiny[:4], (1, "ring", "broken"), *tiny[4:]]
    assert protocol.runs()[0].settings["hidden"] == [4]
    assert {run.rows for run in protocol.runs()} == {20}


def test_a_protocol_can_be_narrowed_to_tasks_methods_and_splits(tmp_path):
    protocol = read_protocol(written(tmp_path))
    assert protocol.narrowed() == protocol
    assert [run.title for run in protocol.narrowed(["ring"], [1]).runs()] == ["tiny on ring 1", "broken on ring 1"]
    assert [run.title for run in protocol.narrowed(["broken"]).runs()] == ["broken on ring 1"]
    with pytest.raises(DataError, match=r"--only must name tasks \(squares, ring\) or methods .*; got 'rnig'"):
        protocol.narrowed(["rnig"])
    with pytest.raises(DataError, match=r"--splits must lie in 0\.\.2; got 3"):
        protocol.narrowed(splits=[3])


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ('kind = "toy"', 'kind = "toys"', "kind 'toys', not one of uci, toy"),
        ('"squares", "ring"', '"squares", "rnig"', "task 'rnig', not one of squares, "),
        ('["ring"]', '["stick"]', "task 'stick', not one of squares, ring"),
        ('{ name = "broken", base = "ogive"', '{ name = "broken"', "method 'broken', not one of ogive, paper"),
        ('"broken"', '"tiny"', "the name 'tiny'"),
        ('"broken"', '"../broken"', "the name '../broken'"),
        ('name = "small"', 'name = "a/b"', "the name 'a/b'"),
        ("splits = [1]", "splits = [1, 3]", "split 3, not one of 0, 1, 2"),
        ("splits = 3", "splits = []", "no tasks, no splits or no methods"),
        ("methods = [", "methods = [3,", "'int' object has no attribute"),
        ('{ name = "broken", ', "{ ", "no 'name' in method ''"),
        ("rows = 20", "row = 20", "key 'row', not one of name, title"),
        ("splits = 3", "", "no 'splits' in protocol 'small'"),
        ("squares = 0.5", "sqares = 0.5", "task 'sqares', not one of "),
        ("squares = 0.5", "squares = 'low'", "could not convert string to float"),
        ('source = "a book"', "", "no 'source' in bar 'printed'"),
        ("splits = 3", "splits = ", "must be a TOML file; got Invalid value"),
        ("splits = [1]", "splits = 1.5", "must describe a protocol; got 'float' object is not iterable"),
    ],
)
def test_a_wrong_protocol_is_refused_with_the_fact(tmp_path, old, new, fact):
    assert old in SMALL
    path = written(tmp_path, SMALL.replace(old, new))
    with pytest.raises(FileFormatError) as refused:
        read_protocol(path)
    assert fact in str(refused.value)


def test_a_quick_protocol_is_the_same_with_entries_replaced(tmp_path):
    path = written(tmp_path)
    with pytest.raises(FileFormatError, match=r"must have a table \[quick\]; got none"):
        read_protocol(path, quick=True)
    path.write_text(SMALL + '\n[quick]\ntasks = ["ring"]\nrows = 9\n', encoding="utf-8")
    assert read_protocol(path).tasks == ("squares", "ring")
    quick = read_protocol(path, quick=True)
    assert (quick.tasks, quick.rows, quick.splits) == (("ring",), 9, (0, 1, 2))


@pytest.mark.parametrize("name", ["uci", "toy"])
def test_the_committed_protocols_are_whole(name):
    protocol = read_protocol(benchmarks_folder() / f"{name}.toml")
    assert {method.name for method in protocol.methods} >= {"ogive", "paper", "nsf-ensemble", "ngboost"}
    assert {bar.metric for bar in protocol.bars} <= {quantity.name for quantity in QUANTITIES[name]}
    assert all(set(bar.values) <= set(protocol.tasks) and bar.source for bar in protocol.bars)
    quick = read_protocol(benchmarks_folder() / f"{name}.toml", quick=True)
    assert quick.name == f"{name}-quick"
    assert set(quick.tasks) <= set(toy.TOYS)  # no data, no network


def test_the_folder_of_benchmarks_must_be_found(monkeypatch, tmp_path):
    protocol_file = sys.modules[Run.__module__]
    monkeypatch.setattr(protocol_file, "__file__", str(tmp_path / "a" / "b" / "c" / "d.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="must find the folder 'benchmarks'"):
        benchmarks_folder()
    (tmp_path / "benchmarks").mkdir()
    assert benchmarks_folder() == tmp_path / "benchmarks"


# --- records


def full_record(run: Run = RUN) -> Record:
    return record_of(
        run,
        size={"train": 14, "test": 6, "all": 20, "features": 1, "outputs": 2},
        seconds={"fit": 1.5, "score": 0.25},
        metrics={"nll": math.inf, "crps": [0.5, -math.inf], "pit_counts": [[1, 2]], "energy_score": None},
        reasons={"energy_score": "NotAvailableError: größer"},
        parameters={"hidden": [8, 8], "noise": False},
        warnings=["UserWarning: slow"],
        versions={"ogive": "1", "zuko": None},
        machine={"cpu": "x", "cores": 2, "threads": 1},
    )


def test_a_record_comes_back_from_its_line():
    record = full_record()
    line = record.as_line()
    assert line.count("\n") == 1 and line.endswith("\n") and line.isascii()
    assert Record.from_line(line) == record
    assert json.loads(line)["key"] == RUN.key
    failure = record_of(RUN, failure="ValueError: no")
    assert Record.from_line(failure.as_line()) == failure


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text() | st.floats(), st.lists, max_leaves=6))
def test_whatever_an_estimator_has_for_parameters_can_be_written(value):
    again = json.loads(json.dumps(plain({"p": value, "q": np.float64(2.0), "r": (len, np.arange(2))}), allow_nan=False))
    assert again["q"] == 2.0 and again["r"][1] == [0, 1] and "built-in" in again["r"][0]


@pytest.mark.parametrize("kept", [0, 1, 40, -1])
def test_a_torn_line_is_no_record_and_hurts_no_other(tmp_path, kept):
    first, second, third = (replace(RUN, split=split) for split in range(3))
    for run in (first, second):
        append(tmp_path, full_record(run))
    path = tmp_path / "small" / "quiet.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:kept])
    whole = {first.key, second.key} if kept == -1 else {first.key}
    assert set(read_records(tmp_path, "small")) == whole
    append(tmp_path, full_record(third))
    assert set(read_records(tmp_path, "small")) == whole | {third.key}
    assert path.read_bytes().startswith(lines[0])


def test_of_several_records_of_a_run_the_last_counts(tmp_path):
    assert read_records(tmp_path, "small") == {}
    append(tmp_path, record_of(RUN, failure="ValueError: no"))
    append(tmp_path, full_record())
    append(tmp_path, full_record(replace(RUN, method="loud")))
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == ["loud.jsonl", "quiet.jsonl"]
    records = read_records(tmp_path, "small")
    assert len(records) == 2
    assert records[RUN.key] == full_record()


@pytest.mark.parametrize("line", ["{}", "3", '{"task": "ring"}'])
def test_a_whole_line_that_is_no_record_is_an_error(line):
    with pytest.raises(FileFormatError, match="a record must be an object with every field"):
        Record.from_line(line)


# --- tasks and methods


def test_a_table_is_split_by_permutation_and_its_outputs_are_in_standard_deviations(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)).round(1) * [1.0, 100.0]
    monkeypatch.setattr(uci, "load", lambda name: uci.Table(name, X, y, ("a", "b", "c"), ("u", "v")))
    split = KINDS["uci"].split("fish", 5, 20)
    order = np.random.default_rng(5).permutation(20)
    assert np.array_equal(split.X, X[order[:14]])
    assert np.array_equal(split.X_test, X[order[14:]])
    assert np.array_equal(split.y, y[order[:14]] / y.std(0))
    assert np.allclose(split.y_all.std(0), 1.0)
    assert np.allclose(split.step * y.std(0), [0.1, 10.0])


def test_a_table_that_is_not_there_ends_the_command_and_blames_no_method(monkeypatch, tmp_path):
    def nothing(name):
        raise FileNotFoundError("concrete must come from a folder or from the network")

    monkeypatch.setattr(uci, "load", nothing)
    run = Run("p", "uci", "concrete", 0, "ogive", "ogive")
    with pytest.raises(DataError, match="concrete must come from"):
        carry_out([run], tmp_path, quiet=True)
    assert read_records(tmp_path, "p") == {}


def test_a_toy_draws_its_training_rows_first_from_the_seed_of_the_split():
    split = KINDS["toy"].split("ring", 7, None)
    X, y = toy.get("ring").sample(2000, np.random.default_rng(7))
    assert np.array_equal(split.X, X)
    assert np.array_equal(split.y, y)
    assert split.X_test.shape == (2000, 1)
    assert not np.isin(split.y_test, y).any()
    assert np.array_equal(split.y_all, np.concatenate([y, split.y_test]))


@pytest.fixture
def numbered(monkeypatch):
    """A table of 60 rows whose feature is the row's number."""
    X, y = np.arange(60.0)[:, None], np.random.default_rng(0).normal(size=(60, 1))
    monkeypatch.setattr(uci, "load", lambda name: uci.Table(name, X, y, ("a",), ("u",)))
    tasks._table.cache_clear()
    yield y
    tasks._table.cache_clear()


def test_rows_are_pooled_as_those_of_the_table_that_were_judged_on(numbered):
    for kind in ("uci", "nested"):
        for repeat in range(3):
            split = KINDS[kind].split("fish", repeat, None)
            assert split.X_test[:, 0].tolist() == KINDS[kind].judged(split.size, repeat).tolist()
            assert split.size == 60


def test_the_nested_split_never_sees_a_test_row_and_keeps_the_tables_units(numbered):
    outer, inner = (KINDS[kind].split("fish", 4, None) for kind in ("uci", "nested"))
    seen = [*inner.X[:, 0], *inner.X_test[:, 0]]
    assert (len(inner.X), len(inner.X_test)) == (33, 9)
    assert sorted(seen) == sorted(outer.X[:, 0]) and not set(seen) & set(outer.X_test[:, 0])
    assert np.array_equal(inner.y_all, outer.y)
    assert np.array_equal(inner.y_test * numbered.std(), numbered[inner.X_test[:, 0].astype(int)])
    assert inner.step == outer.step


def test_the_ablation_has_a_thousand_rows_and_no_repeat_of_a_toy_shares_a_row():
    split = KINDS["ablation"].split("ring", 2, None)
    assert len(split.X) == len(split.X_test) == 500 and split.size == 1000
    judged = [KINDS["ablation"].judged(split.size, repeat) for repeat in range(3)]
    assert len(np.unique(judged)) == 3 * 500


@pytest.mark.parametrize("base", registry.METHODS)
def test_every_method_has_the_face_of_an_estimator_and_its_seed(base):
    split = KINDS["toy"].split("ring", 0, 10)
    model = registry.make(base, 11, split, {})
    assert callable(model.fit) and callable(model.predict_dist)
    assert model.get_params()["random_state"] == 11


def test_settings_reach_the_estimator_and_the_paper_knows_the_range_of_all_rows():
    split = KINDS["toy"].split("ring", 0, 10)
    assert registry.make("ogive", 0, split, {"noise": False, "random_state": 4}).noise is False
    paper = registry.make("paper", 0, split, {"max_epochs": 3})
    assert paper.support == [(low, high) for low, high in zip(split.y_all.min(0), split.y_all.max(0), strict=True)]
    assert paper.max_epochs == 3


# --- measuring, with laws whose scores are known


class Normal:
    """Independent standard normal outputs, whatever x; it refuses the energy score."""

    output_names = ("u", "v")
    n_outputs = 2

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, part):
        return Normal(len(range(*part.indices(self.n))))

    def logpdf(self, y):
        return stats.norm.logpdf(y).sum(-1)

    def pit(self, y):
        return stats.norm.cdf(y)

    def interval(self, coverage):
        return np.broadcast_to(np.array(stats.norm.interval(coverage)), (self.n, 2, 2))

    def crps(self, y):
        return y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)

    def energy_score(self, y):
        raise NotAvailableError("energy_score must be asked of\nanother law.")


class Truth(Normal):
    """The exact law of the ring."""

    def __init__(self, X):
        super().__init__(len(X))
        self.x = X[:, 0]

    def logpdf(self, y):
        return toy.get("ring").logpdf(self.x, y)


class Known:
    """An estimator of one of these laws."""

    def __init__(self, seed=0, split=None, law=lambda X: Normal(len(X)), error=None):
        self.law, self.error = law, error

    def fit(self, X, y):
        if self.error is not None:
            raise self.error
        np.float64(1.0) / np.float64(0.0)  # a method that warns

    def predict_dist(self, X):
        return self.law(X)


@pytest.fixture
def known(monkeypatch):
    """Put methods of known laws in the registry."""
    extra = {
        "normal": Known,
        "truth": lambda seed, split: Known(law=Truth),
        "error": lambda seed, split: Known(error=RuntimeError("two\n  lines")),
    }
    monkeypatch.setattr(registry, "METHODS", {**registry.METHODS, **extra})


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_a_table_is_scored_by_the_metrics_and_a_refusal_leaves_a_gap(known):
    record = measure(Run("p", "uci", "ring", 0, "normal", "normal", {}, 50))
    split, law = KINDS["uci"].split("ring", 0, 50), Normal(15)
    y = split.y_test
    found = dict(record.metrics)
    assert found.pop("energy_score") is None
    assert record.reasons == {"energy_score": "NotAvailableError: energy_score must be asked of another law."}
    assert found.pop("pit_counts") == [
        [int((stats.norm.cdf(column) <= level / 10).sum()) for level in range(1, 11)] for column in y.T
    ]
    assert found.pop("nll") == pytest.approx(-stats.norm.logpdf(y).sum(1).mean())
    assert found.pop("crps") == pytest.approx(law.crps(y).mean(0).tolist())
    assert found.pop("coverage") == pytest.approx((np.abs(y) <= stats.norm.ppf(0.95)).mean(0).tolist())
    assert found.pop("rounded_nll") == pytest.approx(metrics.rounded_nll(law, y, split.step))
    assert not found
    assert record.failure is None and record.seed == 0
    assert record.size == {"train": 35, "test": 15, "all": 50, "features": 1, "outputs": 2}
    assert record.warnings == ["RuntimeWarning: divide by zero encountered in scalar divide"]
    assert record.seconds["fit"] >= 0.0 and record.seconds["score"] >= 0.0
    assert {"ogive", "commit", "torch", "numpy", "scikit-learn", "python"} <= set(record.versions)
    assert record.machine["cores"] >= 1 and record.machine["cpu"]
    assert Record.from_line(record.as_line()) == record


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_the_truth_has_no_error_on_a_toy(known):
    record = measure(Run("p", "toy", "ring", 1, "truth", "truth"))
    split = KINDS["toy"].split("ring", 1, None)
    nll = -toy.get("ring").logpdf(split.X_test[:, 0], split.y_test).mean()
    assert record.reasons == {}
    assert record.metrics["sse"] == pytest.approx(0.0, abs=1e-12)
    assert record.metrics["divergence"] == pytest.approx(0.0, abs=1e-12)
    assert record.metrics["nll_above_entropy"] == pytest.approx(nll - toy.get("ring").entropy())
    away = measure(Run("p", "toy", "ring", 1, "normal", "normal"))
    nodes = np.stack(np.meshgrid(toy.SSE_AXIS, toy.SSE_AXIS, indexing="ij"), -1)
    grid = np.broadcast_to(stats.norm.pdf(nodes).prod(-1), (4, 64, 64))
    assert away.metrics["sse"] == pytest.approx(toy.sse(grid, toy.get("ring")))


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_a_density_of_zero_is_an_infinite_nll_and_no_gap(known, monkeypatch):
    monkeypatch.setattr(Normal, "logpdf", lambda self, y: np.full(len(y), -np.inf))
    record = measure(Run("p", "uci", "ring", 0, "normal", "normal", {}, 50))
    assert record.metrics["nll"] == math.inf
    assert set(record.reasons) == {"energy_score"}
    assert Record.from_line(record.as_line()) == record


def test_a_method_that_fails_is_a_record_with_its_reason(known):
    record = measure(Run("p", "toy", "ring", 0, "error", "error", {}, 10))
    assert record.failure == "RuntimeError: two lines"
    assert record.metrics == {} and record.size["train"] == 10


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_a_metric_that_would_take_too_long_is_given_up(known, monkeypatch):
    asked = []

    def slow(law, y):
        asked.append(len(y))
        time.sleep(0.01)
        return np.zeros(2)

    run = Run("p", "uci", "ring", 0, "normal", "normal", {}, 1000)
    monkeypatch.setattr(metrics, "crps", slow)
    assert measure(run).metrics["crps"] == [0.0, 0.0]
    assert asked == [1, 2, 4, 8, 16, 32, 64, 128, 45]
    asked.clear()
    monkeypatch.setattr(questions, "PATIENCE", 0.0)
    monkeypatch.setattr(questions, "LONGEST", 1.0)
    record = measure(run)
    assert record.metrics["crps"] is None
    assert record.reasons["crps"] == "NotAvailableError: the test rows would take more than 0 minutes."
    assert asked == [1]
    assert record.metrics["coverage"] is not None


# --- carrying a plan out


def test_a_run_with_a_record_is_not_measured_again(monkeypatch, tmp_path):
    plan = read_protocol(written(tmp_path)).runs()
    measured = []

    def fake(run):
        measured.append(run)
        return record_of(run, failure="ValueError: no" if run.method == "broken" else None)

    monkeypatch.setattr(running, "measure", fake)
    assert carry_out(plan, tmp_path, limit=2, quiet=True) == 2
    assert measured == plan[:2]
    assert carry_out(plan, tmp_path, quiet=True) == len(plan) - 2
    assert measured == plan
    assert carry_out(plan, tmp_path, quiet=True) == 0
    assert measured == plan
    carry_out(plan, tmp_path, retry=True, quiet=True)
    assert measured == [*plan, next(run for run in plan if run.method == "broken")]
    changed = [replace(run, settings={"noise": False}) for run in plan]
    assert open_runs(changed, read_records(tmp_path, "small").values()) == changed
    assert carry_out([], tmp_path) == 0


def test_the_progress_bar_counts_what_is_done_and_what_failed(monkeypatch, tmp_path, capsys):
    plan = read_protocol(written(tmp_path)).runs()
    monkeypatch.setattr(running, "measure", lambda run: record_of(run, failure="ValueError: no"))
    carry_out(plan, tmp_path, limit=1, quiet=True)
    carry_out(plan, tmp_path)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.rpartition("\r")[2].startswith("small: 100%")
    assert "1/7" in said.err and "7/7" in said.err
    assert "tiny on ring 2, 6 failed" in said.err


def test_several_processes_measure_the_same_as_one(tmp_path):
    plan = read_protocol(written(tmp_path)).narrowed(["ring"], [0, 1]).runs()
    carry_out(plan, tmp_path / "one", quiet=True)
    carry_out(plan, tmp_path / "two", jobs=2, quiet=True)
    one, two = (read_records(tmp_path / name, "small") for name in ("one", "two"))
    assert set(one) == set(two) == {run.key for run in plan}
    for key, record in one.items():
        assert (two[key].failure, two[key].warnings) == (record.failure, record.warnings)
        own, other = dict(record.metrics), dict(two[key].metrics)
        if record.run.split == questions.PICTURED:
            pictures = [own.pop("picture"), other.pop("picture")]
            assert [picture["top"] for picture in pictures] == pytest.approx([pictures[0]["top"]] * 2)
            one_step = pictures[0]["top"] / STEPS
            np.testing.assert_allclose(*map(unpacked, pictures), rtol=0.0, atol=1.01 * one_step)
        assert other == pytest.approx(own)


def test_a_run_that_ends_its_process_is_a_failure_and_the_next_has_a_new_process():
    dies = "import os, signal; input(); os.kill(os.getpid(), signal.SIGKILL)"
    worker = running.Worker(1, [sys.executable, "-c", dies])
    records = [worker.measure(replace(RUN, split=split)) for split in range(2)]
    worker.close()
    assert {record.failure for record in records} == {"the process that measured it was ended by SIGKILL"}
    worker = running.Worker(1, [sys.executable, "-c", "raise SystemExit(3)"])
    assert worker.measure(RUN).failure == "the process that measured it ended with code 3"
    worker.close()
    worker.close()


def test_processes_share_the_processors_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert running.Worker(3).environment["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert running.Worker(3).environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_plan_goes_on_after_kill_9(tmp_path, jobs):
    path = written(tmp_path, SMALL.replace("splits = 3", "splits = 6"))
    records = tmp_path / "records" / "small" / "tiny.jsonl"
    command = [sys.executable, "-W", "error", "-m", "ogive", "bench", "toy", "--run", "--json", "--protocol", str(path)]
    process = subprocess.Popen([*command, "--jobs", str(jobs)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while process.poll() is None and (not records.exists() or records.read_bytes().count(b"\n") < 2):
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        # Its end of standard error is also held by the processes it started: this waits for the last of them.
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    plan = read_protocol(path).runs()
    before = records.read_bytes()
    kept = read_records(tmp_path / "records", "small")
    assert 2 <= len(kept) < len(plan)
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    after = read_records(tmp_path / "records", "small")
    assert records.read_bytes().startswith(before)
    assert set(after) == {run.key for run in plan}
    assert {key: after[key] for key in kept} == kept
    assert records.read_bytes().count(b"\n") <= len(plan) + 1  # no run twice; a torn line at most


# --- tables


def toy_record(run: Run, sse: float, **facts: object) -> Record:
    return record_of(run, metrics={"sse": sse, "nll_above_entropy": None}, seconds={"fit": 2.0}, **facts)


def test_a_table_is_the_mean_over_splits_and_its_standard_error(tmp_path):
    protocol = read_protocol(written(tmp_path))
    values = {("squares", 0): 0.1, ("squares", 1): 0.2, ("squares", 2): 0.6, ("ring", 1): 0.25}
    records = {
        run.key: toy_record(run, values[run.task, run.split], reasons={"nll_above_entropy": "ValueError: odd"})
        for run in protocol.runs()
        if run.method == "tiny" and (run.task, run.split) in values
    }
    broken = next(run for run in protocol.runs() if run.method == "broken")
    records[broken.key] = record_of(broken, failure="DataError: n_members must be at least 1; got 0.")
    report = make_report(protocol, records)
    sse, seconds = report.tables
    assert [row.name for row in sse.rows] == ["printed", "tiny", "broken"]
    cell = sse.rows[1].cells["squares"]
    assert cell.numbers["mean"] == pytest.approx(0.3)
    assert cell.numbers["standard_error"] == pytest.approx(math.sqrt((0.2**2 + 0.1**2 + 0.3**2) / 2 / 3))
    assert cell.text == "0.3000 ± 0.1528"
    assert sse.rows[1].cells["ring"].text == "0.2500 (1)"
    assert sse.rows[2].cells == {}
    assert sse.gaps == [
        "broken: DataError: n_members must be at least 1; got 0. (everywhere)",
        "tiny: not measured yet (splits: ring 2)",
    ]
    assert seconds.rows[0].cells["squares"].text == "2.0 ± 0.0"
    text = report_text(report)
    assert "| printed |             0.5 |          - |" in text
    assert "| tiny    | 0.3000 ± 0.1528 | 0.2500 (1) |" in text
    assert "| broken  |               - |          - |" in text
    assert "- printed: a book\n\nGaps:\n\n- broken: DataError" in text
    assert "- Records: 5 of 7 runs, 1 of them of a failure; splits 0 to 2." in text
    assert len({len(line) for line in text.splitlines() if line.startswith("| ")}) == 2  # columns are straight
    found = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert found["tables"]["sse"]["rows"][1]["cells"]["squares"]["values"] == [0.1, 0.2, 0.6]


def table_protocol(tmp_path: Path):
    text = SMALL.replace('kind = "toy"', 'kind = "uci"').replace('"sse"', '"nll"')
    return read_protocol(written(tmp_path, text)).narrowed(["tiny", "ring"], [0, 1])


def test_calibration_is_pooled_over_splits_and_the_band_is_of_distinct_rows(tmp_path):
    protocol = table_protocol(tmp_path)
    counts = [[[6] * 9 + [30], [3 * k for k in range(1, 11)]], [[30] * 10, [0] * 9 + [30]]]
    records = {
        run.key: record_of(
            run,
            metrics={
                "nll": [math.inf, 1.0][run.split],
                "crps": [1.0, 3.0],
                "pit_counts": counts[run.split],
                "coverage": [[0.8, 0.9], [0.9, 0.95]][run.split],
                "energy_score": None,
            },
            reasons={"energy_score": "NotAvailableError: asked too much"},
            size={"all": 100, "outputs": 2},
        )
        for run in protocol.runs()
    }
    tables = {table.name: table for table in make_report(protocol, records).tables}
    assert list(tables) == ["nll", "crps", "ece", "coverage"]
    cells = {name: table.rows[-1].cells["ring"] for name, table in tables.items()}
    share = np.array([6 + 30 + 3 * k for k in range(1, 10)] + [120]) / 120
    ece = np.abs(share - np.arange(1, 11) / 10).mean()
    distinct = len({*np.random.default_rng(0).permutation(100)[70:], *np.random.default_rng(1).permutation(100)[70:]})
    assert cells["ece"].numbers["ece"] == pytest.approx(ece)
    assert cells["ece"].numbers["distinct"] == 2 * distinct
    assert cells["ece"].text == f"{ece:.4f} / {metrics.ece_band(2 * distinct):.4f}"
    assert cells["coverage"].text == "85.0 to 92.5"
    assert cells["crps"].text == "2.0000 ± 0.0000"
    assert cells["nll"].text == "inf"


def test_reasons_of_a_metric_stand_below_its_table(tmp_path):
    protocol = table_protocol(tmp_path)
    first, second = protocol.runs()
    refused = {"reasons": {"crps": "NotAvailableError: no"}, "size": {"all": 9, "outputs": 1}}
    records = {
        first.key: record_of(first, metrics={"nll": 1.0, "crps": None}, **refused),
        second.key: record_of(second, metrics={"nll": 3.0, "crps": [0.5]}),
    }
    nll, crps = make_report(protocol, records).tables
    assert nll.gaps == []
    assert nll.rows[-1].cells["ring"].text == "2.000 ± 1.000"
    assert crps.gaps == ["tiny: NotAvailableError: no (splits: ring 1)"]
    assert crps.rows[-1].cells["ring"].text == "0.5000 (1)"


def test_without_records_the_first_table_says_so(tmp_path):
    report = make_report(read_protocol(written(tmp_path)), {})
    assert [table.name for table in report.tables] == ["sse"]
    assert report.tables[0].gaps == ["tiny, broken: not measured yet (everywhere)"]
    assert report.facts == ["Records: 0 of 7 runs; splits 0 to 2."]


def test_the_report_tells_versions_machines_and_changed_defaults(tmp_path):
    protocol = read_protocol(written(tmp_path)).narrowed(["tiny", "ring"], [0, 2])
    runs = protocol.runs()
    box = {"cpu": "x", "cores": 2, "threads": 1}
    facts = [
        {"versions": {"ogive": "1", "commit": "a" * 40, "zuko": None}, "machine": box, "parameters": {"noise": True}},
        {"versions": {"ogive": "1", "commit": "b" * 40 + "+"}, "machine": box, "parameters": {"noise": False}},
    ]
    same = [{**f, "parameters": {"noise": True, "random_state": i, "support": i}} for i, f in enumerate(facts)]
    report = make_report(protocol, {r.key: toy_record(r, 0.1, **f) for r, f in zip(runs, facts, strict=True)})
    assert report.facts == [
        "Records: 2 of 2 runs; splits 0, 2.",
        "Versions: ogive 1; commit aaaaaaaaaa, bbbbbbbbbb+.",
        "Machine: x, 2 cores, threads in use: 1.",
        "tiny: its records are of 2 configurations. Take out those of the former, and measure again.",
    ]
    report = make_report(protocol, {r.key: toy_record(r, 0.1, **f) for r, f in zip(runs, same, strict=True)})
    assert len(report.facts) == 3


def test_the_commit_is_that_of_the_source_tree_alone(tmp_path):
    package = tmp_path / "src" / "ogive"
    package.mkdir(parents=True)
    (package / "a.py").write_text("1\n")
    assert commit(package) is None

    def git(*arguments):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    assert commit(package) is None
    git("add", ".")
    git("commit", "-qm", "one")
    assert commit(package) == git("rev-parse", "HEAD")
    (tmp_path / "records").write_text("2\n")
    assert commit(package) == git("rev-parse", "HEAD")
    (package / "a.py").write_text("2\n")
    assert commit(package) == git("rev-parse", "HEAD") + "+"
    assert commit(tmp_path / "lib" / "ogive") is None


def test_a_library_that_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(provenance, "LIBRARIES", ("numpy", "nowhere-to-be-found"))
    found = provenance.versions.__wrapped__()
    assert (found["numpy"], found["nowhere-to-be-found"]) == (np.__version__, None)


# --- the shell


OF_TABLES = [
    "nll",
    "nll_against_mdn",
    "crps_against_mdn",
    "crps",
    "energy_score",
    "rounded_nll",
    "ece",
    "coverage",
    "fit",
]
OF_TOYS = ["sse", "nll_above_entropy", "divergence", "fit"]


@pytest.mark.parametrize(("kind", "names"), [("uci", OF_TABLES), ("toy", OF_TOYS)])
def test_a_quick_run_goes_the_whole_way(kind, names, tmp_path, capsys):
    records, page = str(tmp_path / "kept"), tmp_path / "tables.md"
    assert main(["bench", kind, "--quick", "--records", records, "--out", str(page)]) == 0
    out, err = capsys.readouterr()
    assert "Gaps" not in out and " 9 of 9 runs;" in out
    assert "9/9" in err
    assert page.read_text(encoding="utf-8") == out
    assert main(["bench", kind, "--quick", "--quiet", "--records", records, "--json"]) == 0
    tables = json.loads(capsys.readouterr().out)["tables"]
    assert list(tables) == names
    assert re.findall("^## (.*)", out, re.M) == [table["title"] for table in tables.values()]


def test_a_quick_run_leaves_no_records_unless_it_is_told_where(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["bench", "nested", "--quick", "--quiet", "--splits", "1", "--only", "ring"]) == 0
    assert "Records: 1 of 1 runs" in capsys.readouterr().out
    assert os.listdir(tmp_path) == []


def test_the_shell_measures_records_and_shows_gaps(tmp_path, capsys):
    path = written(tmp_path)
    chosen = ("toy", "--protocol", path, "--records", tmp_path / "kept")
    out, err = bench(*chosen, "--run", "--quiet", "--only", "ring,tiny", "--only", "broken", "--splits", "0,1")
    assert err == ""
    assert "| broken |               - |" in out
    assert "- broken: DataError: n_members must be a whole number of at least 1; got 0. " in out
    assert main(["bench", *map(str, chosen), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row["cells"] for row in shown["tables"]["sse"]["rows"]}
    assert set(rows) == {"printed", "tiny", "broken"}
    assert rows["tiny"]["ring"]["splits"] == 2 and "squares" not in rows["tiny"]
    assert not (tmp_path / "records").exists()


def test_the_shell_lists_protocols(tmp_path, capsys):
    out, _ = bench()
    assert main(["bench", "list"]) == 0
    assert capsys.readouterr().out == out
    assert "| uci " in out and "| toy " in out
    assert main(["bench", "list", "--json", "--records", str(tmp_path)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["protocol"] for entry in listed] == sorted(entry["protocol"] for entry in listed)
    assert {entry["measured"] for entry in listed} == {0}
    assert next(entry for entry in listed if entry["protocol"] == "uci")["tasks"] == list(uci.NAMES)


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--only", "rnig"], "--only must name tasks (squares, ring)"),
        (["--splits", "a"], "--splits must be whole numbers; got 'a'"),
        (["--quick"], "must have a table [quick]"),
        (["--out", "nowhere/to/be.md"], "--out must name a file in a folder that exists"),
        (["--jobs", "0"], "--jobs"),
        (["--protocol", "missing.toml"], "missing.toml"),
    ],
)
def test_a_users_error_is_one_line(tmp_path, capsys, arguments, fact):
    assert main(["bench", "toy", "--protocol", str(written(tmp_path)), *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert fact in said.err
