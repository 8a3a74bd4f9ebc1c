"""Every law meets every case that it speaks of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cases import CASES, Case

# What a law may ask of its cases, by the name of the argument under which it takes them.
MIXED = {
    "line",
    "line, hard",
    "half-line below",
    "interval",
    "pair",
    "pair, fitted",
    "pair, one end each",
    "pair, paper",
    "triple, mixed ends",
    "cycled pair",
}
WANTED: dict[str, Callable[[Case], bool]] = {
    "case": lambda case: True,
    "mixed_case": lambda case: case.name in MIXED,
    "chain_case": lambda case: case.is_chain,
    "one_output_case": lambda case: case.n_outputs == 1,
    "several_outputs_case": lambda case: case.n_outputs > 1,
    "exact_case": lambda case: case.is_exact,
    "difference_case": lambda case: case.is_exact and case.is_smooth,
    "smooth_pair_case": lambda case: case.n_outputs == 2 and case.is_smooth,
    "unbounded_case": lambda case: case.is_unbounded,
    "bounded_case": lambda case: not case.is_unbounded,
    "cycled_case": lambda case: not case.is_chain,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    given = str([mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")])
    for name in WANTED.keys() & set(metafunc.fixturenames):
        if f"'{name}'" in given:
            continue
        metafunc.parametrize(name, [case for case in CASES if WANTED[name](case)], ids=repr)
