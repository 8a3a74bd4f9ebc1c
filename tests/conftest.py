"""What holds for every test: no screen, no deadline in property tests, no global state left changed."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("MPLBACKEND", "Agg")
# For tensors as small as these a second thread costs more than it brings, and ten times as much on a shared machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ogive",
    deadline=None,  # a busy machine is not a bug
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,  # explore at home, repeat in CI
)
settings.load_profile("ogive")


def global_state() -> dict[str, object]:
    return {
        "torch default dtype": torch.get_default_dtype(),
        "torch threads": torch.get_num_threads(),
        "torch gradients": torch.is_grad_enabled(),
    }


@pytest.fixture(autouse=True)
def global_state_stays() -> Iterator[None]:
    """The library touches no global state, so no test may end in another one."""
    before = global_state()
    yield
    changed = {name: (before[name], now) for name, now in global_state().items() if now != before[name]}
    torch.set_default_dtype(before["torch default dtype"])
    torch.set_num_threads(before["torch threads"])
    torch.set_grad_enabled(before["torch gradients"])
    assert not changed, f"global state must stay as it was; (before, after) of what changed: {changed}"
