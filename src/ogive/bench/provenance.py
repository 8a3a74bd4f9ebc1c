"""Where a figure comes from: versions of the software, and the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["machine", "told", "versions"]

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn", "zuko", "ngboost")


@cache
def versions() -> dict[str, str | None]:
    """Versions of ogive, Python and the libraries that fit; None for what is not there."""
    from .. import __version__

    found: dict[str, str | None] = {
        "ogive": __version__,
        "commit": commit(PACKAGE),
        "python": platform.python_version(),
    }
    return found | {name: _installed(name) for name in LIBRARIES}


@cache
def machine() -> dict[str, str | int]:
    """Model and number of the processors, and the threads that torch computes with."""
    import torch

    return {"cpu": _processor(), "cores": os.cpu_count() or 1, "threads": torch.get_num_threads()}


def told(versions: Iterable[Mapping[str, str | None]], machines: Iterable[Mapping[str, Any]]) -> list[str]:
    """All versions and machines of some records, for people."""
    found: dict[str, set[str]] = {}
    for one in versions:
        for name, number in one.items():
            found.setdefault(name, set()).update([_short(name, number)] if number else [])
    said = [f"{name} {', '.join(sorted(each))}" for name, each in found.items() if each]
    places = {f"{m['cpu']}, {m['cores']} cores, threads in use: {m['threads']}" for m in machines if m}
    return [f"Versions: {'; '.join(said)}."] * bool(said) + [f"Machine: {place}." for place in sorted(places)]


def commit(package: Path) -> str | None:
    """The commit of the source tree that the package lies in, with a plus if src/ has changed since."""
    root = package.parents[1]
    if package.parent.name != "src" or not (root / ".git").exists():
        return None
    found = _git(root, "rev-parse", "HEAD")
    return found and found + "+" * bool(_git(root, "status", "--porcelain", "--", "src"))


def _short(name: str, number: str) -> str:
    return number[:10] + "+" * number.endswith("+") if name == "commit" else number


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
