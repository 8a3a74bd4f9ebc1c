"""What is timed: each work gives its subjects by name, each made only when its turn comes.

`case` is a number of outputs, or the name of a table. The other arguments are sizes, from the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from .. import metrics
from ..arrays import Array
from ..baselines import NSF, Boosted
from ..estimator import OgiveRegressor
from ..prediction import Prediction
from . import speed_subjects as subjects
from .tasks import KINDS

__all__ = ["WORKS", "Makers", "Subject"]

Makers = Mapping[str, Callable[[], "Subject"]]
LEVELS = 99
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Subject:
    """Someone at work.

    Attributes
    ----------
    call : what is timed
    amount : units of work in one call: rows, draws, steps, epochs
    facts : asked once after the last round
    """

    call: Callable[[], Any]
    amount: float = 1.0
    facts: Callable[[], dict[str, float]] = dict


def log_density(
    case: int, *, rows: int, features: int, steps: int, trees: int = 500, members: int | None = None
) -> Makers:
    """Log-densities of all rows in one call, x to answer."""
    X, y = subjects.drawn_rows(rows, features, case)

    def ours(n: int | None) -> Subject:
        network = subjects.ogive_network(X, y, n, steps)
        return Subject(_quietly(lambda x, at: network(x).log_prob(at), X, y), rows)

    def spline() -> Subject:
        network = subjects.spline_network(X, y)
        return Subject(_quietly(lambda x, at: network(x).log_prob(at), X, y), rows)

    def mixture() -> Subject:
        law = subjects.Mixture(X, y)
        return Subject(_quietly(law.log_prob), rows)

    def boosted() -> Subject:
        model = Boosted(n_trees=trees, random_state=0).fit(X[:1000], y[:1000])
        return Subject(lambda: model.predict_dist(X).logpdf(y), rows)

    return {
        "1 member": partial(ours, 1),
        "ours": partial(ours, members),
        "NSF": spline,
        "GMM": mixture,
        "NGBoost": boosted,
    }


def exact_density(case: int, *, rows: int, features: int, steps: int) -> Makers:
    """The exact log-density against the CDF alone, of one member; rows enough for a batch that fits the cache."""
    X, y = subjects.drawn_rows(rows, features, case)

    def of(ask: Callable[..., Any]) -> Subject:
        network = subjects.ogive_network(X, y, 1, steps)
        return Subject(_quietly(partial(ask, network), X, y), rows)

    return {
        "ours": partial(of, lambda network, x, at: network(x).log_prob(at)),
        "CDF only": partial(of, subjects.cdf_only),
    }


def training_step(case: int, *, rows: int, features: int, members: int | None = None) -> Makers:
    """One update on minibatches of 256 rows; for ours that of all members together."""
    X, y = subjects.drawn_rows(rows, features, case)

    def ours(n: int | None) -> Subject:
        return Subject(subjects.ogive_step(subjects.ogive_network(X, y, n, 0).train(), X, y))

    def spline() -> Subject:
        return Subject(subjects.spline_step(subjects.spline_network(X, y).train(), X, y))

    def mixture() -> Subject:
        return Subject(subjects.mixture_step(subjects.Mixture(X, y)))

    return {"1 member": partial(ours, 1), "ours": partial(ours, members), "NSF": spline, "GMM": mixture}


def draws(case: int, *, rows: int, size: int, features: int, steps: int, members: int | None = None) -> Makers:
    """Joint draws, `size` for each row, x to answer."""
    X, y = subjects.drawn_rows(rows, features, case)
    generator = torch.Generator().manual_seed(0)

    def ours() -> Subject:
        network = subjects.ogive_network(X, y, members, steps)
        return Subject(_quietly(lambda x: network(x).sample(size, generator), X), rows * size)

    def spline() -> Subject:
        network = subjects.spline_network(X, y)
        return Subject(_quietly(lambda x: subjects.spline_draws(network(x), size, generator), X), rows * size)

    def mixture() -> Subject:
        law = subjects.Mixture(X, y)
        return Subject(_quietly(lambda: law.sample(size)), rows * size)

    return {"ours": ours, "NSF": spline, "GMM": mixture}


def quantiles(case: int, *, rows: int, features: int, learn: int, epochs: int, levels: int = LEVELS) -> Makers:
    """Equally spaced quantiles of every row, of fitted estimators, in float64."""
    q = np.arange(1, levels + 1) / (levels + 1)
    return _asked(case, rows, features, learn, epochs, dict.fromkeys(PEERS, lambda law: law.quantiles(q)))


def density_grid(case: int, *, rows: int, features: int, learn: int, epochs: int, nodes: int) -> Makers:
    """The joint density on a product grid of every row, of fitted estimators, in float64."""
    axes = [np.linspace(-3.0, 3.0, nodes)] * case
    every = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 1, case)

    def node_by_node(law: Prediction) -> Array:
        return law.pdf(np.broadcast_to(every, (len(every), len(law), case)))

    questions = {"ours": lambda law: law.pdf_grid(*axes), "NSF": node_by_node}
    return _asked(case, rows, features, learn, epochs, questions)


def whole_fit(case: str, *, rows: int | None = None, changes: Mapping[str, Mapping[str, Any]] = NOTHING) -> Makers:
    """The default fit on the training part of split 0 of a table, and the likelihood of its test part.

    `changes` are parameters by subject, for trials.
    """
    split = KINDS["uci"].split(case, 0, rows)

    def of(name: str, kind: Callable[..., Any], **settings: Any) -> Subject:
        model = kind(random_state=0, **settings, **changes.get(name, NOTHING))

        def nll() -> dict[str, float]:
            return {"nll": float(metrics.nll(model.predict_dist(split.X_test), split.y_test))}

        return Subject(lambda: model.fit(split.X, split.y), facts=nll)

    return {
        "ours": partial(of, "ours", OgiveRegressor),
        "NSF": partial(of, "NSF", NSF, transforms=subjects.TRANSFORMS),
        "NGBoost": partial(of, "NGBoost", Boosted),
    }


def large_fit(case: int, *, rows: int, features: int, epochs: int) -> Makers:
    """A default fit of few epochs on many rows; everything of the fit is shared out over its epochs."""

    def ours() -> Subject:
        few = subjects.drawn_rows(100, features, case)
        OgiveRegressor(random_state=0, max_epochs=1).fit(*few)  # loads what a first fit loads
        X, y = subjects.drawn_rows(rows, features, case)
        model = OgiveRegressor(random_state=0, max_epochs=epochs)
        return Subject(lambda: model.fit(X, y), epochs)

    return {"ours": ours}


PEERS: Mapping[str, Callable[[int], Any]] = {
    "ours": lambda epochs: OgiveRegressor(random_state=0, max_epochs=epochs, dropout=0.0, noise=False),
    "NSF": lambda epochs: NSF(transforms=subjects.TRANSFORMS, random_state=0, max_epochs=epochs),
    "NGBoost": lambda epochs: Boosted(random_state=0, n_trees=10 * epochs),
}


def _asked(
    case: int, rows: int, features: int, learn: int, epochs: int, questions: Mapping[str, Callable[[Prediction], Any]]
) -> Makers:
    """A question to the prediction of each estimator, fitted to a few rows; what is timed begins with x."""
    X, y = subjects.drawn_rows(rows + learn, features, case)

    def of(name: str) -> Subject:
        model, ask = PEERS[name](epochs).fit(X[:learn], y[:learn]), questions[name]
        return Subject(lambda: ask(model.predict_dist(X[learn:])), rows)

    return {name: partial(of, name) for name in questions}


def _quietly(ask: Callable[..., Any], *arrays: Array) -> Callable[[], Any]:
    """The question put to float32 tensors, without gradients."""
    tensors = [torch.tensor(values, dtype=torch.float32) for values in arrays]

    def asked() -> Any:
        with torch.no_grad():
            return ask(*tensors)

    return asked


# Works of growing size: the subjects are the sizes.


def _growing(axis: str, work: Callable[..., Makers], case: int, sizes: Sequence[int], **settings: Any) -> Makers:
    return {str(size): work(case, **{axis: size}, **settings)["ours"] for size in sizes}


def _growing_outputs(case: int, *, sizes: Sequence[int], **settings: Any) -> Makers:
    """The case is the largest number of outputs; it says nothing that the sizes do not."""
    return {str(size): log_density(size, **settings)["ours"] for size in sizes}


WORKS: Mapping[str, Callable[..., Makers]] = MappingProxyType(
    {
        "log-density": log_density,
        "exact-density": exact_density,
        "step": training_step,
        "draws": draws,
        "quantiles": quantiles,
        "grid": density_grid,
        "fit": whole_fit,
        "large-fit": large_fit,
        "growing-rows": partial(_growing, "rows", log_density),
        "growing-draws": partial(_growing, "size", draws),
        "growing-levels": partial(_growing, "levels", quantiles),
        "growing-members": partial(_growing, "members", log_density),
        "growing-outputs": _growing_outputs,
    }
)
