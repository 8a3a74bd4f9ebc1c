"""Pictures show what the prediction says, on the Axes they are given, and leave no trace in matplotlib."""

from __future__ import annotations

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from scipy import stats

from ogive.errors import DataError
from ogive.plotting import density, new_axes, reliability, save


class Normals:
    """Independent normals, of which everything is known, with the methods of a Prediction that pictures ask for."""

    def __init__(self, mean: np.ndarray, std: np.ndarray) -> None:
        self.mean_, self.std_ = np.atleast_2d(mean), np.atleast_2d(std)
        self.n_outputs = self.mean_.shape[1]
        self.output_names = ["east", "north", "up"][: self.n_outputs]

    def __len__(self) -> int:
        return len(self.mean_)

    def __getitem__(self, row: int) -> Normals:
        return Normals(self.mean_[row], self.std_[row])

    def pdf(self, y: np.ndarray) -> np.ndarray:
        y = y[..., None] if self.n_outputs == 1 else y
        return stats.norm.pdf(y, self.mean_, self.std_).prod(-1)

    def quantiles(self, q: np.ndarray) -> np.ndarray:
        return stats.norm.ppf(np.asarray(q), self.mean_[..., None], self.std_[..., None])


ONE = Normals(np.array([[0.0], [50.0]]), np.array([[1.0], [0.2]]))
TWO = Normals(np.array([[0.0, 5.0], [1.0, -1.0]]), np.array([[1.0, 3.0], [2.0, 2.0]]))


