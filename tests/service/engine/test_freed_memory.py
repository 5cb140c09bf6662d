"""Memory that is given back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
from felrec.service.engine.freed_memory import give_back_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

many = [bytearray(8_000) for _ in range(10_000)]
last = bytearray(8_000)  # what comes before it on the heap is not given back by itself
del many
before = resident()
give_back_memory()
assert resident() < before - 40_000_000, (before, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give memory back")
def test_what_was_freed_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
