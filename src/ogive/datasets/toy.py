"""Four toy tasks: conditional densities of two outputs given one input, known exactly.

Each task draws x uniformly from (-1, 1) and then y = (y1, y2) from p(y | x): two separate
squares, half of a Gaussian, a stick with sharp ends, a ring. Their shapes move, turn or
stretch with x. `sse` is the score of the published comparison on these tasks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Toy(ABC):
    """A density p(y | x) of two outputs that can be drawn from and evaluated exactly.

    A task states how y is drawn and what its log density is; the rest is written once here.

    Attributes
    ----------
    name : str
        Key of the task in `TOYS`.
    n_outputs : int
        Always 2.

    Examples
    --------
    >>> task = get("ring")
    >>> X, y = task.sample(5, np.random.default_rng(0))
    >>> X.shape, y.shape, bool(np.isfinite(task.logpdf(X[:, 0], y)).all())
    ((5, 1), (5, 2), True)
    """

    name: ClassVar[str]
    n_outputs: ClassVar[int] = 2

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw n rows: X (n, 1) uniform on (-1, 1) and y (n, 2) from p(y | x)."""
        x = rng.uniform(-1.0, 1.0, n)
        return x[:, None], self._draw(x, rng)

    def draw(self, x: ArrayLike, rng: np.random.Generator) -> Array:
        """Draw one y for every x: from shape (...,) to shape (..., 2)."""
        return self._draw(_inputs(x), rng)

    def logpdf(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Log density of y (..., 2) given x (...,), in nats; -inf outside the support.

        The leading axes of x and y broadcast.
        """
        x, y = _inputs(x), _outputs(y)
        if x.ndim == y.ndim and x.shape[-1] == 1 and x.shape[:-1] == y.shape[:-1]:
            raise ValueError(f"x must have one axis fewer than y; got shapes {x.shape} and {y.shape}. Pass X[:, 0].")
        with np.errstate(over="ignore"):
            return self._logpdf(*np.broadcast_arrays(x, y[..., 0], y[..., 1]))

    def pdf_grid(self, x: ArrayLike, axis1: ArrayLike, axis2: ArrayLike) -> Array:
        """Density on the nodes of a product grid: x (n,), axes (k1,) and (k2,), result (n, k1, k2)."""
        nodes = np.stack(np.meshgrid(axis1, axis2, indexing="ij"), axis=-1)
        return np.exp(self.logpdf(np.asarray(x)[:, None, None], nodes[None]))

    @abstractmethod
    def entropy(self) -> float:
        """Mean of -log p(y | x) over x and y, in nats: no model scores less on average."""

    @abstractmethod
    def _draw(self, x: Array, rng: np.random.Generator) -> Array:
        """Draw y for checked x."""

    @abstractmethod
    def _logpdf(self, x: Array, y1: Array, y2: Array) -> Array:
        """Log density for checked arrays of one shape."""


@dataclass(frozen=True)
class Squares(Toy):
    """Two separate squares of side 4, equally likely, that approach each other as x grows.

    p(y | x) = 1/32 on [-5 + x, -1 + x]^2 and on [1 - x, 5 - x]^2.
    """

    name = "squares"

    def entropy(self) -> float:
        """Log 32, exact up to rounding."""
        return math.log(32.0)

    def _draw(self, x: Array, rng: np.random.Generator) -> Array:
        sign = rng.choice([-1.0, 1.0], x.shape)
        return (sign * (3.0 - x))[..., None] + rng.uniform(-2.0, 2.0, (*x.shape, 2))

    def _logpdf(self, x: Array, y1: Array, y2: Array) -> Array:
        centre = 3.0 - x
        upper = (np.abs(y1 - centre) <= 2.0) & (np.abs(y2 - centre) <= 2.0)
        lower = (np.abs(y1 + centre) <= 2.0) & (np.abs(y2 + centre) <= 2.0)
        return np.where(upper | lower, -math.log(32.0), -np.inf)


@dataclass(frozen=True)
class HalfGaussian(Toy):
    """Half of a round Gaussian, turned by the angle pi x.

    (y1, y2) is (abs(a), b) turned by pi x, with a and b independent normals of mean 0 and
    standard deviation 2 (the paper writes N(0, 2): the 2 is read as a standard deviation).
    p(y | x) = exp(-(y1^2 + y2^2) / 8) / (4 pi) where y1 cos(pi x) + y2 sin(pi x) > 0.
    """

    name = "half_gaussian"

    def entropy(self) -> float:
        """Log 4 pi e, exact up to rounding."""
        return math.log(4.0 * math.pi) + 1.0

    def _draw(self, x: Array, rng: np.random.Generator) -> Array:
        a, b = rng.normal(0.0, 2.0, (2, *x.shape))
        return _turn(np.abs(a), b, np.pi * x)

    def _logpdf(self, x: Array, y1: Array, y2: Array) -> Array:
        a = y1 * np.cos(np.pi * x) + y2 * np.sin(np.pi * x)
        return np.where(a > 0.0, -(y1**2 + y2**2) / 8.0 - math.log(4.0 * math.pi), -np.inf)


@dataclass(frozen=True)
class Stick(Toy):
    """A stick of length 12, Gaussian across and uniform along, that turns with x.

    (y1, y2) is (a, b) turned by pi (x - 0.75) / 2, with a standard normal and b uniform on (-6, 6).
    p(y | x) = exp(-a^2 / 2) / (12 sqrt(2 pi)) where abs(b) <= 6.
    """

    name = "stick"

    def entropy(self) -> float:
        """Log(12 sqrt(2 pi e)), exact up to rounding."""
        return math.log(12.0) + 0.5 * (math.log(2.0 * math.pi) + 1.0)

    def _draw(self, x: Array, rng: np.random.Generator) -> Array:
        a, b = rng.standard_normal(x.shape), rng.uniform(-6.0, 6.0, x.shape)
        return _turn(a, b, np.pi * (x - 0.75) / 2.0)

    def _logpdf(self, x: Array, y1: Array, y2: Array) -> Array:
        angle = np.pi * (x - 0.75) / 2.0
        a = y1 * np.cos(angle) + y2 * np.sin(angle)
        b = y2 * np.cos(angle) - y1 * np.sin(angle)
        log_peak = -math.log(12.0 * math.sqrt(2.0 * math.pi))
        return np.where(np.abs(b) <= 6.0, log_peak - a**2 / 2.0, -np.inf)


@dataclass(frozen=True)
class Ring(Toy):
    """An elliptic ring: wide along y2 for negative x, round at x = 0, wide along y1 for positive x.

    y = ((A + d) cos t, (B + d) sin t) with A = 4 + 2x, B = 4 - 2x, d uniform on (0, 2) and
    t uniform on (0, 2 pi). The map (d, t) -> y has the Jacobian (B + d) cos^2 t + (A + d) sin^2 t, so
    p(y | x) = 1 / (4 pi ((B + d) cos^2 t + (A + d) sin^2 t)): not uniform on the ring.
    Given y, d is the only root of (y1 / (A + d))^2 + (y2 / (B + d))^2 = 1 in (0, 2).
    """

    name = "ring"

    def entropy(self) -> float:
        """Closed form, exact up to rounding.

        With m = 4 + d the Jacobian is m - 2x cos 2t. The mean of its log is
        log((m + sqrt(m^2 - 4x^2)) / 2) over t, and arccosh(m / 2) + (m / 2) arcsin(2 / m) - 1 over
        t and x; over m in (4, 6) it is half the difference of the antiderivative below.
        """

        def antiderivative(m: float) -> float:
            root = math.sqrt(m * m - 4.0)
            return m * math.acosh(m / 2.0) - root / 2.0 + m * m / 4.0 * math.asin(2.0 / m) - m

        return math.log(4.0 * math.pi) + (antiderivative(6.0) - antiderivative(4.0)) / 2.0

    def _draw(self, x: Array, rng: np.random.Generator) -> Array:
        d, t = rng.uniform(0.0, 2.0, x.shape), rng.uniform(0.0, 2.0 * np.pi, x.shape)
        return np.stack([(4.0 + 2.0 * x + d) * np.cos(t), (4.0 - 2.0 * x + d) * np.sin(t)], axis=-1)

    def _logpdf(self, x: Array, y1: Array, y2: Array) -> Array:
        a, b = 4.0 + 2.0 * x, 4.0 - 2.0 * x
        outside_hole = (y1 / a) ** 2 + (y2 / b) ** 2 >= 1.0
        inside_rim = (y1 / (a + 2.0)) ** 2 + (y2 / (b + 2.0)) ** 2 <= 1.0
        here = outside_hole & inside_rim
        log_density = np.full(x.shape, -np.inf)
        log_density[here] = -np.log(4.0 * np.pi * _ring_jacobian(a[here], b[here], y1[here], y2[here]))
        return log_density


def _ring_jacobian(a: Array, b: Array, y1: Array, y2: Array) -> Array:
    """Jacobian of the ring's map at points of the ring."""
    d = np.zeros_like(y1)
    # The level is convex and falls with d: Newton from the left climbs to the root and never passes it.
    for _ in range(8):
        cosine, sine = y1 / (a + d), y2 / (b + d)
        slope = -2.0 * (cosine**2 / (a + d) + sine**2 / (b + d))
        d -= (cosine**2 + sine**2 - 1.0) / slope
    return (b + d) * (y1 / (a + d)) ** 2 + (a + d) * (y2 / (b + d)) ** 2


def _turn(a: Array, b: Array, angle: Array) -> Array:
    """Points (a, b) turned about the origin, stacked on a last axis."""
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([a * cosine - b * sine, a * sine + b * cosine], axis=-1)


def _inputs(x: ArrayLike) -> Array:
    """Check x."""
    x = np.asarray(x, dtype=np.float64)
    if not np.all(np.abs(x) <= 1.0):
        raise ValueError(
            f"x must lie in [-1, 1]; got values from {np.min(x)} to {np.max(x)}. "
            "Leave out what lies outside: the tasks are not defined there."
        )
    return x


def _outputs(y: ArrayLike) -> Array:
    """Check y."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim == 0 or y.shape[-1] != 2:
        raise ValueError(f"y must have a last axis of length 2; got shape {y.shape}. Stack y1 and y2 there.")
    if not np.all(np.isfinite(y)):
        raise ValueError("y must be finite; got NaN or an infinite value. Drop these points.")
    return y


TOYS: Mapping[str, Toy] = MappingProxyType({t.name: t for t in (Squares(), HalfGaussian(), Stick(), Ring())})

SSE_X = np.array([-0.75, -0.25, 0.25, 0.75])
SSE_AXIS = np.linspace(-8.0, 8.0, 64)
SSE_X.flags.writeable = SSE_AXIS.flags.writeable = False


def get(name: str) -> Toy:
    """Return the toy task of that name."""
    if name not in TOYS:
        raise ValueError(f"name must be one of {', '.join(TOYS)}; got {name!r}. Pass one of these names.")
    return TOYS[name]


def sse(pdf: ArrayLike, task: Toy, *, x: ArrayLike = SSE_X) -> float:
    """Squared error of an estimated density, summed over a grid and averaged over several x.

    sse = mean over x of the sum over nodes (pdf - p(node | x))^2, with the 64 x 64
    nodes of `SSE_AXIS` x `SSE_AXIS`. A sum of squares, not an integral: it is not multiplied by
    the area of a cell. Smaller is better; the estimate 0 scores about 0.50 on squares, 0.61 on
    half_gaussian, 0.37 on stick and 0.26 on ring.

    Parameters
    ----------
    pdf : (4, 64, 64) array
        Estimated density at x[i] and y = (SSE_AXIS[j], SSE_AXIS[k]), as
        ``pdf_grid(SSE_AXIS, SSE_AXIS)`` gives it.
    task : Toy
        The truth.
    x : array, optional
        Where to compare, in place of the four `SSE_X`.

    Notes
    -----
    At these four x the edge of half_gaussian is a diagonal of the grid, where the truth jumps
    between 0 and its full height: rounding decides on which side the 64 nodes of the diagonal fall,
    and the score of 0 there may lie anywhere in 0.586 to 0.648. An estimate halfway up on the
    edge scores the same on either side.

    Examples
    --------
    >>> round(sse(np.zeros((4, 64, 64)), get("squares")), 3)
    0.5
    """
    estimate = np.asarray(pdf, dtype=np.float64)
    places = _inputs(x)
    shape = (places.size, SSE_AXIS.size, SSE_AXIS.size)
    if estimate.shape != shape:
        raise ValueError(f"pdf must have shape {shape}; got {estimate.shape}. Evaluate it at x on SSE_AXIS x SSE_AXIS.")
    if not np.all(np.isfinite(estimate)):
        raise ValueError("pdf must be finite; got NaN or an infinite value. Check the estimator there.")
    error = estimate - task.pdf_grid(places, SSE_AXIS, SSE_AXIS)
    return float(np.mean(np.sum(error**2, axis=(1, 2))))
