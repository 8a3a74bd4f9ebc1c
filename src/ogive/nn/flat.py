"""All parameters of a network in one buffer a member, so that a training step costs a few long operations.

Clipping, averaging, keeping the best and dropping members then act on rows of one matrix instead of on lists.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

__all__ = ["FlatParameters"]


class FlatParameters:
    """The parameters (m, d, ...) of a module as views of buffers (m, d, size); one buffer for each width d.

    Gradients accumulate into buffers of the same shape. Parameters that no gradient reaches stay as they are.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        self.values: list[Tensor] = []
        self.grads: list[Tensor] = []
        for group in self._groups():
            flat = torch.cat([p.detach().flatten(2) for p in group], 2)
            self.values.append(flat)
            self.grads.append(torch.zeros_like(flat))
        self._attach()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for grad in self.grads:
            grad.zero_()

    def clip(self, largest: float) -> None:
        """Scale each member's gradient down to the norm `largest`; a member's step never depends on another's."""
        square = sum(grad.flatten(1).square().sum(1) for grad in self.grads)
        shrink = (largest / torch.as_tensor(square).sqrt()).clamp(max=1.0)
        for grad in self.grads:
            grad.mul_(shrink[:, None, None])

    def snapshot(self) -> list[Tensor]:
        """A copy of all values."""
        return [value.clone() for value in self.values]

    def load(self, values: list[Tensor]) -> None:
        """Overwrite all values."""
        for mine, given in zip(self.values, values, strict=True):
            mine.copy_(given)

    def keep(self, members: Tensor) -> None:
        """Drop every member but these."""
        self.values = [value[members] for value in self.values]
        self.grads = [grad[members] for grad in self.grads]
        self._attach()

    def _groups(self) -> Iterator[list[nn.Parameter]]:
        for width in sorted({p.shape[1] for p in self.parameters}):
            yield [p for p in self.parameters if p.shape[1] == width]

    def _attach(self) -> None:
        for group, value, grad in zip(self._groups(), self.values, self.grads, strict=True):
            start = 0
            for parameter in group:
                shape = (*value.shape[:2], *parameter.shape[2:])
                size = parameter[0, 0].numel()
                parameter.data = value[..., start : start + size].view(shape)
                parameter.grad = grad[..., start : start + size].view(shape)
                start += size
