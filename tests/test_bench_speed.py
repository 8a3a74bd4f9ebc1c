"""The speed bench: rounds are fair, ratios are of one round, exponents those of the powers, bars judged right."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Distribution

from ogive import metrics
from ogive.bench import benchmarks_folder, read_records, speed_clock, speed_memory, speed_run
from ogive.bench import speed_subjects as subjects
from ogive.bench.record import Record, append
from ogive.bench.speed_clock import Spread, exponent, in_rounds, ratio, spread
from ogive.bench.speed_memory import Apart, measure_apart, memory, peak_of
from ogive.bench.speed_plan import Line, SpeedPlan, Work, read_plan
from ogive.bench.speed_run import carry_out_speed, measure_work, newest
from ogive.bench.speed_tables import Growth, make_speed_report, short, speed_text
from ogive.bench.speed_works import WORKS, Subject
from ogive.bench.tasks import KINDS
from ogive.cli import main
from ogive.cli.speed import END, START
from ogive.errors import DataError, FileFormatError, NotAvailableError
from ogive.estimator import OgiveRegressor

PLAN = """
name = "brief"
title = "A brief one"

[[works]]
name = "step"
cases = [1, 2]
repeats = 3
against = "NSF"
settings = { rows = 300 }

[[works]]
name = "fit"
cases = ["ring"]
repeats = 1

[[lines]]
work = "step"
title = "a step"
quantity = "seconds"
compared = true
must = 1.0

