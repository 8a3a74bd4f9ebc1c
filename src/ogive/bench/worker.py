"""A process that measures runs for another: runs come in on standard input, records go out, both as lines of JSON.

It ends when its input does, so none is left behind by a parent that was killed. `python -m ogive.bench.worker` is
started by `run`; standard output belongs to the records, and what libraries print goes to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from .measure import measure
from .protocol import Run

__all__: list[str] = []


def main() -> None:
    """Measure until the input ends."""
    # Ctrl-C reaches every process of a terminal; only the parent answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as records:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            records.write(measure(Run(**json.loads(line))).as_line())
            records.flush()


if __name__ == "__main__":
    main()
