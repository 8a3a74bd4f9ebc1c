r"""The readings of members' laws at nodes that the laws share, as the axis of a grid asks for them.

At a node t of law n a line of the soft min-max is :math:`a_{ug} t + b_{ug}(n)`, so its exponential is a product of one
factor for the node and one for the law: sums over units become matrix products, and no exponential is left that
depends on both.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..distribution import Reading
from .factors import Ask, MemberFactor
from .jet import Jet
from .linear import chosen

__all__ = ["on_axis", "product_soft_min_max", "readings_on_axis"]

CELLS_AT_ONCE = 1 << 19
# As long as the exponents of the nodes or those of the laws spread less than this, what underflows would not count.
REACH = 230.0


def readings_on_axis(member: MemberFactor, nodes: Tensor) -> Iterator[tuple[slice, Reading]]:
    """Readings (m, k, rows) at every node (k,), by pieces of the N laws that stay within the cache."""
    for laws, found in on_axis(member, nodes, member.network.link.read):
        yield laws, Reading(*found)


def on_axis(member: MemberFactor, nodes: Tensor, ask: Ask) -> Iterator[tuple[slice, tuple[Tensor, Tensor]]]:
    """What is asked at every node, two answers (m, k, rows), by pieces of the laws."""
    log_weight, stack = _lines_of_one_layer(member), member.network.stack
    width = member.biases[0].shape[:-1].numel() if log_weight is None else log_weight[:, 0].numel()
    step = max(1, CELLS_AT_ONCE // (width * len(nodes)))
    for start in range(0, member.biases[0].shape[-1], step):
        laws = slice(start, start + step)
        biases = [bias[..., laws] for bias in member.biases]

        def rising(point: Tensor, biases: list[Tensor] = biases) -> Jet:
            jet = None
            if log_weight is not None and point.shape[-1] == 1:
                bias = biases[0].unflatten(1, log_weight.shape[1:])
                jet = product_soft_min_max(point[..., 0], bias, log_weight)
            if jet is not None:
                return stack.sharpened(jet, member.at)
            found: Jet = stack(point.expand(-1, -1, biases[0].shape[-1]), biases, member.at)
            return found

        shared = nodes[None, :, None].expand(len(biases[0]), -1, 1)
        yield laws, ask(rising, shared, member.ends)


def _lines_of_one_layer(member: MemberFactor) -> Tensor | None:
    """Log-slopes (f, u, g) of a stack of one soft min-max layer, None of any other stack."""
    layer = member.network.stack.only
    return None if layer is None else chosen(layer.log_weight, member.at).view(-1, *layer.shape[1:])


def product_soft_min_max(nodes: Tensor, bias: Tensor, log_weight: Tensor) -> Jet | None:
    """Jet (f, q, n) of `soft_min_max` at nodes (f, q) for lines with `bias` (f, u, g, n) and `log_weight` (f, u, g).

    None where the products would leave the range of the floats.
    """
    weight = log_weight.exp().mT[:, :, None]
    at_node, at_law = weight * nodes[:, None, :, None], bias.transpose(1, 2)
    top_node, top_law = at_node.amax(3, keepdim=True), at_law.amax(2, keepdim=True)
    least_node, least_law = top_node.amin(1, keepdim=True), top_law.amin(1, keepdim=True)
    exponents = (at_node - top_node, at_law - top_law), (least_node - top_node, least_law - top_law)
    if any(torch.maximum(node.amin(), law.amin()) < -REACH for node, law in exponents):
        return None
    (at_node, at_law), (group_node, group_law) = ((node.exp(), law.exp()) for node, law in exponents)
    total, rise = torch.matmul(torch.cat([at_node, at_node * weight], 2), at_law).chunk(2, 2)
    share = (group_node * group_law).div_(total)
    mass = share.sum(1)
    slope = (share.div_(total).mul_(rise)).sum(1).div_(mass)
    return Jet((least_node + least_law)[:, 0] - mass.log(), slope.log_())