[quick]
name = "brief-quick"
works = [{ name = "step", cases = [1], repeats = 1 }]
"""
MEGABYTE = 1 << 20


def written(folder: Path, text: str = PLAN) -> Path:
    path = folder / "brief.toml"
    path.write_text(text, encoding="utf-8")
    return path


# --- the clock


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """A clock that stands still but for what is added to it."""
    fake = SimpleNamespace(now=0.0)
    monkeypatch.setattr(speed_clock.time, "perf_counter", lambda: fake.now)
    return fake


def worker(clock: SimpleNamespace, name: str, seconds: Iterator[float], calls: list[str]) -> Callable[[], None]:
    def call() -> None:
        calls.append(name)
        clock.now += next(seconds)

    return call


def test_every_subject_has_its_turn_in_every_round(clock):
    calls: list[str] = []
    times = in_rounds(
        {
            "a": worker(clock, "a", iter([1.0, 2.0, 3.0]), calls),
            "b": worker(clock, "b", iter([0.5, 0.25, 0.125]), calls),
        },
        repeats=3,
        shortest=0.0,
    )
    assert calls == list("ababab")
    assert times == {"a": [1.0, 2.0, 3.0], "b": [0.5, 0.25, 0.125]}


def test_a_fast_subject_works_several_times_in_a_turn_and_counts_once(clock):
    calls: list[str] = []
    always = {"slow": 1.0, "fast": 0.125, "instant": 0.0}
    works = {name: worker(clock, name, iter(lambda s=s: s, None), calls) for name, s in always.items()}
    times = in_rounds(works, repeats=2, shortest=0.5)
    assert times == {"slow": [1.0] * 2, "fast": [0.125] * 2, "instant": [0.0] * 2}
    assert {name: calls.count(name) for name in works} == {"slow": 3, "fast": 9, "instant": 20_001}
    with_rest = in_rounds({"fast": worker(clock, "fast", iter(lambda: 0.2, None), calls)}, 1, shortest=0.5)
    assert with_rest == {"fast": [pytest.approx(0.2)]}
    assert calls.count("fast") - 9 == 1 + 3


@given(
    st.floats(-3.0, 3.0),
    st.floats(1e-9, 1e3),
    st.lists(st.integers(1, 10**6), min_size=2, max_size=6, unique=True),
)
def test_the_exponent_of_an_exact_power_is_found(power, scale, sizes):
    assert exponent(sizes, [scale * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_the_exponent_is_by_least_squares_in_logarithms():
    sizes, seconds = [1, 10, 100], [1.0, 30.0, 100.0]
    fitted = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    assert exponent(sizes, seconds) == pytest.approx(fitted) == pytest.approx(1.0)


def test_ratios_are_of_one_round_each():
    ours, other = [1.0, 10.0, 4.0], [2.0, 5.0, 16.0]
    assert ratio(ours, other) == Spread(0.5, 0.375, 1.25)  # and not 4 / 5, the ratio of the medians
    with pytest.raises(ValueError, match="zip"):
        ratio(ours, other[:2])


def test_a_spread_is_a_median_between_quartiles():
    found = spread([8.0, 1.0, 2.0, 4.0, 16.0])
    assert found == Spread(median=4.0, low=2.0, high=8.0)
    assert found.times(0.5) == Spread(2.0, 1.0, 4.0)
    assert found.inverse() == Spread(median=0.25, low=0.125, high=0.5)


# --- memory


@pytest.mark.skipif(not os.access(speed_memory.RESET, os.W_OK), reason="the high-water mark never falls here")
def test_the_peak_of_a_call_is_what_it_held_above_what_was_there():
    kept = np.ones(32 * MEGABYTE // 8)

    def call() -> None:
        time.sleep(0.01)
        np.ones(64 * MEGABYTE // 8)

    seconds, peak = peak_of(call)
    assert 60 * MEGABYTE < peak < 90 * MEGABYTE
    assert 0.01 <= seconds < 10.0
    assert peak_of(lambda: None)[1] < 8 * MEGABYTE
    assert kept[0] == 1.0


def test_memory_is_told_where_there_is_no_proc(monkeypatch, tmp_path):
    now, most = memory()
    assert 10 * MEGABYTE < now <= most
    (tmp_path / "status").write_text("VmRSS: 3 kB\n", encoding="utf-8")
    for status in (tmp_path / "none", tmp_path / "status"):  # a kernel may also leave the mark out
        monkeypatch.setattr(speed_memory, "STATUS", status)
        monkeypatch.setattr(sys, "platform", "linux")
        mark, same = memory()
        assert mark == same and 10 * MEGABYTE < mark < 1 << 40
        monkeypatch.setattr(sys, "platform", "darwin")  # where the mark is in bytes
        assert memory() == (mark // 1024, mark // 1024)


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        ("import sys; sys.exit('first\\nMemoryError: much')", "got MemoryError: much. Free memory"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "got exit code -9. Free memory"),
    ],
)
def test_a_process_that_ends_badly_is_a_reason(monkeypatch, script, fact):
    monkeypatch.setattr(speed_memory, "COMMAND", (sys.executable, "-S", "-c", script))
    with pytest.raises(NotAvailableError, match="step of NSF must end well in a process of its own; " + fact):
        measure_apart("step", 1, "NSF", {})


# --- plans


def test_a_plan_is_read_and_its_quick_entries_take_the_place_of_the_others(tmp_path):
    plan = read_plan(written(tmp_path))
    assert [(work.name, case) for work, case in plan.cases()] == [("step", 1), ("step", 2), ("fit", "ring")]
    assert plan.works[0].settings == {"rows": 300} and plan.works[0].shortest == 0.05
    assert (plan.lines[0].must, plan.lines[0].aim) == (1.0, None)
    quick = read_plan(written(tmp_path), quick=True)
    assert (quick.name, quick.title) == ("brief-quick", "A brief one")
    assert quick.cases() == [(quick.works[0], 1)]
    with pytest.raises(FileFormatError, match=r"must describe works and lines; got ValueError: no table \[quick\]"):
        read_plan(written(tmp_path, PLAN.partition("[quick]")[0]), quick=True)


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ('name = "step"', 'name = "steps"', r"work 'steps', twice or not one of log-density, "),
        ('name = "fit"', 'name = "step"', "work 'step', twice or not one of"),
        ("repeats = 3", "repeats = 0", "no repeats or no cases of 'step'"),
        ('cases = ["ring"]', "cases = []", "no repeats or no cases of 'fit'"),
        ('quantity = "seconds"', 'quantity = "hours"', "a line of 'step' and 'hours'"),
        ('work = "step"', 'work = "steps"', "a line of 'steps' and 'seconds'"),
        ("repeats = 3", "times = 3", "TypeError: .*unexpected keyword argument 'times'"),
        ("repeats = 3", "", "TypeError: .*missing 1 required positional argument: 'repeats'"),
        ('title = "A brief one"', "", "KeyError: 'title'"),
        ("repeats = 3", "repeats =", "TOMLDecodeError: Invalid value"),
    ],
)
def test_a_wrong_plan_is_refused_with_the_fact(tmp_path, old, new, fact):
    assert old in PLAN
    with pytest.raises(FileFormatError, match=f"brief.toml' must describe works and lines; got .*{fact}"):
        read_plan(written(tmp_path, PLAN.replace(old, new, 1)))


def test_a_plan_can_be_narrowed_to_works(tmp_path):
    plan = read_plan(written(tmp_path))
    assert plan.narrowed([]) == plan
    assert [work.name for work in plan.narrowed(["fit"]).works] == ["fit"]
    assert plan.narrowed(["fit"]).lines == ()
    assert plan.narrowed(["step", "fit"]) == plan
    with pytest.raises(DataError, match=r"--only must name works \(step, fit\); got 'fits'"):
        plan.narrowed(["step", "fits"])


def test_the_committed_plan_is_whole():
    path = benchmarks_folder() / "speed" / "speed.toml"
    plan, quick = read_plan(path), read_plan(path, quick=True)
    assert {work.name for work in plan.works} == {work.name for work in quick.works} == set(WORKS)
    assert plan.lines == quick.lines
    assert not {work.run(plan.name, case).key for work, case in plan.cases()} & {
        work.run(quick.name, case).key for work, case in quick.cases()
    }


def test_the_key_of_a_work_tells_its_settings_and_its_timing_and_not_its_bars(tmp_path):
    work = read_plan(written(tmp_path)).works[0]
    key = work.run("p", 1).key
    for change in ({"settings": {"rows": 301}}, {"repeats": 4}, {"warm_up": False}, {"shortest": 0.0}, {"apart": True}):
        assert replace(work, **change).run("p", 1).key != key
    assert work.run("p", 2).key != key
    assert replace(work, against="GMM", memory=("ours",)).run("another", 1).key == key


def test_a_bar_is_met_on_its_own_side_and_only_where_it_applies():
    low = Line("step", "t", "seconds", must=2.0)
    assert [low.meets(value, 2.0, 1) for value in (1.0, 2.0, 2.1, math.nan)] == [True, True, False, False]
    high = replace(low, at_least=True, barred=(2, "ring"))
    assert [high.meets(value, 2.0, 2) for value in (1.0, 2.0, 2.1, math.nan)] == [False, True, True, False]
    assert [high.meets(9.0, 2.0, case) for case in (1, 2, "ring")] == [None, True, True]
    assert low.meets(1.0, None, 1) is None


# --- carried out, on works whose times do not matter


def unwell() -> Subject:
    raise RuntimeError("two\n  lines")


def idle(case: object, *, rows: int = 7) -> dict[str, Callable[[], Subject]]:
    """Subjects that do nothing but warn once; one cannot be made, one can be asked for nothing."""

    def warns() -> None:
        np.float64(1.0) / np.float64(0.0)

    return {
        "ours": lambda: Subject(warns, rows, lambda: {"nll": 0.5}),
        "NSF": lambda: Subject(lambda: None, rows),
        "unwell": unwell,
        "mute": lambda: Subject(lambda: None, rows, lambda: {"nll": 1 / 0}),
    }


@pytest.fixture
def works(monkeypatch) -> dict[str, Callable[..., object]]:
    """The registry with works that take no time."""
    known = {**WORKS, "idle": idle, "nothing": lambda case: (_ for _ in ()).throw(DataError("no data"))}
    monkeypatch.setattr(speed_run, "WORKS", known)
    return known


IDLE = Work("idle", (1,), repeats=3, against="NSF", warm_up=False, shortest=0.0)


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_a_record_holds_the_times_of_all_that_work_and_why_others_do_not(works):
    record = measure_work("p", IDLE, 1)
    found = record.metrics["subjects"]
    assert list(found) == ["ours", "NSF", "mute"]
    assert record.reasons == {"unwell": "RuntimeError: two lines", "mute": "ZeroDivisionError: division by zero"}
    assert found["ours"]["nll"] == 0.5 and "nll" not in found["mute"]
    assert {name: (len(one["times"]), one["amount"]) for name, one in found.items()} == dict.fromkeys(found, (3, 7))
    assert found["ours"]["seconds"] == spread(found["ours"]["times"])._asdict()
    each = [own / other for own, other in zip(found["ours"]["times"], found["NSF"]["times"], strict=True)]
    assert record.metrics["ratios"]["ours"] == spread(each)._asdict()
    assert record.metrics["ratios"]["NSF"] == Spread(1.0, 1.0, 1.0)._asdict()
    assert "exponent" not in record.metrics
    assert record.warnings == ["RuntimeWarning: divide by zero encountered in scalar divide"]
    assert record.failure is None and record.seconds["all"] >= 0.0
    assert Record.from_line(record.as_line()) == record


def test_the_growth_of_a_work_is_the_power_of_its_sizes(works, clock):
    def grow(case: object, *, sizes: list[int]) -> dict[str, Callable[[], Subject]]:
        return {str(n): lambda n=n: Subject(worker(clock, "", iter(lambda: 0.1 * n**1.5, None), [])) for n in sizes}

    works["grow"] = grow
    work = Work("grow", (1,), repeats=2, shortest=0.0, settings={"sizes": [1, 8, 64]})
    found = measure_work("p", work, 1).metrics
    assert found["exponent"] == pytest.approx(1.5)
    assert found["subjects"]["64"]["seconds"]["median"] == pytest.approx(51.2)
    assert "ratios" not in found
    works["grow"] = lambda case, sizes: {**grow(case, sizes=sizes), "128": unwell}
    record = measure_work("p", work, 1)
    assert list(record.reasons) == ["128"] and "exponent" not in record.metrics


def test_a_work_that_fails_as_a_whole_is_a_record_with_its_reason_and_missing_data_an_error(works):
    record = measure_work("p", replace(IDLE, repeats=-1), 1)  # no times, no median
    assert record.metrics == {} and record.failure.startswith("IndexError: ")
    with pytest.raises(DataError, match="no data"):
        measure_work("p", Work("nothing", (1,), repeats=1), 1)


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_memory_is_that_of_one_call_in_its_own_process(works, monkeypatch):
    asked = []

    def apart(work, case, subject, settings):
        asked.append((work, case, subject, dict(settings)))
        if subject == "NSF":
            raise NotAvailableError("it ended")
        return Apart(seconds=float(len(asked)), amount=2.0, peak=10.0 * len(asked))

    monkeypatch.setattr(speed_run, "measure_apart", apart)
    work = replace(IDLE, memory=("mute", "NSF", "unwell"), settings={"rows": 5})
    record = measure_work("p", work, 1)
    assert asked == [("idle", 1, "mute", {"rows": 5}), ("idle", 1, "NSF", {"rows": 5})]
    assert record.metrics["subjects"]["mute"]["peak"] == 10.0
    assert "peak" not in record.metrics["subjects"]["NSF"]
    assert record.reasons["NSF"] == "NotAvailableError: it ended"
    asked.clear()
    record = measure_work("p", replace(work, apart=True, memory=("mute", "NSF")), 1)
    assert list(record.metrics["subjects"]) == ["mute"]
    mute = record.metrics["subjects"]["mute"]
    assert (mute["times"], mute["amount"], mute["peak"]) == ([1.0, 2.0, 3.0], 2.0, 30.0)
    assert record.reasons == {"NSF": "NotAvailableError: it ended"}


@pytest.mark.filterwarnings("default:divide by zero:RuntimeWarning")
def test_what_has_a_whole_record_of_this_code_and_machine_is_left_out_on_resuming(works, monkeypatch, tmp_path, capsys):
    works["well"] = lambda case: {"ours": lambda: Subject(lambda: None)}
    well = Work("well", (1, 2), repeats=1, shortest=0.0)
    plan = SpeedPlan("p", "t", (well, IDLE), ())

    def kept() -> list[str]:
        """The work and case of each record, in the order of their files."""
        lines = [line for path in sorted((tmp_path / "p").iterdir()) for line in path.read_text("utf-8").splitlines()]
        return [f"{run.method} {run.task}" for run in (Record.from_line(line).run for line in lines)]

    carry_out_speed(plan, tmp_path, quiet=True)
    assert kept() == ["idle 1", "well 1", "well 2"]
    carry_out_speed(plan, tmp_path, resume=True)
    assert kept() == ["idle 1", "idle 1", "well 1", "well 2"]  # the one with reasons is measured again
    assert "2/3" in capsys.readouterr().err
    carry_out_speed(plan, tmp_path, quiet=True)
    assert len(kept()) == 7
    only_well = replace(plan, works=(well,))
    now = speed_run.provenance.versions()
    monkeypatch.setattr(speed_run.provenance, "versions", lambda: now | {"commit": "another"})
    carry_out_speed(only_well, tmp_path, resume=True, quiet=True)
    assert len(kept()) == 9
    monkeypatch.setattr(speed_run.provenance, "machine", lambda: {"cpu": "another", "cores": 1, "threads": 1})
    carry_out_speed(only_well, tmp_path, resume=True, quiet=True)
    assert len(kept()) == 11
    carry_out_speed(only_well, tmp_path, resume=True, quiet=True)
    assert len(kept()) == 11


# --- tables, from records whose figures are known


def speed_record(work: Work, case: object, found: dict[str, object], at: str = "2020-02-02", **facts: object) -> Record:
    metrics = {"subjects": found, **facts.pop("metrics", {})}
    return Record(work.run("p", case), f"{at}T00:00:00Z", 0, metrics=metrics, **facts)


def subject(times: list[float], amount: float = 1.0, **facts: float) -> dict[str, object]:
    return {"seconds": spread(times)._asdict(), "times": times, "amount": amount, **facts}


def report_of(work: Work, lines: list[Line], *records: Record):
    plan = SpeedPlan("p", "Speed", (work,), tuple(lines))
    return make_speed_report(plan, {record.run.key: record for record in records})


STEP = Work("step", (1, 2), repeats=3, against="NSF")
OURS, SPLINE = [2.0, 4.0, 8.0], [1.0, 8.0, 2.0]
RATIOS = {"ours": ratio(OURS, SPLINE)._asdict(), "NSF": ratio(SPLINE, SPLINE)._asdict()}  # ours: 2, 1/2, 4
BOTH = {"ours": subject(OURS, 100.0, nll=1.5, peak=3e6), "NSF": subject(SPLINE, 100.0, nll=1.0)}


def cells(text: str) -> list[list[str]]:
    """The rows of all tables, without their rules."""
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if set(row[0]) != {"-"}]


def judged(line: Line, case: object = 1, found=BOTH, ratios=RATIOS):
    """A line as it is shown of one record; None where it is not."""
    record = speed_record(STEP, case, found, metrics={"ratios": ratios} if ratios else {})
    shown = report_of(STEP, [line], record).lines
    assert len(shown) <= 1
    return shown[0] if shown else None


@pytest.mark.parametrize(
    ("quantity", "facts", "median", "low", "high", "verdict"),
    [
        ("seconds", {"must": 4.0, "aim": 3.9}, 4.0, 3.0, 6.0, "must"),
        ("seconds", {"must": 3.9}, 4.0, 3.0, 6.0, "no"),
        ("each", {"must": 0.1, "aim": 0.04}, 0.04, 0.03, 0.06, "aim"),
        ("rate", {"at_least": True, "must": 25.0, "aim": 26.0}, 25.0, 100 / 6, 100 / 3, "must"),
        ("seconds", {"compared": True, "must": 2.0, "aim": 1.0}, 2.0, 1.25, 3.0, "must"),
        ("rate", {"compared": True, "at_least": True, "must": 0.6}, 0.5, 1 / 3, 0.8, "no"),
        ("rate", {"compared": True, "at_least": True, "must": 0.4, "aim": 0.5}, 0.5, 1 / 3, 0.8, "aim"),
        ("nll", {"must": 1.4}, 1.5, 1.5, 1.5, "no"),
        ("nll", {"compared": True, "must": 0.0}, 0.5, 0.5, 0.5, "no"),
        ("nll", {"compared": True, "must": 0.5}, 0.5, 0.5, 0.5, "must"),
        ("peak", {"must": 4e6, "aim": 3e6}, 3e6, 3e6, 3e6, "aim"),
        ("seconds", {}, 4.0, 3.0, 6.0, "-"),
        ("seconds", {"must": 1.0, "aim": 0.5, "barred": (2,)}, 4.0, 3.0, 6.0, "-"),
        ("seconds", {"must": 4.0, "barred": (1,)}, 4.0, 3.0, 6.0, "must"),
    ],
)
def test_a_line_is_judged_by_its_median(quantity, facts, median, low, high, verdict):
    shown = judged(Line("step", "a line", quantity, **facts))
    assert tuple(shown.judged) == pytest.approx((median, low, high))
    assert shown.verdict == verdict
    assert shown.must is (None if verdict == "-" else verdict != "no")


def test_a_line_that_was_not_measured_is_not_shown():
    assert judged(Line("step", "t", "seconds", subject="1 member")) is None
    assert judged(Line("step", "t", "peak", subject="NSF")) is None
    assert judged(Line("step", "t", "exponent")) is None
    assert judged(Line("step", "t", "seconds", compared=True), ratios=None) is None
    assert judged(Line("step", "t", "rate", compared=True), ratios=None) is None
    assert judged(Line("step", "t", "nll", compared=True), found={"ours": BOTH["ours"]}) is None
    assert judged(Line("step", "t", "nll"), found={"ours": subject([1.0])}) is None
    assert judged(Line("fit", "t", "seconds")) is None


def test_the_lines_own_subject_stands_for_us():
    found = {**BOTH, "1 member": subject([0.5, 0.5]), "GMM": subject([0.25])}
    shown = judged(Line("step", "t", "seconds", subject="1 member"), found=found)
    assert {name: figure.median for name, figure in shown.figures.items()} == {"ours": 0.5, "NSF": 2.0, "GMM": 0.25}


def test_a_table_shows_figures_bars_times_and_gaps():
    lines = [
        Line("step", "seconds", "seconds", compared=True, must=2.0, aim=1.0),
        Line("step", "rate", "rate", at_least=True, must=30.0, barred=(2,)),
        Line("step", "nll", "nll", compared=True, must=0.0),
    ]
    facts = {"versions": {"ogive": "1", "commit": "a" * 40 + "+"}, "machine": {"cpu": "x", "cores": 2, "threads": 1}}
    reasons = {"GMM": "RuntimeError: it fell"}
    record = speed_record(STEP, 1, BOTH, metrics={"ratios": RATIOS}, reasons=reasons, **facts)
    failed = speed_record(STEP, 2, {}, "2020-02-03", failure="ValueError: no", **facts)
    text = speed_text(report_of(replace(STEP, cases=(1, 2, 4)), lines, record, failed))
    rows = {name: figures for name, *figures in cells(text)}
    assert rows["seconds"] == ["1", "4 s", "2 s", "-", "-", "2 x", "1.25 x to 3 x", "<= 2 x", "<= 1 x", "must"]
    assert rows["rate"] == ["1", "25 /s", "50 /s", "-", "-", "25 /s", "16.7 /s to 33.3 /s", "-", "-", "-"]
    assert rows["nll"] == ["1", "1.500", "1.000", "-", "-", "0.500", "-", "<= 0.000", "-", "no"]
    assert cells(text)[-2:] == [
        ["step", "1", "ours", "4 s", "3 s to 6 s", "3", "25 /s", "2", "3 MB"],
        ["step", "1", "NSF", "2 s", "1.5 s to 5 s", "3", "50 /s", "1", "-"],
    ]
    assert re.findall("^- .*", text, re.M) == [
        "- step on 1, GMM: RuntimeError: it fell",
        "- step on 2: ValueError: no",
        "- step on 4: not measured yet",
        "- Records: 1 of 3, 2020-02-02.",
        "- Versions: ogive 1; commit aaaaaaaaaa+.",
        "- Machine: x, 2 cores, threads in use: 1.",
    ]


def test_without_records_the_report_is_of_gaps():
    report = report_of(STEP, [Line("step", "t", "seconds")])
    assert (report.lines, report.times, report.growth) == ([], [], [])
    assert speed_text(report) == (
        "# Speed\n\nGaps:\n\n- step on 1: not measured yet\n- step on 2: not measured yet\n\n- Records: 0 of 2.\n"
    )


def test_the_newest_record_of_a_work_and_case_counts_whatever_its_settings():
    records = [
        speed_record(replace(STEP, repeats=n), case, {"ours": subject([float(n)])}, f"2020-02-0{n}")
        for n, case in ((2, 1), (3, 1), (1, 1), (1, 2))
    ]
    found = newest({record.run.key: record for record in records})
    assert {place: record.metrics["subjects"]["ours"]["times"] for place, record in found.items()} == {
        ("step", "1"): [3.0],
        ("step", "2"): [1.0],
    }
    report = report_of(STEP, [], *records)
    assert [row[3] for row in report.times] == ["3 s", "1 s"]
    assert report.facts == ["Records: 2 of 2, 2020-02-01 to 2020-02-03."]


def growing(power: float = 1.5) -> Record:
    work = Work("growing-rows", (1,), repeats=1, settings={"sizes": (10, 100, 1000)})
    found = {str(size): subject([0.01 * size**power]) for size in (10, 100, 1000)}
    return speed_record(work, 1, found, metrics={"exponent": power})


def test_growth_is_judged_by_its_exponent_and_drawn_through_the_points():
    record = growing()
    work = Work("growing-rows", (1,), repeats=1, settings=dict(record.run.settings))
    lines = [Line("growing-rows", "linear", "exponent", must=1.1), Line("growing-rows", "square", "exponent", must=2.0)]
    report = report_of(work, lines, record)
    assert [shown.verdict for shown in report.lines] == ["no", "must"]
    assert report.times == []
    (one,) = report.growth
    assert one.fitted == pytest.approx([own.median for own in one.seconds])
    text = speed_text(report)
    assert cells(text)[-1] == ["growing-rows", "1", "10, 100, 1000", "1.50"]
    assert cells(text)[1] == ["linear", "1", *"----", "1.50", "-", "<= 1.10", "-", "no"]
    found = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert found["growth"] == [
        {"work": "growing-rows", "on": 1, "sizes": [10.0, 100.0, 1000.0], "exponent": 1.5}
        | {"seconds": [s._asdict() for s in one.seconds]}
    ]
    assert [line["verdict"] for line in found["lines"]] == ["no", "must"]


def test_the_fitted_power_goes_through_the_centre_of_the_points():
    seconds = [Spread(s, s, s) for s in (1.0, 100.0)]
    one = Growth("w", 1, [1.0, 10.0], seconds, exponent=1.0)
    assert one.fitted == pytest.approx([math.sqrt(10.0), 10.0 * math.sqrt(10.0)])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (781_234.0, "781 k"), (0.0038, "3.8 m"), (999.6, "1 k"), (999.4, "999 "), (1.0, "1 "), (2e9, "2 G"),
        (5e-7, "500 n"), (5e-12, "0.005 n"), (3e16, "30000 T"), (0.0, "0 "), (math.inf, "inf "), (-2500.0, "-2.5 k"),
    ],
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert short(value) == text


# --- those who are timed


@pytest.fixture(scope="module")
def rows():
    """A few rows of three features and one output, and of two."""
    return {d: subjects.drawn_rows(50, 3, d) for d in (1, 2)}


def test_rows_are_drawn_in_pieces_and_are_the_same_again():
    X, y = subjects.drawn_rows(66_000, 3, 2)
    part = subjects.drawn_rows(1 << 16, 3, 2)
    assert (X.shape, y.shape) == ((66_000, 3), (66_000, 2))
    assert np.array_equal(X[: 1 << 16], part[0]) and np.array_equal(y[: 1 << 16], part[1])
    assert not np.array_equal(X, subjects.drawn_rows(66_000, 3, 2, seed=1)[0])
    away = y[:, 0] - np.sin(2.0 * X[:, 0])
    side = np.abs(away) - (1.0 + 0.5 * np.tanh(X[:, 1]))
    assert (np.abs(away) > 0.2).mean() > 0.9 and abs((away > 0.0).mean() - 0.5) < 0.01
    assert abs(np.median(side)) < 0.01 and side.std() == pytest.approx(0.3, abs=0.02)


def test_our_network_is_the_one_that_the_default_estimator_trains(rows):
    X, y = rows[2]
    timed = subjects.ogive_network(X, y, None, 0).state_dict()
    network = OgiveRegressor(random_state=0, max_epochs=1).fit(X, y)._fitted.network
    assert {name: part.shape for name, part in timed.items()} == {
        name: part.shape for name, part in network.state_dict().items()
    }
    pooled = {"log_weights", "stack.log_sharpness"}
    fitted = [name for name, _ in network.named_buffers() if name not in pooled]
    assert any(name.startswith("scale_y") for name in fitted)
    for name in fitted:
        torch.testing.assert_close(timed[name], network.state_dict()[name], check_dtype=False, msg=name)


def test_our_network_learns_for_as_many_steps_as_are_asked_for(rows):
    X, y = rows[1]
    x, at = torch.tensor(X).float(), torch.tensor(y).float()
    fresh, again, trained = (subjects.ogive_network(X, y, 2, steps) for steps in (0, 0, 30))
    assert not trained.training and trained.n_members == 2
    assert subjects.ogive_network(X, y, None, 0).n_members == OgiveRegressor().n_members
    with torch.no_grad():
        scores = [network(x).log_prob(at).mean().item() for network in (fresh, again, trained)]
    assert scores[0] == scores[1] < scores[2]


def test_the_cdf_alone_is_the_networks_cdf(rows):
    X, y = rows[1]
    x, at = torch.tensor(X).float(), torch.tensor(y).float()
    network = subjects.ogive_network(X, y, 1, 20)
    with torch.no_grad():
        alone, whole = subjects.cdf_only(network, x, at), network(x).logits(at).sigmoid()
    assert alone.shape == (50, 1) and alone.std() > 0.1
    torch.testing.assert_close(alone, whole, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("d", [1, 2])
def test_every_step_of_training_lowers_the_loss(rows, d):
    X, y = rows[d]
    x, at = torch.tensor(X).float(), torch.tensor(y).float()
    ours, spline, mixture = (
        subjects.ogive_network(X, y, 2, 0).train(),
        subjects.spline_network(X, y),
        subjects.Mixture(X, y),
    )
    scores = {
        "ours": lambda: ours(x).log_prob(at).mean().item(),
        "NSF": lambda: spline(x).log_prob(at).mean().item(),
        "GMM": lambda: mixture.log_prob().mean().item(),
    }
    steps = {
        "ours": subjects.ogive_step(ours, X, y),
        "NSF": subjects.spline_step(spline, X, y),
        "GMM": subjects.mixture_step(mixture),
    }
    with torch.no_grad():
        before = {name: score() for name, score in scores.items()}
    for step in steps.values():
        for _ in range(20):
            step()
    with torch.no_grad():
        assert [name for name, score in scores.items() if not score() > before[name] + 0.01] == []


def test_draws_of_the_spline_are_its_own_inverse(rows):
    X, y = rows[2]
    law = subjects.spline_network(X, y)(torch.tensor(X).float())
    with torch.no_grad():
        draws = subjects.spline_draws(law, 3, torch.Generator().manual_seed(5))
        noise = torch.stack([law.bijection.normalise(each)[0] for each in draws])
    assert draws.shape == (3, 50, 2)
    again = torch.randn(3, 50, 2, generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(noise, again, rtol=0.0, atol=1e-3)


def test_the_mixture_leaves_torch_as_it_was(rows):
    state = torch.random.get_rng_state()
    for checked in (True, False):
        before = Distribution._validate_args
        Distribution.set_default_validate_args(checked)
        try:
            mixture = subjects.Mixture(*rows[2])
            assert mixture.sample(4).shape == (4, 50, 2)
            with pytest.raises(KeyError, match="gone"), subjects.unchecked():
                assert Distribution._validate_args is False
                raise KeyError("gone")
            assert Distribution._validate_args is checked
        finally:
            Distribution.set_default_validate_args(before)
    assert torch.equal(torch.random.get_rng_state(), state)


SMALL = {"rows": 6, "features": 3}
LEARNT = {**SMALL, "learn": 40, "epochs": 1}
ANSWERS = [
    ("log-density", 2, {**SMALL, "steps": 0, "trees": 2, "members": 2}, 6, (6,)),
    ("exact-density", 1, {**SMALL, "steps": 0}, 6, None),
    ("draws", 2, {**SMALL, "size": 4, "steps": 0, "members": 2}, 24, (4, 6, 2)),
    ("quantiles", 1, {**LEARNT, "levels": 3}, 6, (6, 1, 3)),
]


@pytest.mark.parametrize(("name", "case", "settings", "amount", "shape"), ANSWERS, ids=[each[0] for each in ANSWERS])
def test_all_subjects_of_a_work_answer_the_same_question(name, case, settings, amount, shape):
    for who, make in WORKS[name](case, **settings).items():
        one = make()
        answer = np.asarray(one.call())
        assert one.amount == amount, who
        assert np.isfinite(answer).all(), who
        assert shape is None or answer.shape == shape, who


def test_quantiles_of_every_subject_rise(rows):
    for who, make in WORKS["quantiles"](1, **LEARNT, levels=9).items():
        assert (np.diff(make().call(), axis=-1) > 0.0).all(), who


def test_the_grid_of_a_subject_is_its_density_at_every_node():
    makers = WORKS["grid"](2, **LEARNT, nodes=3)
    ours, spline = makers["ours"]().call(), makers["NSF"]().call()
    assert (ours.shape, spline.shape) == ((6, 3, 3), (9, 6))
    X, y = subjects.drawn_rows(46, 3, 2)
    law = subjects_law(X, y, X[40:])
    axis = np.linspace(-3.0, 3.0, 3)
    for i, j in np.ndindex(3, 3):
        assert ours[:, i, j] == pytest.approx(law.pdf(np.full((6, 2), [axis[i], axis[j]])), rel=1e-6)


def subjects_law(X, y, x):
    """The prediction of our subject of `LEARNT`, asked again."""
    from ogive.bench.speed_works import PEERS

    return PEERS["ours"](1).fit(X[:40], y[:40]).predict_dist(x)


def test_a_whole_fit_tells_its_likelihood_on_the_rows_it_did_not_see():
    changes = {"NSF": {"max_epochs": 2}}
    one = WORKS["fit"]("ring", rows=60, changes=changes)["NSF"]()
    model = one.call()
    split = KINDS["uci"].split("ring", 0, 60)
    assert model.max_epochs == 2 and len(split.y_test) == 18
    assert one.facts() == {"nll": pytest.approx(metrics.nll(model.predict_dist(split.X_test), split.y_test))}


def test_a_work_grows_along_its_own_axis():
    growing_rows = WORKS["growing-rows"](1, sizes=[2, 5], features=3, steps=0, members=2)
    assert {name: make().amount for name, make in growing_rows.items()} == {"2": 2, "5": 5}
    draws = WORKS["growing-draws"](2, sizes=[1, 3], steps=0, members=2, **SMALL)
    assert {name: tuple(make().call().shape) for name, make in draws.items()} == {"1": (1, 6, 2), "3": (3, 6, 2)}
    levels = WORKS["growing-levels"](1, sizes=[2, 4], **LEARNT)
    assert {name: make().call().shape for name, make in levels.items()} == {"2": (6, 1, 2), "4": (6, 1, 4)}
    assert list(WORKS["growing-outputs"](3, sizes=[1, 3], steps=0, members=2, **SMALL)) == ["1", "3"]


# --- the shell


def shell(*arguments: object, code: int = 0) -> None:
    assert main(["bench", "speed", *map(str, arguments)]) == code


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    """Records of a quick run of the whole plan, and what it said in out.md."""
    folder = tmp_path_factory.mktemp("speed")
    shell("--quick", "--quiet", "--records", folder / "records", "--out", folder / "out.md")
    return folder


@pytest.fixture
def page(tmp_path) -> Path:
    path = tmp_path / "performance.md"
    path.write_text(f"# Mine\n\nbefore\n\n{START}\nold\n{END}\n\nafter\n", encoding="utf-8")
    return path


def test_a_quick_run_goes_the_whole_way(kept):
    text = (kept / "out.md").read_text(encoding="utf-8")
    plan = read_plan(benchmarks_folder() / "speed" / "speed.toml", quick=True)
    assert "Gaps" not in text
    assert f"- Records: {len(plan.cases())} of {len(plan.cases())}, " in text
    shown = {row[0] for row in cells(text)}
    assert {line.title for line in plan.lines} | set(WORKS) <= shown
    assert sorted(path.name for path in (kept / "records").iterdir()) == ["speed-quick"]
    (large,) = (row for row in cells(text) if row[0] == "large-fit")
    assert large[-1].endswith("B")  # its memory, measured in a process of its own


def test_a_quick_run_leaves_no_records_unless_it_is_told_where(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shell("--quick", "--only", "exact-density")
    out, err = capsys.readouterr()
    assert "speed-quick: 100%" in err and "1/1" in err
    assert "- Records: 1 of 1, " in out and "| exact density against the CDF only | 1 " in out
    assert os.listdir(tmp_path) == []


def test_records_are_resumed_and_shown_as_json(kept, capsys):
    files = {path: path.read_bytes() for path in kept.glob("records/*/*.jsonl")}
    assert len(files) == len(WORKS)
    known = read_records(kept / "records", "speed-quick")
    shell("--quick", "--resume", "--quiet", "--json", "--records", kept / "records")
    found = json.loads(capsys.readouterr().out)
    assert {path: path.read_bytes() for path in kept.glob("records/*/*.jsonl")} == files
    rounds = {(line["title"], line["on"]): line["judged"] for line in found["lines"]}
    (step,) = (record for record in known.values() if record.run.method == "step")
    assert rounds["training step, 8 members", 1] == step.metrics["ratios"]["ours"]
    times = [step.metrics["subjects"][name]["times"] for name in ("ours", "NSF")]
    assert step.metrics["ratios"]["ours"] == ratio(*times)._asdict()
    for one in found["growth"]:
        assert one["exponent"] == pytest.approx(exponent(one["sizes"], [s["median"] for s in one["seconds"]]))


def test_works_can_be_named(kept, capsys):
    shell("--protocol", quick_plan(kept), "--records", kept / "records", "--only", "step, draws", "--only", "grid")
    out = capsys.readouterr().out
    assert "- Records: 3 of 3, " in out
    assert {row[0] for row in cells(out.partition("## Times")[2])} == {"work", "step", "draws", "grid"}


def quick_plan(folder: Path) -> Path:
    """The committed plan whose own entries are the quick ones, so that the records of a quick run are its own."""
    text = (benchmarks_folder() / "speed" / "speed.toml").read_text(encoding="utf-8")
    before, _, quick = text.partition("[quick]")
    lines = before[before.index("[[lines]]") :]
    path = folder / "quick.toml"
    path.write_text(quick + "\n" + lines, encoding="utf-8")
    return path


def test_the_page_is_filled_between_its_markers_and_again(kept, page, capsys):
    arguments = ("--protocol", quick_plan(kept), "--records", kept / "records", "--page", page)
    shell(*arguments)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# Mine\n\nbefore\n\n{START}\n\n## Speed: ") and text.endswith(f"\n\n{END}\n\nafter\n")
    assert "old" not in text
    assert "\n### Times and memory\n" in text and "\n### Growth\n" in text
    shown = re.findall(r"!\[(.*?)\]\((.*?)\)", text)
    assert ("growing rows", "performance/growing-rows.png") in shown and len(shown) == 5
    for _, name in shown:
        assert (page.parent / name).read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.startswith("# Speed: ")
    shell(*arguments)
    assert page.read_text(encoding="utf-8") == text


def test_a_page_without_growth_has_no_folder_of_pictures(tmp_path, page, capsys):
    append(tmp_path / "records", Record(STEP.run("brief", 1), "2020-02-02T00:00:00Z", 0, metrics={"subjects": BOTH}))
    shell("--protocol", written(tmp_path), "--records", tmp_path / "records", "--page", page)
    assert "| step | 1   | ours |" in page.read_text(encoding="utf-8")
    assert not page.with_suffix("").exists()
    assert "- fit on ring: not measured yet\n" in capsys.readouterr().out


def test_run_adds_a_record_each_time(tmp_path, kept, capsys):
    where = ("--protocol", quick_plan(kept), "--records", tmp_path, "--only", "exact-density", "--quiet")
    shell("--run", *where)
    shell("--run", *where)
    shell("--run", "--resume", *where)
    assert len((tmp_path / "speed-quick" / "exact-density.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["none", START, f"{END}{START}", f"{START}{START}{END}", f"{START}{END}{END}"])
def test_a_page_without_its_markers_is_refused_before_any_work(tmp_path, capsys, text):
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    shell("--run", "--page", tmp_path / "page.md", "--records", tmp_path / "records", code=2)
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert f"--page must hold the lines '{START}' and '{END}' once; got '{tmp_path / 'page.md'}'" in said.err
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    assert not (tmp_path / "records").exists()


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (["--only", "fits"], "--only must name works (step, fit); got 'fits'"),
        (["--out", "nowhere/to/be.md"], "--out must name a file in a folder that exists"),
        (["--page", "nowhere.md"], "'nowhere.md' cannot be used"),
        (["--protocol", "missing.toml"], "missing.toml"),
    ],
)
def test_a_users_error_is_one_line(tmp_path, capsys, arguments, fact):
    shell("--protocol", written(tmp_path), "--records", tmp_path / "records", *arguments, code=2)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert fact in said.err
