"""Several real processes, started by torchrun, that talk over the loopback interface."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONWARNINGS": "ignore"}


def torchrun(processes: int, *arguments: object) -> list[str]:
    """The command line that starts so many processes."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [*launcher, *map(str, arguments)]


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    given: dict[str, Any] = {"env": {**ENVIRONMENT, **environment}, "text": True, "capture_output": True}
    return subprocess.run(command, timeout=200, check=False, **given)
