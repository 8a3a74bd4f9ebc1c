"""Figures side by side: with those printed elsewhere, with a reference method split by split, and as ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .protocol import Protocol
from .quantities import QUANTITIES, mean_and_error, mean_text
from .record import Record
from .table import Cell, Row, Table

__all__ = ["against", "ranks", "side_by_side"]

PAIRED = ("nll", "crps")


def side_by_side(protocol: Protocol, table: Table) -> Table:
    """Below each method's figures those printed for it and the difference, and in words which of them are better."""
    quantity = next(each for each in QUANTITIES[protocol.kind] if each.name == table.name)
    rows, notes = [], []
    for row in table.rows:
        if row.source:
            continue
        rows.append(row)
        if not (printed := printed_for(protocol, row.name, table.name)):
            continue
        differences = {
            task: float(cell.numbers[quantity.main]) - printed[task]
            for task, cell in row.cells.items()
            if task in printed
        }
        shown = {task: Cell(quantity.show_bar(value), {"value": value}) for task, value in printed.items()}
        apart = {task: Cell(f"{d:+.{quantity.digits}f}", {"value": d}) for task, d in differences.items()}
        rows += [Row("- printed", shown), Row("- difference", apart)]
        notes += _verdict(row.name, differences)
    return replace(table, rows=rows, notes=[*table.notes, *notes])


def printed_for(protocol: Protocol, method: str, metric: str) -> dict[str, float]:
    """The figures of a metric that a protocol has for a method, by task."""
    mine = [bar for bar in protocol.bars if bar.metric == metric and method in bar.methods]
    return {task: value for bar in mine for task, value in bar.values.items() if task in protocol.tasks}


def against(protocol: Protocol, records: Sequence[Record]) -> list[Table]:
    """Tables of what a method's loss is above that of the protocol's reference method on the same splits."""
    quantities = {quantity.name: quantity for quantity in QUANTITIES[protocol.kind]}
    if protocol.reference is None:
        return []
    tables = [_against(protocol, records, name, quantities[name].digits) for name in PAIRED if name in quantities]
    return [table for table in tables if any(row.cells for row in table.rows)]


def _against(protocol: Protocol, records: Sequence[Record], metric: str, digits: int) -> Table:
    reference = protocol.reference or ""
    found = {
        (record.run.method, record.run.task, record.run.split): record
        for record in records
        if record.metrics.get(metric) is not None
    }
    rows, notes = [], []
    for method in (method.name for method in protocol.methods if method.name != reference):
        cells = {
            task: cell for task in protocol.tasks if (cell := _paired(found, metric, task, (method, reference), digits))
        }
        rows.append(Row(method, cells))
        notes += _ahead(method, cells, protocol, metric)
    title = f"{metric.upper()} less that of {reference} on the same splits: below zero is ahead of it"
    return Table(f"{metric}_against_{reference}", title, protocol.tasks, rows, notes=notes)


def _paired(
    found: Mapping[tuple[str, str, int], Record], metric: str, task: str, pair: tuple[str, str], digits: int
) -> Cell | None:
    """Mean difference over the splits that both methods have, its standard error, and how often it is below zero."""
    shared = sorted({split for method, on, split in found if on == task and (pair[1], task, split) in found})
    both = [(found[pair[0], task, i], found[pair[1], task, i]) for i in shared if (pair[0], task, i) in found]
    if not both:
        return None
    means = [[mean_and_error([r], [r.metrics[metric]])["mean"] for r in records] for records in both]
    numbers = mean_and_error([], [mine - other for mine, other in means])
    won = sum(mine < other for mine, other in means)
    text = f"{mean_text(f'+.{digits}f', numbers)} ({won} of {len(both)})"
    return Cell(text, {**numbers, "ahead": won, "splits": len(both)})


def _ahead(method: str, cells: Mapping[str, Cell], protocol: Protocol, metric: str) -> list[str]:
    """Whether a method is ahead of the reference on every task, in words; nothing where it was not measured."""
    if not cells:
        return []
    behind = [task for task, cell in cells.items() if not cell.numbers["mean"] < 0.0]
    unknown = [task for task in protocol.tasks if task not in cells]
    said = f"no, behind on {', '.join(behind)}" if behind else "yes" if not unknown else "so far"
    still = f"; not known on {', '.join(unknown)}" * bool(unknown)
    return [f"{method}: ahead of {protocol.reference} on every task by mean {metric.upper()}? {said}{still}."]


def _verdict(method: str, differences: Mapping[str, float]) -> list[str]:
    sides = {
        "better": [task for task, d in differences.items() if d < 0.0],
        "no better": [task for task, d in differences.items() if not d < 0.0],
    }
    said = [f"{word} on {', '.join(tasks)}" for word, tasks in sides.items() if tasks]
    return [f"{method} than printed: {'; '.join(said)}."] if said else []


def ranks(protocol: Protocol, table: Table) -> Table:
    """Ranks of the methods by the mean figure on each task, 1 for the least, and their mean."""
    quantity = next(each for each in QUANTITIES[protocol.kind] if each.name == table.name)
    measured = [row for row in table.rows if not row.source]
    places: dict[str, dict[str, int]] = {row.name: {} for row in measured}
    for task in table.tasks:
        having = [row for row in measured if task in row.cells]
        ordered = sorted(having, key=lambda row: float(row.cells[task].numbers[quantity.main]))
        for place, row in enumerate(ordered, 1):
            places[row.name][task] = place
    rows = []
    for name, of_task in places.items():
        cells = {task: Cell(str(place), {"rank": place}) for task, place in of_task.items()}
        if len(of_task) == len(table.tasks):
            mean = sum(of_task.values()) / len(of_task)
            cells["mean"] = Cell(f"{mean:.2f}", {"rank": mean})
        rows.append(Row(name, cells))
    return Table(f"{table.name}_ranks", "Ranks by mean " + table.name.upper(), [*table.tasks, "mean"], rows)
