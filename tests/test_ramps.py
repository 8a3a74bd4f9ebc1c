"""Ramps over features: where they rise, how far, and that ties and constants do no harm."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ogive.nn.ramps import QuantileRamps


def fitted(z: torch.Tensor, n_ramps: int) -> QuantileRamps:
    ramps = QuantileRamps(len(z), n_ramps)
    ramps.fit(z)
    return ramps


def test_ramps_rise_from_quantile_to_quantile():
    z = torch.arange(9.0)[None]
    found = fitted(z, 2)(torch.tensor([[-1.0, 0.0, 1.0, 4.0, 6.0, 8.0, 99.0]]))
    middle = z.div(4).clamp(0, 1).mean(), z.sub(4).div(4).clamp(0, 1).mean()
    assert found[0].tolist() == [-1.0, 0.0, 1.0, 4.0, 6.0, 8.0, 99.0]
    assert (found[1] + middle[0]).tolist() == pytest.approx([0, 0, 0.25, 1, 1, 1, 1])
    assert (found[2] + middle[1]).tolist() == pytest.approx([0, 0, 0, 0, 0.5, 1, 1])


@given(arrays(np.float64, (3, 40), elements=st.floats(-8, 8)), st.integers(1, 9))
@example(np.linspace(0.0, 1e-45, 120).reshape(3, 40), 1)
def test_ramps_are_bounded_rising_and_centred(values, n_ramps):
    z = torch.tensor(values).float()
    ramps = fitted(z, n_ramps)
    found = ramps(z)[3:].view(3, n_ramps, 40)
    assert found.shape[0] * (1 + n_ramps) == ramps.width
    assert (found.abs() <= 1.0).all()
    assert found.mean(-1).abs().max() < 1e-5
    order = z.argsort(-1)[:, None].expand_as(found)
    assert (found.gather(-1, order).diff(dim=-1) >= 0).all()


def test_a_constant_feature_has_flat_ramps_and_none_asked_for_are_none():
    z = torch.full((1, 7), 3.0)
    assert (fitted(z, 4)(torch.tensor([[3.0, 5.0]]))[1:] == 0).all()
    assert torch.equal(fitted(z, 0)(z), z)


def test_steps_of_whole_numbers_are_told_apart():
    """Five values of equal frequency and four ramps: each ramp lights up at one step."""
    z = torch.arange(5.0).repeat(8)[None]
    rise = fitted(z, 4)(torch.arange(5.0)[None])[1:].diff(dim=-1)
    assert torch.allclose(rise, torch.eye(4))


def test_leading_axes_are_members():
    z = torch.randn(2, 3, 10, generator=torch.Generator().manual_seed(0))
    ramps = fitted(z[0], 3)
    assert torch.equal(ramps(z)[1], ramps(z[1]))
