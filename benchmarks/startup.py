"""Time of `import felrec`, `felrec --help` and `felrec inspect` in a new process, and whether they import torch.

python benchmarks/startup.py [--data LOG]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from figures import Figure, parse, parser_of, report
from machine import calibration_seconds

from felrec.data.synthetic import synthetic_log

GOALS = {"startup-import": 1.0, "startup-help": 1.0}  # seconds; inspecting a log must only not import torch
WITH_TORCH = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr)); "


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, metavar="LOG", help="to inspect (default: a small synthetic one)")
    arguments = parse(parser)
    with tempfile.TemporaryDirectory(prefix="felrec-bench-") as folder:
        log = arguments.data or small_log(Path(folder) / "log.csv")
        report(measure(arguments, log), arguments.json)


def measure(arguments: argparse.Namespace, log: Path) -> list[Figure]:
    cli = "import sys; from felrec.cli import main; sys.argv = {}; main()"
    cases = {
        "import": "import felrec",
        "help": cli.format(["felrec", "--help"]),
        "inspect": cli.format(["felrec", "inspect", str(log)]),
    }
    return [figure(f"startup-{name}", code, arguments.laps) for name, code in cases.items()]


def figure(name: str, code: str, laps: int) -> Figure:
    """The median of new processes; the time of python itself is a note."""
    seconds, bare, calibration = [], [], []
    for _ in range(laps):
        calibration.append(calibration_seconds())
        bare.append(run("pass")[0])
        seconds.append(run(code)[0])
    median = float(np.median(seconds))
    return Figure(
        name,
        median,
        "s",
        float(np.median(np.divide(seconds, calibration))),
        at_most=GOALS.get(name),
        notes={"python alone": float(np.median(bare)), "imports torch": run(WITH_TORCH + code)[1].endswith("True")},
    )


def run(code: str) -> tuple[float, str]:
    """Seconds of a new process, and its stderr."""
    began = time.perf_counter()
    finished = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return time.perf_counter() - began, finished.stderr.strip()


def small_log(path: Path) -> Path:
    events = synthetic_log(2_000, seed=0).log.events
    columns = {"user": events.users, "item": events.items, "timestamp": events.times.astype(np.int64)}
    pl.DataFrame(columns).write_csv(path)
    return path


if __name__ == "__main__":
    main()
