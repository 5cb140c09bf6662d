"""One side of a measurement in a separate process, so that its memory can be measured; prints JSON.

python benchmarks/workers.py load FILE
python benchmarks/workers.py load-reference CHECKOUT FOLDER
python benchmarks/workers.py train FILE STEPS [KEY=VALUE ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from logs import fill

from felrec.data.batches import batch_bounds
from felrec.data.reading.sources import read_log
from felrec.data.seen import SeenPairs
from felrec.data.split import split_log
from felrec.data.tables.histories import Histories


def in_own_process(*arguments: str | Path | int) -> dict[str, float]:
    """Run a worker and return its output."""
    command = [sys.executable, __file__, *map(str, arguments)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, float] = json.loads(printed)
    return result


def peak_gb() -> float:
    """Peak memory of this process. Not from getrusage, which includes the parent's memory before exec."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) * 1024 / 1e9


def forget_peak() -> None:
    """Reset the peak."""
    Path("/proc/self/clear_refs").write_text("5")


def load(file: Path) -> dict[str, float]:
    """Read, sort, number and split a log, then build both sides' histories."""
    began = time.perf_counter()
    split = split_log(read_log(file))
    read = time.perf_counter()
    users, items = Histories(64), Histories(64)
    fill(users, split.log.users, split.log.items)
    fill(items, split.log.items, split.log.users)
    done = time.perf_counter()
    return {"seconds": done - began, "reading": read - began, "peak_gb": peak_gb(), "rows": len(split.log)}


def load_reference(checkout: Path, folder: Path) -> dict[str, float]:
    """Read, sort, number and split a log, then build both sides' session datasets."""
    from reference import Authors

    authors = Authors.load(checkout)
    began = time.perf_counter()
    sessions, _ = authors.load_log(folder)
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "peak_gb": peak_gb(), "rows": len(sessions)}


def train(file: Path, steps: int, pairs: list[str]) -> dict[str, float]:
    """The last steps of an epoch, a short validation and the checkpoint, with everything in memory."""
    from ours import model_before, settings_of

    from felrec.evaluation.protocols import walk
    from felrec.training.checkpoint import RunDirectory
    from felrec.training.trainer import Trainer

    split = split_log(read_log(file))
    reading = peak_gb()
    forget_peak()
    fingerprint, repeats = split.log.fingerprint, split.repeat_share()
    pairs_seen = len(SeenPairs.of_events(split.log[: split.validation_end]).columns()[0])
    preparing = peak_gb()
    forget_peak()
    settings, training = settings_of([*pairs, "epochs=1"])
    first = split.train_end - steps * training.batch_size
    model = model_before(split.train, first, settings)

    def validate() -> dict[str, float]:
        found = walk(model, split.log.events, split.train_end, min(split.train_end + 1024, split.validation_end))
        return {"rank": float(found.metrics["rank"].mean())}

    with tempfile.TemporaryDirectory(prefix="felrec-bench-") as folder:
        run = RunDirectory.create(Path(folder), {"log": fingerprint, "repeats": repeats, "pairs": pairs_seen})
        trainer = Trainer(model, split.train, training, run, validate)
        trainer.step = max(
            1, len(batch_bounds(len(split.train), training.batch_size)) - 1 - steps
        )  # as after a resume near the end of the epoch
        trainer.fit()
    return {"peak_gb": peak_gb(), "reading_gb": reading, "preparing_gb": preparing, "rows": len(split.log)}


def main() -> None:
    kind, *rest = sys.argv[1:]
    result: dict[str, Any]
    if kind == "load":
        result = load(Path(rest[0]))
    elif kind == "load-reference":
        result = load_reference(Path(rest[0]), Path(rest[1]))
    else:
        result = train(Path(rest[0]), int(rest[1]), rest[2:])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
