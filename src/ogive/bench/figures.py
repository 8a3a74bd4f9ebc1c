"""Pictures of benchmarks, drawn from numbers in records: densities on grids, and reliability."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..plotting import BLUE, INK, SERIES, SOFT, new_axes

__all__ = ["Column", "Curve", "density_columns", "reliability_panels"]

DENSE = ("#ffffff", "#c3d6ea", BLUE, "#0c2340")
SHADES = 48  # few enough that a picture stays small
DOTS = 100  # to the inch


@dataclass(frozen=True)
class Column:
    """Densities (x, k, k) of one method, or None where there are none."""

    title: str
    density: Array | None


@dataclass(frozen=True)
class Curve:
    """Share of the outcomes (levels,) below each of equally spaced predicted quantiles."""

    title: str
    share: Sequence[float]
    distinct: int


def density_columns(path: Path, columns: Sequence[Column], places: Sequence[float], axis: Array, top: float) -> None:
    """Write a picture with a column for each method and a row for each x.

    White is a density of zero and the darkest shade one of `top` or more; `axis` (k,) are the grid's nodes.
    """
    from matplotlib.colors import LinearSegmentedColormap

    figure = _figure(0.35 + 0.95 * len(columns), 0.35 + 0.95 * len(places))
    panels = figure.subplots(len(places), len(columns), squeeze=False)
    shades = LinearSegmentedColormap.from_list("ogive-dense", DENSE, N=SHADES)
    half = 0.5 * (axis[1] - axis[0])
    extent = (axis[0] - half, axis[-1] + half) * 2
    for j, column in enumerate(columns):
        for i, place in enumerate(places):
            panel = panels[i, j]
            panel.set(xticks=[], yticks=[])
            panel.spines[:].set_color(SOFT)
            panel.spines[:].set_linewidth(0.4)
            if column.density is None:
                panel.set_aspect("equal")
                panel.text(0.5, 0.5, "none\non record", ha="center", va="center", color=SOFT, transform=panel.transAxes)
            else:
                look: dict[str, Any] = {"origin": "lower", "extent": extent, "interpolation": "nearest"}
                panel.imshow(column.density[i].T, vmin=0.0, vmax=top, cmap=shades, **look)
            if i == 0:
                panel.set_title(column.title, fontsize=7, color=INK)
            if j == 0:
                panel.set_ylabel(f"x = {place:g}", fontsize=7, color=INK)
    _write(figure, path)


def reliability_panels(path: Path, panels: Mapping[str, Sequence[Curve]]) -> None:
    """Write a picture with a reliability diagram for each task.

    The shade holds the share that a calibrated model shows at a level q with probability 95 %,
    :math:`q \\pm 1.96 \\sqrt{q (1 - q) / n}`, for the least n distinct outcomes of the panel's curves.
    """
    figure = _figure(3.4 * len(panels), 3.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    q = np.linspace(0.0, 1.0, 101)
    for ax, (title, curves) in zip(axes, panels.items(), strict=True):
        ax.spines[["top", "right"]].set_visible(False)
        if curves:
            width = 1.96 * np.sqrt(q * (1.0 - q) / min(curve.distinct for curve in curves))
            ax.fill_between(q, q - width, q + width, color=SOFT, alpha=0.2, linewidth=0, label="calibrated, 95 %")
        ax.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
        for curve, color in zip(curves, SERIES * math.ceil(len(curves) / len(SERIES)), strict=False):
            levels = np.arange(1, len(curve.share) + 1) / len(curve.share)
            ax.plot(levels, curve.share, color=color, linewidth=1.4, marker="o", markersize=3, label=curve.title)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="predicted probability", ylabel="observed frequency")
        ax.set_title(title, fontsize=10, color=INK)
        ax.tick_params(color=SOFT, labelcolor=INK, labelsize=8)
        if curves:
            ax.legend(frameon=False, loc="upper left", fontsize=7)
    _write(figure, path)


def _figure(width: float, height: float) -> Any:
    figure: Any = new_axes(width, height).figure
    figure.clear()
    return figure


def _write(figure: Any, path: Path) -> None:
    """The same bytes for the same numbers: no version of the library inside."""
    figure.savefig(path, dpi=DOTS, metadata={"Software": None})
