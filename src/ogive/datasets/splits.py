"""Which rows train a model and which rows test it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def permutation_split(n: int, seed: int, *, train_fraction: float = 0.7) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Cut one seeded random permutation of the rows into a training and a test part.

    The permutation is ``numpy.random.default_rng(seed).permutation(n)``; its first
    ``int(n * train_fraction)`` entries train, the rest test. The product is a
    floating-point one and its fraction is dropped, never rounded up.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int
        Number of the repeat; the same seed gives the same split.
    train_fraction : float
        Share of the rows that trains, between 0 and 1. Each part must keep a row.

    Returns
    -------
    train, test : (int(n * train_fraction),) and (n - int(n * train_fraction),) arrays of row indices

    Examples
    --------
    >>> train, test = permutation_split(10, 0)
    >>> train.size, test.size, sorted([*train.tolist(), *test.tolist()]) == list(range(10))
    (7, 3, True)
    """
    n_train = int(n * train_fraction) if 0.0 < train_fraction < 1.0 else 0
    if not 0 < n_train < n:
        raise ValueError(
            "n and train_fraction must leave a row in each part; "
            f"got n={n} and train_fraction={train_fraction}. Use more rows or a fraction such as 0.7."
        )
    order = np.random.default_rng(seed).permutation(n)
    return order[:n_train], order[n_train:]
