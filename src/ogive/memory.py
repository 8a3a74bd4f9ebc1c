"""What the C library does with memory that is freed."""

from __future__ import annotations

import torch

__all__ = ["keep_freed_memory"]

# The GNU C library gives larger blocks back to the system whatever happens.
LARGEST_KEPT = 2**25


def keep_freed_memory() -> None:
    """Let the GNU C library keep blocks of up to 32 MB that are freed, instead of giving them back to the system.

    A block that comes from the system costs a page fault for each 4 kB when first written, and every temporary tensor
    of a megabyte would be such a block: a third of the time of a training step. The library raises its threshold to
    the size of any larger block that it sees freed, so one is enough, and it
    is never written to. Elsewhere this does nothing.
    """
    torch.empty(LARGEST_KEPT - 2**14, dtype=torch.uint8)
