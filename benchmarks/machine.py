"""Peak performance of this machine, and the arithmetic of an encoded sequence, for shares of peak.

    python benchmarks/machine.py

The calibration loop is the unit of baseline.json: a figure divided by it, in the same process, is comparable
between days and, roughly, between machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.model.paper.felrec import FELRecSettings

MATRIX = 2048
COPIED = 1 << 28  # bytes: larger than any cache
clock: Callable[[], float] = time.perf_counter  # or time.process_time, by --cpu-time
BACKWARD = 2  # a backward pass is about two forward passes


def best_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The minimum of a few runs: the time on an otherwise idle machine."""
    work()  # warm-up: allocates pages and starts threads
    times = []
    for _ in range(repeats):
        began = clock()
        work()
        times.append(clock() - began)
    return min(times)


@cache
def peak_flops() -> float:
    """FLOP/s of a large matrix product with torch's threads."""
    a, b = torch.ones(MATRIX, MATRIX), torch.ones(MATRIX, MATRIX)
    product = torch.empty(MATRIX, MATRIX)
    return 2 * MATRIX**3 / best_seconds(lambda: torch.mm(a, b, out=product))


@cache
def peak_bandwidth() -> float:
    """Bytes/s of a large copy, read plus written."""
    source, target = torch.ones(COPIED // 4), torch.ones(COPIED // 4)
    return 2 * COPIED / best_seconds(lambda: target.copy_(source))


def calibration_seconds() -> float:
    """Seconds of a short, fixed mix of felrec's operations: matrix products, passes over memory, sorting."""
    return float(np.median([_calibration_loop() for _ in range(3)]))


def _calibration_loop() -> float:
    matrix, product, values, keys = _calibration_data()
    began = clock()
    for _ in range(8):
        torch.mm(matrix, matrix, out=product)
        values.mul_(1.0)
    np.sort(keys)
    return clock() - began


@cache
def _calibration_data() -> tuple[Tensor, Tensor, Tensor, NDArray[np.int64]]:
    keys = np.random.default_rng(0).integers(1 << 40, size=1 << 18)
    data = torch.ones(512, 512), torch.empty(512, 512), torch.ones(1 << 21), keys
    torch.mm(data[0], data[0], out=data[1])
    return data


def encoder_flop(lengths: NDArray[np.integer], settings: FELRecSettings) -> float:
    """FLOP of one forward pass over sequences of these lengths: linear layers and attention.

    >>> round(encoder_flop(np.array([64]), FELRecSettings()) / 1e6)
    57
    """
    width, inner = settings.width, settings.feed_forward
    linear = 2 * (4 * width * width + 2 * width * inner)  # per position: query, key, value, output; feed-forward
    attention = 4 * width  # per pair of positions: two products
    n = lengths.astype(np.float64)
    return float(settings.layers * (linear * n.sum() + attention * (n * n).sum()) + 2 * width * width * len(n))


def contrast_flop(settings: FELRecSettings) -> float:
    """FLOP of the contrast with the queues for one event, forward and backward; the queues get no gradient."""
    return 8.0 * settings.queue_size * settings.width


def describe() -> dict[str, Any]:
    """Threads, measured peaks and the calibration loop."""
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cpu": _cpu_name(),
        "gflops": peak_flops() / 1e9,
        "copy_gb_per_second": peak_bandwidth() / 1e9,
        "calibration_ms": 1e3 * calibration_seconds(),
    }


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown"


def main() -> None:
    for name, value in describe().items():
        print(f"{name:<20} {value:.1f}" if isinstance(value, float) else f"{name:<20} {value}")


if __name__ == "__main__":
    main()
