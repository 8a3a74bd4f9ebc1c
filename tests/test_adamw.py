"""The optimiser against torch's own, and that members leave without a trace on the others."""

from __future__ import annotations

import pytest
import torch

from ogive.adamw import AdamW


def walk(values: torch.Tensor, steps: int = 40, keep_at: int | None = None, keep: list[int] | None = None):
    generator = torch.Generator().manual_seed(1)
    grads = torch.randn(steps, *values.shape, generator=generator, dtype=values.dtype)
    value, optimizer = values.clone(), AdamW([values], 4e-3, 0.1)
    for i, grad in enumerate(grads):
        if i == keep_at:
            members = torch.tensor(keep)
            value = value[members]
            optimizer.keep(members)
        chosen = grad if keep_at is None or i < keep_at else grad[members]
        optimizer.step([value], [chosen])
    return value, grads


def test_it_takes_the_steps_of_torch():
    start = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, grads = walk(start)
    parameter = torch.nn.Parameter(start.clone())
    reference = torch.optim.AdamW([parameter], lr=4e-3, weight_decay=0.1)
    for grad in grads:
        parameter.grad = grad
        reference.step()
    assert found.numpy() == pytest.approx(parameter.detach().numpy(), rel=1e-12)


def test_members_that_leave_do_not_move_the_others():
    start = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    whole, _ = walk(start)
    part, _ = walk(start, keep_at=15, keep=[0, 3])
    assert torch.equal(part, whole[[0, 3]])
