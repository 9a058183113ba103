"""Memory of deleted records goes back to the system.

The allocator of glibc keeps what is freed below the end of its heap: after retention had deleted 150 MB, 149 MB stayed
with the process. `malloc_trim` returns whole free pages; a hundred megabytes take 30 ms. Allocators of other systems
return them by themselves.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache

WORTH_IT_BYTES = 16 << 20
"""Below this, what is freed is soon used again."""


def give_back() -> None:
    """Return free pages to the system, where the allocator does not do so itself."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
    return found
