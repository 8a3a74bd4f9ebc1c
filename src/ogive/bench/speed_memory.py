"""Peak memory of one call, measured in a process of its own: `python -m ogive.bench.speed_memory`.

A job comes in on standard input and its figures go out, both as a line of JSON. A fresh process is needed because a
high-water mark never falls, and because freed memory that a process keeps would hide what the next call takes.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import NotAvailableError

__all__ = ["Apart", "measure_apart", "memory", "peak_of"]

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
COMMAND = (sys.executable, "-m", "ogive.bench.speed_memory")


@dataclass(frozen=True)
class Apart:
    """One call: its seconds, its units of work, and the most memory (bytes) it held above what was there before."""

    seconds: float
    amount: float
    peak: float


def measure_apart(work: str, case: int | str, subject: str, settings: Mapping[str, Any]) -> Apart:
    """One call of a subject in a new process."""
    job = json.dumps({"work": work, "case": case, "subject": subject, "settings": dict(settings)})
    done = subprocess.run(COMMAND, input=job, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise NotAvailableError(
            f"{work} of {subject} must end well in a process of its own; got {said[0]}. Free memory, or take less."
        )
    return Apart(**json.loads(done.stdout))


def memory() -> tuple[int, int]:
    """Bytes this process holds now, and the most it ever held.

    On Linux from /proc: the mark that getrusage gives there is handed down from the process that started this one.
    Elsewhere the mark stands for both.
    """
    if STATUS.is_file():
        entries = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines() if ":" in line)
        if "VmHWM" in entries:
            now, most = (1024 * int(entries[name].split()[0]) for name in ("VmRSS", "VmHWM"))
            return now, most
    import resource  # Windows has none

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return most, most


def peak_of(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of a call, and the most bytes held during it above those before."""
    _settle()
    before, _ = memory()
    started = time.perf_counter()
    call()
    seconds = time.perf_counter() - started
    return seconds, float(max(0, memory()[1] - before))


def _settle() -> None:
    """Give back freed memory that would hide what the call takes, and let the mark start anew, where that can be."""
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        RESET.write_text("5", encoding="ascii")


def _measured(job: Mapping[str, Any]) -> Apart:
    from .speed_works import WORKS

    subject = WORKS[job["work"]](job["case"], **job["settings"])[job["subject"]]()
    seconds, peak = peak_of(subject.call)
    return Apart(seconds, subject.amount, peak)


def main() -> None:
    """Measure one job; what libraries print goes to standard error."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answer.write(json.dumps(asdict(_measured(json.load(sys.stdin)))) + "\n")


if __name__ == "__main__":
    main()
