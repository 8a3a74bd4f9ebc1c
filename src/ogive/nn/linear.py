"""Linear maps of many members and outputs at once, and the choice of which to run.

Parameters carry axes (m, d, ...): member of the ensemble, then output of the chain, or (m, 1, ...) where the outputs
share them. A layer runs any slice of both in batched products; rows come last, (f, features, n) with
f = members x outputs. What an output must not know is left out of the products, never multiplied by zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["ALL", "Chosen", "Condition", "FactorLinear", "Run", "SharedLinear", "Step", "chosen", "stepped_linear"]

Run = tuple[slice, slice]
Chosen = tuple[slice | Tensor, slice]
ALL: Run = (slice(None), slice(None))


class Step(NamedTuple):
    """Some rows of a linear map, up to the row `stop`, and how many of the inputs they see: a first part."""

    stop: int
    seen: int


class Condition(NamedTuple):
    """What factors may know of x and the outputs before, as features with rows last.

    Either (f, c, n) with a set for each factor and nothing `seen`, or (m, c, n) shared by the d factors of a member, of
    which factor i sees the first `seen[i]`.
    """

    features: Tensor
    seen: tuple[int, ...] | None = None


def chosen(parameter: Tensor, at: Chosen) -> Tensor:
    """The chosen members and outputs of a parameter (m, d, ...) as one batch axis (f, ...)."""
    return parameter[at].flatten(0, 1)


def stepped_linear(weight: Tensor, bias: Tensor, x: Tensor, steps: Sequence[Step]) -> Tensor:
    """W x + b for weights (m, r, c), of which each step's rows see only a first part of x (m, c, n)."""
    if len(steps) == 1:
        return torch.baddbmm(bias, weight[:, :, : steps[0].seen], x[:, : steps[0].seen])
    found: Tensor = _SteppedLinear.apply(weight, bias, x, steps)  # type: ignore[no-untyped-call]
    return found


class FactorLinear(nn.Module):
    """y = W x + b, a map of its own for each member and output."""

    def __init__(self, factors: tuple[int, int], n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(n_in, 1))
        self.weight = nn.Parameter(_uniform((*factors, n_out, n_in), bound, generator))
        self.bias = nn.Parameter(_uniform((*factors, n_out, 1), bound, generator))

    def forward(self, condition: Condition, at: Chosen = ALL) -> Tensor:
        """(f, n_out, n)."""
        features, seen = condition
        if seen is None:
            return torch.baddbmm(chosen(self.bias, at), chosen(self.weight, at), features)
        weight = self.weight[at]
        n_members, n_outputs, n_out, _ = weight.shape
        steps = [Step((i + 1) * n_out, most) for i, most in enumerate(seen)]
        found = stepped_linear(weight.flatten(1, 2), self.bias[at].flatten(1, 2), features, steps)
        return found.view(n_members * n_outputs, n_out, features.shape[-1])


class SharedLinear(nn.Module):
    """y = W x + b, a map for each member, shared by the outputs, in steps of which each sees more of x.

    `open_to` (m, n_in) closes a member to some of the inputs, where it is zero.
    """

    member_buffers = ("open_to",)
    open_to: Tensor | None

    def __init__(
        self,
        n_members: int,
        n_in: int,
        steps: Sequence[Step],
        generator: torch.Generator,
        open_to: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.steps = list(steps)
        self.register_buffer("open_to", None if open_to is None else open_to[:, None].float())
        n_out = self.steps[-1].stop
        starts = [0, *(step.stop for step in self.steps[:-1])]
        n_seen = [n for (stop, n), start in zip(self.steps, starts, strict=True) for _ in range(start, stop)]
        bound = torch.tensor(n_seen, dtype=torch.float32)[:, None].clamp(min=1.0).rsqrt()
        visible = (torch.arange(n_in) < torch.tensor(n_seen)[:, None]).float()
        self.weight = nn.Parameter(_uniform((n_members, 1, n_out, n_in), 1.0, generator) * bound * visible)
        self.bias = nn.Parameter(_uniform((n_members, 1, n_out, 1), 1.0, generator) * bound)

    def forward(self, x: Tensor, members: slice, n_steps: int, first: int = 0) -> Tensor:
        """What steps `first` to `n_steps` give, (m, n, rows), from as much of x (m or 1, n_in, rows) as they see."""
        start = self.steps[first - 1].stop if first else 0
        steps = [Step(stop - start, seen) for stop, seen in self.steps[first:n_steps]]
        weight, bias = (part[members, 0, start : start + steps[-1].stop] for part in (self.weight, self.bias))
        weight = weight if self.open_to is None else weight * self.open_to[members].to(weight.dtype)
        return stepped_linear(weight, bias, x.expand(len(weight), -1, -1), steps)


class _SteppedLinear(torch.autograd.Function):
    """A product for each step; gradients are written in place, and are zero where nothing is seen."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, x: Tensor, steps: Sequence[Step]) -> Tensor:
        ctx.save_for_backward(weight, x)
        ctx.steps = steps
        found = x.new_empty(len(weight), steps[-1].stop, x.shape[-1])
        for rows, seen in _parts(steps):
            torch.baddbmm(bias[:, rows], weight[:, rows, :seen], x[:, :seen], out=found[:, rows])
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        weight, x = ctx.saved_tensors
        (grad,) = grads
        grad_weight = torch.zeros_like(weight)
        grad_x = torch.zeros_like(x) if ctx.needs_input_grad[2] else None
        for rows, seen in _parts(ctx.steps):
            grad_weight[:, rows, :seen] = torch.bmm(grad[:, rows], x[:, :seen].mT)
            if grad_x is not None:
                grad_x[:, :seen].baddbmm_(weight[:, rows, :seen].mT, grad[:, rows])
        return grad_weight, grad.sum(-1, keepdim=True), grad_x, None


def _parts(steps: Sequence[Step]) -> list[tuple[slice, int]]:
    starts = [0, *(step.stop for step in steps)]
    return [(slice(start, stop), seen) for start, (stop, seen) in zip(starts, steps, strict=False)]


def _uniform(shape: tuple[int, ...], bound: float, generator: torch.Generator) -> Tensor:
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
