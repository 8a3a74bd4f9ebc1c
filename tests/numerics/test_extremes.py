"""The log-space functions against mpmath, far beyond where a plain formula holds; `generate.py` made the table."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch.nn.functional import logsigmoid

from ogive.nn.softminmax import soft_min_max
from ogive.numerics import log1mexp, log_logistic_difference, logit_of_mixture

HERE = Path(__file__).parent
TABLES = json.loads((HERE / "tables.json").read_text())


def columns(name: str) -> tuple[torch.Tensor, ...]:
    return torch.tensor(TABLES[name], dtype=torch.float64).unbind(1)


def test_log1mexp_at_both_ends():
    log_p, wanted = columns("log1mexp")
    torch.testing.assert_close(log1mexp(log_p), wanted, rtol=4e-16, atol=0)


def test_log1mexp_in_float32():
    log_p = columns("log1mexp")[0]
    log_p = log_p[log_p < -1e-35].float()  # what float32 can hold
    torch.testing.assert_close(log1mexp(log_p).double(), log1mexp(log_p.double()), rtol=3e-7, atol=1e-38)


def test_log1mexp_at_the_ends_themselves():
    ends = torch.tensor([0.0, -torch.inf], dtype=torch.float64)
    assert log1mexp(ends).tolist() == [-torch.inf, 0.0]


def test_log_logistic_difference_far_out():
    upper, lower, wanted = columns("log_logistic_difference")
    torch.testing.assert_close(log_logistic_difference(upper, lower), wanted, rtol=1e-15, atol=1e-15)


def test_log_logistic_difference_is_better_than_the_plain_one():
    upper, lower, wanted = columns("log_logistic_difference")
    plain = (upper.sigmoid() - lower.sigmoid()).log()
    assert (plain - wanted).abs().max() > 1.0  # the table does reach where it matters


def test_log_logistic_difference_to_infinity():
    z = torch.tensor([-5.0, 0.0, 41.0], dtype=torch.float64)
    infinity = torch.full_like(z, torch.inf)
    assert torch.equal(log_logistic_difference(infinity, z), logsigmoid(-z))
    assert torch.equal(log_logistic_difference(z, -infinity), logsigmoid(z))
    assert log_logistic_difference(infinity, -infinity).tolist() == [0.0] * 3
    assert log_logistic_difference(z, z).tolist() == [-torch.inf] * 3


@pytest.mark.parametrize("row", range(len(TABLES["logit_of_mixture"])))
def test_logit_of_mixture_in_both_tails(row):
    share, logits, (wanted,) = TABLES["logit_of_mixture"][row]
    log_share = torch.tensor(share, dtype=torch.float64).log()
    found = logit_of_mixture(log_share, torch.tensor(logits, dtype=torch.float64))
    assert found.item() == pytest.approx(wanted, rel=1e-14, abs=4e-16)


def test_logit_of_mixture_reduces_the_axes_it_is_told():
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    even = torch.full((2, 1, 4), 1.0 / 8.0, dtype=torch.float64).log()
    found = logit_of_mixture(even, logits, (0, 2))
    torch.testing.assert_close(found.sigmoid(), logits.sigmoid().mean((0, 2)), rtol=1e-14, atol=0)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_soft_min_max_over_forty_powers_of_e(dtype, gradients):
    """The rounding of a line l moves the jet by a few units in the last place of the largest |l|, and no more."""
    unit = torch.finfo(dtype).eps
    for row in TABLES["soft_min_max"]:
        log_weight = torch.tensor(row["log_weight"], dtype=dtype).mT[None]
        bias = torch.tensor(row["bias"], dtype=dtype).mT[None, ..., None]
        with torch.set_grad_enabled(gradients):
            value, log_slope = soft_min_max(torch.full((1, 1, 1), row["point"], dtype=dtype), bias, log_weight)
        longest = (log_weight.double().exp() * row["point"] + bias[..., 0].double()).abs().max().item()
        steepness = log_weight.abs().max().item()
        rounding = 4.0 * unit * (1.0 + longest * (1.0 + steepness))
        assert abs(value.item() - row["value"]) <= rounding, row
        flattest, steepest = log_weight.min().item(), log_weight.max().item()
        assert flattest - 8 * unit * steepness <= log_slope.item() <= steepest + 8 * unit * steepness, row
        if rounding < 0.1:
            assert abs(log_slope.item() - row["log_slope"]) <= 2.0 * rounding + 4.0 * unit * steepness, row


def test_the_script_makes_the_table():
    pytest.importorskip("mpmath")
    spec = importlib.util.spec_from_file_location("generate", HERE / "generate.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name in TABLES:
        made = json.loads(json.dumps(getattr(script, name)()))
        assert made == TABLES[name], name
