"""Which runs of several protocols are meant by names and splits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set

from ..errors import DataError
from .protocol import Protocol, Run

__all__ = ["selected"]


def selected(
    protocols: Mapping[str, Protocol], names: Collection[str] = (), splits: Collection[int] = ()
) -> dict[str, list[Run]]:
    """Runs by protocol: those of the named protocols, tasks, methods and splits; all of a kind that is not named."""
    runs = [(part, run) for part, protocol in protocols.items() for run in protocol.runs()]
    known = {
        "protocols": dict.fromkeys(part for part, _ in runs),
        "tasks": dict.fromkeys(run.task for _, run in runs),
        "methods": dict.fromkeys(run.method for _, run in runs),
    }
    if unknown := [name for name in names if not any(name in kind for kind in known.values())]:
        choice = ", ".join(f"{kind} ({', '.join(found)})" for kind, found in known.items())
        raise DataError(f"--only must name some of {choice}; got '{unknown[0]}'. Choose among them.")
    numbers = sorted({run.split for _, run in runs})
    if missing := [split for split in splits if split not in numbers]:
        raise DataError(
            f"--splits must lie in {numbers[0]}..{numbers[-1]}; got {missing[0]}. Choose among the protocols'."
        )
    wanted: list[Set[str | int]] = [known[kind].keys() & set(names) for kind in known]
    wanted.append(set(splits))
    chosen: dict[str, list[Run]] = {part: [] for part in protocols}
    for part, run in runs:
        if all(not some or own in some for some, own in zip(wanted, _marks(part, run), strict=True)):
            chosen[part].append(run)
    if not any(chosen.values()):
        raise DataError("--only and --splits must leave runs to measure; got none. Name less.")
    return chosen


def _marks(part: str, run: Run) -> tuple[str, str, str, int]:
    return part, run.task, run.method, run.split
