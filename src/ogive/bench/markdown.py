"""A report as Markdown that is also readable as it stands: columns are padded."""

from __future__ import annotations

from collections.abc import Sequence

from .report import Report
from .table import Table

__all__ = ["grid", "listed", "report_text", "table_text"]


def report_text(report: Report) -> str:
    """The whole report."""
    sections = (f"## {table.title}\n\n{table_text(table)}" for table in report.tables)
    parts = [f"# {report.title}", *sections, listed(report.facts)]
    return "\n\n".join(part for part in parts if part) + "\n"


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], n_names: int = 1) -> str:
    """A table whose first columns are of names, the others of figures."""
    widths = [max(3, *map(len, column)) for column in zip(header, *rows, strict=True)]
    sides = ["<" if i < n_names else ">" for i in range(len(widths))]
    rule = ["-" * (width - 1) + ("-" if side == "<" else ":") for width, side in zip(widths, sides, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(header), line(rule), *map(line, rows)])


def table_text(table: Table) -> str:
    """A table with its sources, notes and gaps."""
    rows = [[row.name, *(row.cells[t].text if t in row.cells else "-" for t in table.tasks)] for row in table.rows]
    sources: dict[str, list[str]] = {}
    for row in table.rows:
        if row.source:
            sources.setdefault(row.source, []).append(row.name)
    notes = [f"{', '.join(names)}: {source}" for source, names in sources.items()]
    said = listed([*notes, *table.notes])
    parts = [grid(["", *table.tasks], rows), said, listed(table.gaps, "Gaps:\n\n")]
    return "\n\n".join(part for part in parts if part)


def listed(lines: Sequence[str], heading: str = "") -> str:
    """A list of lines, or nothing where there are none."""
    return heading + "\n".join(f"- {line}" for line in lines) if lines else ""
