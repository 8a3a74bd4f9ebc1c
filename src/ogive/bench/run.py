"""A plan carried out: the runs without a record, in this process or in several, each recorded when it is done."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from . import tasks
from .measure import failed, measure
from .protocol import Run
from .record import Record, append, read_records

__all__ = ["Worker", "carry_out", "open_runs"]

WORKER = (sys.executable, "-m", "ogive.bench.worker")


def open_runs(plan: Sequence[Run], records: Collection[Record], *, retry: bool = False) -> list[Run]:
    """The runs of a plan that have no record; with `retry`, also those whose record is of a failure."""
    done = {record.run.key for record in records if not (retry and record.failure)}
    return [run for run in plan if run.key not in done]


def carry_out(
    plan: Sequence[Run],
    folder: Path,
    *,
    jobs: int = 1,
    limit: int | None = None,
    retry: bool = False,
    quiet: bool = False,
) -> int:
    """Measure what of a plan has no record in the folder, and record it there; how many runs that were.

    Parameters
    ----------
    plan : runs of one protocol
    folder : of records
    jobs : int
        1 measures in this process. More measure in as many processes, which share the processors (set
        ``OMP_NUM_THREADS`` to say otherwise), and then a run that ends its process is a failure like any other.
    limit : int, optional
        At most so many runs.
    retry : bool
        Measure failures again.
    quiet : bool
        No progress bar on standard error.
    """
    if not plan:
        return 0
    todo = open_runs(plan, read_records(folder, plan[0].protocol).values(), retry=retry)
    done, todo = len(plan) - len(todo), todo[:limit]
    for task in {run.task: run for run in todo}.values():
        # Without its data nothing of a task can be measured: that ends the command, and no method is to blame.
        tasks.KINDS[task.kind].split(task.task, task.split, task.rows)
    failures = 0
    with tqdm(total=done + len(todo), initial=done, unit="run", desc=plan[0].protocol, disable=quiet) as bar:
        for record in _in_processes(todo, jobs) if min(jobs, len(todo)) > 1 else map(measure, todo):
            append(folder, record)
            failures += record.failure is not None
            bar.set_postfix_str(f"{record.run.title}" + f", {failures} failed" * bool(failures), refresh=False)
            bar.update()
    return len(todo)


class Worker:
    """The near end of a process that measures; a new one takes the place of one that died.

    Parameters
    ----------
    threads : int
        For its computations, unless the environment says how many.
    command : sequence of str
        What to start.
    """

    def __init__(self, threads: int, command: Sequence[str] = WORKER) -> None:
        self.command = command
        self.environment = {"OMP_NUM_THREADS": str(threads), **os.environ}
        self.process: Any = None

    def measure(self, run: Run) -> Record:
        """The record of a run; if the process dies, that of a failure."""
        if self.process is None or self.process.poll() is not None:
            self.close()
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
            )
        answer = ""
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(asdict(run)) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if answer.endswith("\n"):
            return Record.from_line(answer)
        code = self.process.wait()
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return failed(run, f"the process that measured it {how}")

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        if self.process is not None:
            self.process.kill()

    def close(self) -> None:
        """End the process and give back what belongs to it."""
        self.kill()
        if self.process is not None:
            with suppress(BrokenPipeError), self.process:
                pass


def _in_processes(runs: Sequence[Run], jobs: int) -> Iterator[Record]:
    jobs = min(jobs, len(runs))
    workers = [Worker(threads=max(1, (os.cpu_count() or 1) // jobs)) for _ in range(jobs)]
    idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def one(run: Run) -> Record:
        worker = idle.get()
        try:
            return worker.measure(run)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(one, run) for run in runs]):
            yield done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        pool.shutdown()
        for worker in workers:
            worker.close()
