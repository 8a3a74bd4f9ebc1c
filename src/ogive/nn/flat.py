"""All parameters of a network in one buffer a member, so that a training step costs a few long operations.

Clipping, averaging, keeping the best and dropping members then act on rows of one matrix instead of on lists.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["FlatParameters"]


class FlatParameters:
    """The parameters (m, d, ...) of a module as views of buffers (m, d, size); one buffer for each width d.

    Gradients are gathered into buffers of the same shape.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        widths = sorted({p.shape[1] for p in self.parameters})
        self.groups = [[p for p in self.parameters if p.shape[1] == width] for width in widths]
        self.values: list[Tensor] = []
        self.grads: list[Tensor] = []
        for group in self.groups:
            flat = torch.cat([p.detach().flatten(2) for p in group], 2)
            self.values.append(flat)
            self.grads.append(torch.zeros_like(flat))
        self._attach()

    def differentiate(self, loss: Tensor) -> None:
        """Put the gradients of `loss` into the buffers; a parameter it does not depend on gets zero."""
        learnt = [p for p in self.parameters if p.requires_grad]
        found = torch.autograd.grad(loss, learnt, allow_unused=True, materialize_grads=True)
        of = dict(zip(map(id, learnt), found, strict=True))
        for group, grad in zip(self.groups, self.grads, strict=True):
            torch.cat([of.get(id(p), torch.zeros_like(p)).flatten(2) for p in group], 2, out=grad)

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

    def _attach(self) -> None:
        for group, value in zip(self.groups, self.values, strict=True):
            start = 0
            for parameter in group:
                shape = (*value.shape[:2], *parameter.shape[2:])
                size = parameter[0, 0].numel()
                parameter.data = value[..., start : start + size].view(shape)
                start += size
