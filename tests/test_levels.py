"""Many quantiles of each of many laws from a table."""

from __future__ import annotations

import torch

from ogive.nn.levels import jet_of_mixture
from ogive.numerics import logit_of_mixture


def test_the_jet_of_a_mixture_is_its_logit_and_slope():
    """Against the formula in logarithms, and by autograd, in both tails."""
    generator = torch.Generator().manual_seed(0)
    z, log_slopes = torch.randn(2, 3, 50, generator=generator, dtype=torch.float64)
    z = 12.0 * z
    log_weights = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64).log()[:, None]
    t = torch.zeros(50, dtype=torch.float64, requires_grad=True)
    wanted = logit_of_mixture(log_weights, z + log_slopes.exp() * t)
    (slope,) = torch.autograd.grad(wanted.sum(), t)
    logit, log_slope = jet_of_mixture(log_weights, z, log_slopes)
    torch.testing.assert_close(logit, wanted.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(log_slope, slope.log(), rtol=1e-11, atol=1e-11)