def labels(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- density


def test_the_curve_is_the_density_of_the_row():
    ax = density(ONE, 1)
    curve = ax.lines[0].get_xydata()
    assert np.allclose(curve[:, 1], stats.norm.pdf(curve[:, 0], 50.0, 0.2))
    assert np.trapezoid(curve[:, 1], curve[:, 0]) == pytest.approx(1.0, abs=3e-3)
    assert ax.lines[1].get_xdata() == pytest.approx([50.0, 50.0])  # the median
    assert labels(ax) == ["90 % interval", "50 % interval", "median"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "density")


def test_the_shades_end_at_the_quantiles():
    ax = density(ONE)
    for shade, level in zip(ax.collections, (0.95, 0.75), strict=True):
        x = shade.get_paths()[0].vertices[:, 0]
        assert (x.min(), x.max()) == pytest.approx((stats.norm.ppf(1 - level), stats.norm.ppf(level)))


def test_what_was_observed_is_marked_and_in_sight():
    ax = density(ONE, y=12.0)
    assert ax.lines[-1].get_xdata() == pytest.approx([12.0, 12.0])
    assert ax.get_xlim()[1] > 12.0
    assert labels(ax)[-1] == "observed"
    ax = density(TWO, 1, y=[30.0, -1.0])
    assert ax.lines[-1].get_xydata().tolist() == [[30.0, -1.0]]
    assert ax.get_xlim()[1] > 30.0


def test_the_regions_hold_the_probability_they_claim():
    ax = density(TWO)
    (regions,) = ax.findobj(matplotlib.contour.ContourSet)
    mass = np.array([0.98, 0.9, 0.75, 0.5, 0.25])
    # Of two independent normals with spreads s and t, the region above a density of h holds 1 - 2 pi s t h.
    assert 1.0 - 2.0 * np.pi * 3.0 * regions.levels[:-1] == pytest.approx(mass, abs=0.01)
    assert labels(ax) == ["98 %", "90 %", "75 %", "50 %", "25 %"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("east", "north")


def test_a_flat_density_is_drawn_too():
    flat = Normals(np.zeros(2), np.ones(2))
    flat.pdf = lambda y: np.full(y.shape[:-1], 0.25)
    assert len(density(flat).findobj(matplotlib.contour.ContourSet)) == 1


@pytest.mark.parametrize("prediction", [ONE, TWO])
def test_the_axes_given_are_used_and_returned(prediction):
    ax = Figure().add_subplot()
    assert density(prediction, ax=ax) is ax
    assert reliability([0.5], ax=ax) is ax


@pytest.mark.parametrize(
    ("prediction", "row", "y", "match"),
    [
        (Normals(np.zeros((2, 3)), np.ones((2, 3))), 0, None, r"must have one or two outputs to be drawn; got 3"),
        (ONE, 2, None, r"row must lie in 0\.\.1; got 2"),
        (ONE, -1, None, r"row must lie in 0\.\.1; got -1"),
        (ONE, 0, [1.0, 2.0], r"y must hold 1 numbers; got 2"),
        (TWO, 0, 1.0, r"y must hold 2 numbers; got 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(prediction, row, y, match):
    with pytest.raises(DataError, match=match):
        density(prediction, row, y=y)


# --- reliability


@given(pit=arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 3)), elements=st.floats(0.0, 1.0)))
def test_the_reliability_is_the_empirical_cdf_of_each_output(pit):
    ax = reliability(pit)
    for curve, values in zip(ax.lines[1:], pit.T, strict=True):
        x, share = curve.get_xydata().T
        for level in (0.0, 0.3, 0.999):
            at = np.searchsorted(x, level, side="right") - 1
            assert share[at] == pytest.approx(np.mean(values <= level))
        assert (x[-1], share[-1]) == (1.0, 1.0)


def test_calibrated_models_stay_in_the_band_95_times_in_100():
    draws = np.random.default_rng(0).random((2000, 100))
    edges = reliability(draws[0]).collections[0].get_paths()[0].vertices
    width = edges[np.isclose(edges[:, 0], 0.5), 1].max() - 0.5
    apart = [stats.kstest(pit, "uniform").statistic for pit in draws]
    assert 0.02 < np.mean(np.array(apart) > width) <= 0.05
    assert stats.kstest(draws[0] ** 2, "uniform").statistic > width


@pytest.mark.parametrize(
    ("pit", "match"),
    [
        (0.5, r"pit must have shape \(n,\) or \(n, d\); got \(\)"),
        ([], r"pit must have shape \(n,\) or \(n, d\)"),
        (np.zeros((2, 2, 2)), r"pit must have shape \(n,\) or \(n, d\); got \(2, 2, 2\)"),
        ([0.5, 3.0], r"pit must lie in \[0, 1\]; got 0\.5 to 3\.0. Pass prediction\.pit\(y\), not y"),
        ([0.5, np.nan], r"pit must lie in \[0, 1\]; got nan"),
    ],
)
def test_what_is_no_pit_is_refused(pit, match):
    with pytest.raises(DataError, match=match):
        reliability(pit)


# --- files, and no trace


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")])
def test_the_ending_says_in_which_form_a_picture_is_saved(tmp_path, ending, start):
    path = tmp_path / f"figure.{ending}"
    save(density(TWO), path)
    assert path.read_bytes().startswith(start)


def test_another_ending_is_refused(tmp_path):
    for name in ("figure.xyz", "figure"):
        with pytest.raises(DataError, match=rf"a picture must end in one of .*png.*; got '.*{name}'\. Change it"):
            save(density(ONE), tmp_path / name)


def test_a_new_axes_has_the_size_asked_for():
    assert new_axes(3.0, 2.0).figure.get_size_inches() == pytest.approx([3.0, 2.0])


def test_no_style_is_changed_and_pyplot_is_not_imported(tmp_path):
    script = (
        "import sys, matplotlib; before = dict(matplotlib.rcParams)\n"
        "from ogive.plotting import reliability, save\n"
        "save(reliability([0.2, 0.7]), sys.argv[1])\n"
        "print('matplotlib.pyplot' in sys.modules, dict(matplotlib.rcParams) == before)"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "figure.png"], capture_output=True, text=True)
    assert done.stdout == "False True\n", done.stderr
