"""A plan of works carried out in this process, each recorded when it is done."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import provenance
from .record import Record, append, read_records
from .speed_clock import exponent, in_rounds, ratio, spread
from .speed_memory import Apart, measure_apart
from .speed_plan import SpeedPlan, Work
from .speed_works import WORKS, Makers, Subject

__all__ = ["carry_out_speed", "measure_work", "newest"]

Case = int | str


def carry_out_speed(plan: SpeedPlan, folder: Path, *, resume: bool = False, quiet: bool = False) -> None:
    """Measure every work on every case, one after the other, and record each in the folder.

    Parameters
    ----------
    plan : SpeedPlan
    folder : of records
    resume : bool
        Leave out what has a record of the same settings, versions and machine.
    quiet : bool
        No progress bar on standard error.
    """
    known = read_records(folder, plan.name) if resume else {}
    todo = [(work, case) for work, case in plan.cases() if not _is_known(known.get(work.run(plan.name, case).key))]
    done = len(plan.cases()) - len(todo)
    with tqdm(total=done + len(todo), initial=done, unit="work", desc=plan.name, disable=quiet) as bar:
        for work, case in todo:
            bar.set_postfix_str(f"{work.name} on {case}")
            append(folder, measure_work(plan.name, work, case))
            bar.update()


def measure_work(plan: str, work: Work, case: Case) -> Record:
    """The record of one work on one case. What goes wrong with a subject is a fact of the record, not an error."""
    versions, started = provenance.versions(), time.perf_counter()  # of the code as it is now
    makers = WORKS[work.name](case, **work.settings)  # without its data nothing can be measured: that is an error
    with warnings.catch_warnings(record=True) as caught:
        try:
            facts = _facts(work, *(_apart(work, case) if work.apart else _here(work, case, makers)))
        except Exception as error:
            facts = {"failure": _reason(error)}
    return Record(
        work.run(plan, case),
        datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        seed=0,
        seconds={"all": round(time.perf_counter() - started, 3)},
        warnings=sorted({f"{type(w.message).__name__}: {w.message}" for w in caught}),
        versions=versions,
        machine=provenance.machine(),
        **facts,
    )


def newest(records: Mapping[str, Record]) -> dict[tuple[str, str], Record]:
    """The newest record of each work and case, whatever its settings."""
    found: dict[tuple[str, str], Record] = {}
    for record in records.values():
        place = (record.run.method, record.run.task)
        if place not in found or record.measured_at >= found[place].measured_at:
            found[place] = record
    return found


def _facts(work: Work, found: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    metrics: dict[str, Any] = {"subjects": found}
    if work.against in found:
        reference = found[work.against]["times"]
        metrics["ratios"] = {name: ratio(one["times"], reference)._asdict() for name, one in found.items()}
    if "sizes" in work.settings and not reasons:
        sizes = [float(size) for size in found]
        metrics["exponent"] = exponent(sizes, [one["seconds"]["median"] for one in found.values()])
    return {"metrics": metrics, "reasons": reasons}


def _here(work: Work, case: Case, makers: Makers) -> tuple[dict[str, Any], dict[str, str]]:
    """All subjects in turn, in this process; then each one's memory in its own."""
    reasons: dict[str, str] = {}
    subjects = _tried({name: partial(_ready, make, work.warm_up) for name, make in makers.items()}, reasons)
    times = in_rounds({name: one.call for name, one in subjects.items()}, work.repeats, work.shortest)
    asked = _tried({name: one.facts for name, one in subjects.items()}, reasons)
    apart = {name: partial(_own_process, work, case, name) for name in work.memory if name in subjects}
    peaks = _tried(apart, reasons)
    figures = {name: _figures(times[name], one.amount) | asked.get(name, {}) for name, one in subjects.items()}
    return {name: one | ({"peak": peaks[name].peak} if name in peaks else {}) for name, one in figures.items()}, reasons


def _apart(work: Work, case: Case) -> tuple[dict[str, Any], dict[str, str]]:
    """Those subjects whose memory is asked for, each call in a new process."""
    reasons: dict[str, str] = {}

    def measured(name: str) -> dict[str, Any]:
        rounds = [_own_process(work, case, name) for _ in range(work.repeats)]
        peak = max(one.peak for one in rounds)
        return _figures([one.seconds for one in rounds], rounds[0].amount) | {"peak": peak}

    return _tried({name: partial(measured, name) for name in work.memory}, reasons), reasons


def _own_process(work: Work, case: Case, name: str) -> Apart:
    return measure_apart(work.name, case, name, work.settings)


def _ready(make: Callable[[], Subject], warm_up: bool) -> Subject:
    """A subject, after a first call, which may fail."""
    subject = make()
    if warm_up:
        subject.call()
    return subject


def _figures(times: list[float], amount: float) -> dict[str, Any]:
    return {"seconds": spread(times)._asdict(), "times": times, "amount": amount}


def _tried(acts: Mapping[str, Callable[[], Any]], reasons: dict[str, str]) -> dict[str, Any]:
    """What those give that do not fail; why the others did is added to the reasons."""
    found = {}
    for name, act in acts.items():
        try:
            found[name] = act()
        except Exception as error:
            reasons[name] = _reason(error)
    return found


def _reason(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def _is_known(record: Record | None) -> bool:
    """Whether a record is whole, and of this code on this machine."""
    if record is None or record.reasons or record.failure:
        return False
    return record.versions == provenance.versions() and record.machine == provenance.machine()
