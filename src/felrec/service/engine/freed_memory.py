"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back_memory() -> None:
    """Called after a start and after saves, which free much: the C library would keep most of it for later."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
        if trim is not None:
            trim(0)
