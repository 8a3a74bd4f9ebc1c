"""Tables from records: each quantity by method and task, beside the figures that a protocol names."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .comparison import against
from .methods import NOTES
from .protocol import Method, Protocol
from .provenance import told
from .quantities import QUANTITIES, Quantity
from .record import Record, plain
from .table import Cell, Row, Table

__all__ = ["Report", "make_report", "make_table"]

# What may differ between the records of one method without a change of its configuration.
OF_THE_SPLIT = {"random_state", "support"}


@dataclass(frozen=True)
class Report:
    """All tables of a protocol, and what is to be known of its records."""

    title: str
    tables: Sequence[Table]
    facts: Sequence[str]

    def as_dict(self) -> Any:
        """Everything, as JSON can hold it."""
        tables = {
            table.name: {
                "title": table.title,
                "rows": [
                    {"name": row.name, "source": row.source or "measured here"}
                    | {"cells": {task: cell.numbers for task, cell in row.cells.items()}}
                    for row in table.rows
                ],
                "gaps": list(table.gaps),
                "notes": list(table.notes),
            }
            for table in self.tables
        }
        return plain({"title": self.title, "tables": tables, "facts": self.facts})


def make_report(protocol: Protocol, records: Mapping[str, Record]) -> Report:
    """Tables of those runs of a protocol's plan that have a record, given all records by key.

    A quantity that nobody has is left out, but for the first.
    """
    known = _known(protocol, records)
    tables = [_table(quantity, protocol, known) for quantity in QUANTITIES[protocol.kind]]
    kept = [table for table in tables if any(row.cells and not row.source for row in table.rows)]
    first, *others = kept if tables[0] in kept else [tables[0], *kept]
    first = _with_missing(first, protocol, known)
    facts = [*_facts(protocol, known), *_changes(known), *_notes(protocol)]
    return Report(protocol.title, [first, *against(protocol, known), *others], facts)


def make_table(protocol: Protocol, records: Mapping[str, Record], name: str) -> Table:
    """The table of one quantity, even where nobody has it, with every reason for a gap."""
    known = _known(protocol, records)
    quantity = next(quantity for quantity in QUANTITIES[protocol.kind] if quantity.name == name)
    return _with_missing(_table(quantity, protocol, known), protocol, known)


def _known(protocol: Protocol, records: Mapping[str, Record]) -> list[Record]:
    return [records[run.key] for run in protocol.runs() if run.key in records]


def _with_missing(table: Table, protocol: Protocol, records: Sequence[Record]) -> Table:
    return replace(table, gaps=[*_missing(protocol, records), *table.gaps])


def _table(quantity: Quantity, protocol: Protocol, records: Sequence[Record]) -> Table:
    rows, gaps = [], []
    for bar in protocol.bars:
        known = {task: value for task, value in bar.values.items() if task in protocol.tasks}
        if known and bar.metric == quantity.name:
            cells = {task: Cell(quantity.show_bar(value), {"value": value}) for task, value in known.items()}
            rows.append(Row(bar.name, cells, bar.source))
    for method in protocol.methods:
        cells = {}
        for task in protocol.tasks:
            own = [r for r in records if (r.run.method, r.run.task) == (method.name, task) and r.failure is None]
            if having := [record for record in own if quantity.read(record) is not None]:
                cells[task] = _cell(quantity, having, _n_splits(method, protocol))
            gaps += [(method.name, r.reasons[quantity.source], task) for r in own if quantity.source in r.reasons]
        rows.append(Row(method.name, cells))
    return Table(quantity.name, quantity.title, protocol.tasks, rows, _grouped(protocol, gaps))


def _cell(quantity: Quantity, records: Sequence[Record], wanted: int) -> Cell:
    """A figure; the number of splits stands behind it where some of those wanted have none."""
    numbers = quantity.sum_up(records, [quantity.read(record) for record in records])
    fewer = f" ({len(records)})" * (len(records) < wanted)
    return Cell(quantity.show(numbers) + fewer, {**numbers, "splits": len(records)})


def _missing(protocol: Protocol, records: Sequence[Record]) -> list[str]:
    """Why runs of the plan have no figure at all."""
    done = {record.run.key for record in records}
    return _grouped(
        protocol,
        [(r.run.method, r.failure, r.run.task) for r in records if r.failure is not None]
        + [(run.method, "not measured yet", run.task) for run in protocol.runs() if run.key not in done],
    )


def _grouped(protocol: Protocol, gaps: Iterable[tuple[str, str, str]]) -> list[str]:
    """One line for a reason and the number of splits by task, with all methods that share it."""
    runs = [run.method for run in protocol.runs()]
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for method, reason, task in gaps:
        places[method, reason].append(task)
    methods: dict[str, list[str]] = defaultdict(list)
    for (method, reason), tasks in places.items():
        count = ", ".join(f"{task} {tasks.count(task)}" for task in dict.fromkeys(tasks))
        where = "everywhere" if len(tasks) == runs.count(method) else f"splits: {count}"
        methods[f"{reason} ({where})"].append(method)
    return [f"{', '.join(names)}: {text}" for text, names in methods.items()]


def _n_splits(method: Method, protocol: Protocol) -> int:
    return sum(split in (method.splits or protocol.splits) for split in protocol.splits)


def _facts(protocol: Protocol, records: Sequence[Record]) -> list[str]:
    """How much was measured, with what, and where."""
    failures = sum(record.failure is not None for record in records)
    failed = f", {failures} of them of a failure" * bool(failures)
    facts = [f"Records: {len(records)} of {len(protocol.runs())} runs{failed}; splits {_ranges(protocol.splits)}."]
    return facts + told((record.versions for record in records), (record.machine for record in records))


def _changes(records: Sequence[Record]) -> list[str]:
    """Methods whose records are not of one configuration, as after a change of a default."""
    seen: dict[str, set[str]] = defaultdict(set)
    for record in records:
        own = {name: value for name, value in record.parameters.items() if name not in OF_THE_SPLIT}
        if own:
            seen[record.run.method].add(json.dumps(own, sort_keys=True))
    return [
        f"{name}: its records are of {len(found)} configurations. Take out those of the former, and measure again."
        for name, found in seen.items()
        if len(found) > 1
    ]


def _notes(protocol: Protocol) -> list[str]:
    """What the methods are allowed that others are not."""
    bases = {method.base: [m.name for m in protocol.methods if m.base == method.base] for method in protocol.methods}
    return [f"{', '.join(names)}: {NOTES[base]}." for base, names in bases.items() if base in NOTES]


def _ranges(splits: Sequence[int]) -> str:
    whole = list(splits) == list(range(splits[0], splits[-1] + 1)) and len(splits) > 2
    return f"{splits[0]} to {splits[-1]}" if whole else ", ".join(map(str, splits))
