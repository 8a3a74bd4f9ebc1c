"""Pictures of predictions: functions that draw on an Axes and return it, and never show or keep anything.

matplotlib is met here alone, inside the functions, through its Figure class: no pyplot, no current figure, no
changed style.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .prediction import Prediction

__all__ = ["density", "new_axes", "reliability", "save"]

Array = NDArray[np.float64]

INK, SOFT = "#1f2933", "#7b8794"
BLUE, RED = "#2867a8", "#c8412b"
SERIES = (BLUE, "#d98d1d", "#2f8f5b", "#8a4fa3", "#5b6770")
SHADE_90, SHADE_50 = "#dbe6f1", "#a9c2de"
POINTS, POINTS_2D = 601, 101
MASSES = (0.98, 0.9, 0.75, 0.5, 0.25)
SIZES = {1: (6.4, 3.6), 2: (5.8, 4.6)}
REACH = (0.001, 0.999)


def density(prediction: Prediction, row: int = 0, *, ax: Axes | None = None, y: ArrayLike | None = None) -> Axes:
    """Draw the predicted density of one row.

    One output: the curve, with its central 50 % and 90 % shaded and a line at the median. Two outputs: the smallest
    regions that hold 25, 50, 75, 90 and 98 % of the probability (on a grid of 101 x 101 points).

    Parameters
    ----------
    prediction : Prediction
        Of one or two outputs.
    row : int
        The row to draw, counted from 0.
    ax : Axes, optional
        Where to draw; a new figure if None.
    y : array-like, optional
        What was observed in that row, one number an output: it is marked.

    Examples
    --------
    >>> ax = density(model.predict_dist(X), 3, y=y[3])  # doctest: +SKIP
    >>> save(ax, "density.png")  # doctest: +SKIP
    """
    if prediction.n_outputs > 2:
        raise DataError(
            f"prediction must have one or two outputs to be drawn; got {prediction.n_outputs}. "
            "Draw one of them: prediction.marginal(name)."
        )
    if not 0 <= row < len(prediction):
        raise DataError(f"row must lie in 0..{len(prediction) - 1}; got {row}. Rows are counted from 0.")
    observed = None if y is None else np.asarray(y, dtype=np.float64).reshape(-1)
    if observed is not None and observed.shape != (prediction.n_outputs,):
        raise DataError(f"y must hold {prediction.n_outputs} numbers; got {observed.size}. Give those of this row.")
    ax = new_axes(*SIZES[prediction.n_outputs]) if ax is None else ax
    draw = _curve if prediction.n_outputs == 1 else _regions
    draw(prediction[row], ax, observed)
    return ax


def reliability(pit: ArrayLike, *, ax: Axes | None = None) -> Axes:
    r"""Draw how often outcomes fell below each predicted quantile: on the diagonal if the model is calibrated.

    The curve of an output is the empirical CDF of its PIT values u. Of calibrated models 95 % stay inside the shaded
    band everywhere: :math:`q \pm \sqrt{\log(2 / 0.05) / 2n}` (Dvoretzky, Kiefer, Wolfowitz; Massart 1990).

    Parameters
    ----------
    pit : (n,) or (n, d) array
        Values in [0, 1], as `Prediction.pit` gives them.
    ax : Axes, optional
        Where to draw; a new figure if None.
    """
    values = np.asarray(pit, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise DataError(f"pit must have shape (n,) or (n, d); got {values.shape}. Pass prediction.pit(y).")
    if not ((values >= 0.0) & (values <= 1.0)).all():
        raise DataError(f"pit must lie in [0, 1]; got {values.min()} to {values.max()}. Pass prediction.pit(y), not y.")
    ax = new_axes(4.6, 4.4) if ax is None else ax
    n, width = len(values), math.sqrt(math.log(2.0 / 0.05) / (2.0 * len(values)))
    levels = np.linspace(0.0, 1.0, 201)
    band = np.clip(levels - width, 0.0, 1.0), np.clip(levels + width, 0.0, 1.0)
    ax.fill_between(levels, *band, color=SOFT, alpha=0.2, linewidth=0, label="95 % of calibrated models")
    ax.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=(0, (4, 3)))
    for j in range(values.shape[1]):
        steps = np.concatenate([[0.0], np.sort(values[:, j]), [1.0]])
        below = np.concatenate([np.arange(n + 1) / n, [1.0]])
        label = "observed" if values.shape[1] == 1 else f"output {j}"
        ax.step(steps, below, where="post", color=SERIES[j % len(SERIES)], linewidth=1.8, label=label)
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="predicted probability", ylabel="observed frequency")
    ax.legend(frameon=False, loc="upper left", fontsize=9)
    return ax


def new_axes(width: float, height: float) -> Axes:
    """The Axes of a new figure of this size in inches, which belongs to nobody else.

    Raises
    ------
    ImportError
        When matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "matplotlib must be installed to draw; got none. Install it: pip install 'ogive[plot]'.",
            name="matplotlib",
        ) from error
    ax = Figure(figsize=(width, height), layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(SOFT)
    ax.tick_params(color=SOFT, labelcolor=INK, labelsize=9)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    return ax


def save(ax: Axes, path: str | os.PathLike[str]) -> None:
    """Write the figure of `ax` to a file; its ending (.png, .pdf, .svg, ...) says in which form."""
    figure: Any = ax.figure
    suffix = os.path.splitext(path)[1].lstrip(".").lower()
    known = sorted(figure.canvas.get_supported_filetypes())
    if suffix not in known:
        raise DataError(f"a picture must end in one of {', '.join(known)}; got '{os.fspath(path)}'. Change it.")
    figure.savefig(path, dpi=200)


def _curve(law: Prediction, ax: Axes, observed: Array | None) -> None:
    """The density of one output."""
    low, high = law.quantiles(REACH)[0, 0]
    grid = np.linspace(*_stretched(low, high, observed), POINTS)
    inner = law.quantiles([0.05, 0.25, 0.5, 0.75, 0.95])[0, 0]
    # The ends of the shades are points of the grid, so that they are cut straight.
    grid = np.union1d(grid, inner)
    height = law.pdf(grid[:, None])[:, 0]
    for (left, right), shade, label in (
        ((inner[0], inner[4]), SHADE_90, "90 % interval"),
        ((inner[1], inner[3]), SHADE_50, "50 % interval"),
    ):
        part = (grid >= left) & (grid <= right)
        ax.fill_between(grid[part], height[part], color=shade, linewidth=0, label=label)
    ax.plot(grid, height, color=BLUE, linewidth=1.8, solid_joinstyle="round")
    middle = float(np.interp(inner[2], grid, height))
    ax.plot([inner[2], inner[2]], [0.0, middle], color=INK, linewidth=1.4, label="median")
    if observed is not None:
        ax.axvline(observed[0], color=RED, linewidth=1.4, linestyle=(0, (4, 3)), label="observed")
    ax.set_xlim(grid[0], grid[-1])
    ax.set_ylim(0.0, 1.05 * height.max())
    ax.set(xlabel=law.output_names[0], ylabel="density")
    ax.legend(frameon=False, loc="best", fontsize=9)


def _regions(law: Prediction, ax: Axes, observed: Array | None) -> None:
    """The joint density of two outputs, as nested regions of highest density."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Patch

    reach = law.quantiles(REACH)[0]
    marks = (None, None) if observed is None else (observed[:1], observed[1:])
    ends = [_stretched(low, high, mark) for (low, high), mark in zip(reach, marks, strict=True)]
    axes = [np.linspace(*pair, POINTS_2D) for pair in ends]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 1, 2)
    height = law.pdf(nodes).reshape(POINTS_2D, POINTS_2D)
    scale = LinearSegmentedColormap.from_list("ogive", ["#dbe7f3", BLUE, "#12304f"])
    colors = scale(np.linspace(0.0, 1.0, len(MASSES)))
    levels = [*_thresholds(height), np.inf]
    rising = [level for place, level in enumerate(levels) if place == 0 or level > levels[place - 1]]
    ax.contourf(*axes, height.T, levels=rising, colors=colors[-len(rising) + 1 :])
    handles: list[Any] = [Patch(color=c, label=f"{mass * 100:.0f} %") for c, mass in zip(colors, MASSES, strict=True)]
    if observed is not None:
        handles += ax.plot(*observed, "o", color=RED, markeredgecolor="white", markersize=8, label="observed")
    ax.set(xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]], xlabel=law.output_names[0], ylabel=law.output_names[1])
    legend = ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    legend.set_title("holds")
    legend.get_title().set_fontsize(9)
    legend.set_alignment("left")


def _thresholds(height: Array) -> list[float]:
    """The densities above which the points of an even grid hold each of `MASSES`."""
    falling = np.sort(height, axis=None)[::-1]
    share = np.cumsum(falling) / falling.sum()
    return [float(falling[np.searchsorted(share, mass)]) for mass in MASSES]


def _stretched(low: float, high: float, observed: Array | None) -> tuple[float, float]:
    """An interval with a margin, that takes in what was observed."""
    if observed is not None:
        low, high = min(low, float(observed[0])), max(high, float(observed[0]))
    margin = 0.03 * (high - low)
    return low - margin, high + margin
