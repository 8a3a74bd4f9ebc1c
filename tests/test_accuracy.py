"""The defaults learn the four toys of the paper at least as well as the method of the paper does."""

from __future__ import annotations

import numpy as np
import pytest

from ogive import OgiveRegressor
from ogive.datasets import toy

# Squared error of the density on the grid of `toy.sse`, after 2,000 rows.
PAPER = {"squares": 0.101, "half_gaussian": 0.157, "stick": 0.072, "ring": 0.094}


@pytest.mark.slow
@pytest.mark.parametrize("name", toy.TOYS)
def test_the_density_of_a_toy_is_no_worse_than_in_the_paper(name):
    task = toy.get(name)
    X, y = task.sample(2000, np.random.default_rng(0))
    model = OgiveRegressor(random_state=0).fit(X, y)
    density = model.predict_dist(toy.SSE_X[:, None]).pdf_grid(toy.SSE_AXIS, toy.SSE_AXIS)
    assert toy.sse(density, task) <= PAPER[name]
    X, y = task.sample(2000, np.random.default_rng(1))
    assert -task.entropy() - 0.5 < model.score(X, y) < -task.entropy() + 0.1
