"""The device that a model is trained and scored on."""

from __future__ import annotations

import re

import torch

from felrec.errors import ConfigError


def pick_device(wanted: str) -> str:
    """A device by name; `auto` uses CUDA if available."""
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "auto":
        return "cuda" if devices else "cpu"
    if not re.fullmatch(r"cpu|cuda(:\d+)?", wanted):
        raise ConfigError(f"--device {wanted}: choose cpu, cuda, cuda:N or auto")
    if wanted != "cpu" and int(wanted.partition(":")[2] or 0) >= devices:
        raise ConfigError(f"--device {wanted}: this machine has no such CUDA device; use --device cpu")
    return wanted
