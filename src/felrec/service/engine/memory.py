"""The memory of this process, and how much it may use."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def resident_bytes() -> int:
    """Resident memory of this process, or its peak on systems without /proc."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def available_bytes() -> int:
    """The memory of the machine, or of the control group of this process (a container, a service) if that is less."""
    machine = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()
    return min([machine, *_group_limits()])


def _group_limits(root: Path = _CGROUPS, own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """The limits of the control group of this process and of all groups around it, in either version of the system."""
    try:
        groups = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in groups:
        if controllers not in ("", "memory"):
            continue
        top, file = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = top / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(top) and (limit := _read(folder / file)) is not None:
                yield limit


def _read(file: Path) -> int | None:
    """The limit in a file; None if there is none."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # no such file, or the word max
        return None
