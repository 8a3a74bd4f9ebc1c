"""Benchmarks: protocol (TOML) -> plan -> runs, skipping those with a record -> records (JSON lines) -> tables.

`protocol` says what is measured, `run` carries it out; `tasks`, `methods` and `questions` say what its names stand for,
and `measure` asks; `record` keeps what came out and `provenance` where it comes from; `quantities`, `comparison` and
`report` make tables of records, and `markdown` writes them; `paper` makes a page of four protocols, with `figures`, and
`selection` says which of their runs are meant. The files `speed_...` are a bench of their own, of works timed in turn.
"""

from .markdown import report_text
from .protocol import Protocol, Run, benchmarks_folder, read_protocol
from .record import Record, append, read_records
from .report import Report, make_report
from .run import carry_out, open_runs

__all__ = [
    # what is measured
    "Protocol",
    "Run",
    "benchmarks_folder",
    "read_protocol",
    "carry_out",
    "open_runs",
    # what came out
    "Record",
    "append",
    "read_records",
    "Report",
    "make_report",
    "report_text",
]
