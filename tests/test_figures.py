"""The figures that README shows are those of the committed records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<name>.+?), splits? (?P<first>\d+)(?: to (?P<last>\d+))? \|(?P<cells>.+)\|$", re.M)
TASKS = ["fish", "concrete", "energy", "parkinsons", "temperature", "air", "skillcraft"]
METHODS = {"`ogive`, default": "ogive", "five spline flows averaged (zuko NSF)": "nsf-ensemble"}


def shown() -> list[tuple[str, list[int], str, str]]:
    """Method, splits, task and figure of every cell with a figure."""
    return [
        (METHODS[row["name"]], list(range(int(row["first"]), int(row["last"] or row["first"]) + 1)), task, cell.strip())
        for row in ROW.finditer((ROOT / "README.md").read_text())
        for task, cell in zip(TASKS, row["cells"].split("|"), strict=True)
    ]


def test_the_readme_compares_all_methods():
    assert {method for method, *_ in shown()} == set(METHODS.values())


@pytest.mark.parametrize(("method", "splits", "task", "figure"), shown())
def test_a_figure_is_the_mean_of_its_records(method, splits, task, figure):
    lines = (ROOT / "benchmarks" / "records" / "uci" / f"{method}.jsonl").read_text().splitlines()
    found = {(r["task"], r["split"]): r["metrics"]["nll"] for r in map(json.loads, lines) if not r["failure"]}
    assert figure == f"{mean(found[task, split] for split in splits):.2f}"
