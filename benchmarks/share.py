"""What learning from a share of the events costs and gives: validation against seconds of training.

    python benchmarks/share.py --data ml-1m.parquet --out DIR --seconds 1800 [--set width=64 ...]

Each share trains for the same number of seconds with a constant learning rate, since a schedule that ends with the
budget would differ between shares. At even intervals training pauses (the clock too), the cache is filled
anew with the weights as they are, and the validation part is evaluated `online`. Finished shares are skipped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from machine import describe
from ours import settings_of

from felrec.data.sources import read_log
from felrec.data.split import Split, split_log
from felrec.evaluation.plots import COLOURS, MARKERS, _figure, _save
from felrec.evaluation.report import evaluate
from felrec.model.felrec import FELRec
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer

SHARES = (1.0, 0.5, 0.25, 0.125)
CONSTANT_RATE = ["warmup=0", "schedule=epoch", "epochs=100000"]  # far from the end of its cosine, the rate stands still


class PauseTraining(Exception):  # noqa: N818  (not an error)
    """It is time to validate."""


class Clock:
    """Counts seconds of training only, and interrupts the trainer when a moment has come."""

    def __init__(self) -> None:
        self.seconds, self.events, self.until = 0.0, 0, 0.0
        self._since = 0.0

    def start(self, until: float) -> None:
        """Run until so many seconds of training."""
        self.until, self._since = until, time.perf_counter()

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Count a step."""
        now = time.perf_counter()
        self.seconds, self.events, self._since = self.seconds + now - self._since, self.events + events, now
        if self.seconds >= self.until:
            raise PauseTraining

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Nothing: the trainer's own validation is a stub here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as felrec train takes it")
    parser.add_argument("--out", type=Path, required=True, help="folder for one JSON a share, share.json and the plot")
    parser.add_argument("--seconds", type=float, default=1800.0, help="of training for each share")
    parser.add_argument("--points", type=int, default=8, help="validations within that time")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="settings of model and training"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    split = split_log(read_log(arguments.data))
    curves = [curve_of(share, split, arguments) for share in arguments.shares]
    summary = {"data": arguments.data.stem, "machine": describe(), "set": arguments.set, "curves": curves}
    (arguments.out / "share.json").write_text(json.dumps(summary, indent=2) + "\n")
    for ending in ("png", "svg"):
        plot(summary, arguments.out / f"share.{ending}")


def curve_of(share: float, split: Split, arguments: argparse.Namespace) -> dict[str, Any]:
    """The finished curve of a share, trained now unless it is there."""
    file = arguments.out / f"share-{share:g}.json"
    asked = {"share": share, "seconds": arguments.seconds, "set": arguments.set, "log": split.log.fingerprint}
    if file.exists():
        curve: dict[str, Any] = json.loads(file.read_text())
        if {key: curve[key] for key in asked} == asked:
            print(f"share {share:g}: finished before")
            return curve
    folder = arguments.out / f"run-{share:g}"
    shutil.rmtree(folder, ignore_errors=True)
    curve = {**asked, "points": train_share(share, split, arguments, RunDirectory.create(folder, {}))}
    shutil.rmtree(folder)
    file.write_text(json.dumps(curve, indent=2) + "\n")
    return curve


def train_share(share: float, split: Split, arguments: argparse.Namespace, run: RunDirectory) -> list[dict[str, float]]:
    """Train for the budget; one point after each part of it, and one before training."""
    settings, training = settings_of([*CONSTANT_RATE, *arguments.set, f"trained_share={share}"])
    model, clock = FELRec(settings, seed=training.seed), Clock()
    trainer = Trainer(model, split.train, training, run, lambda: {"rank": 1.0}, (clock,))
    points = []
    for part in range(arguments.points + 1):
        if part:
            clock.start(arguments.seconds * part / arguments.points)
            with suppress(PauseTraining):
                trainer.fit()
        metrics = validate(model, split, training.exclude_seen)
        points.append({"seconds": clock.seconds, "events": clock.events, **metrics})
        print(
            f"share {share:g}: " + ", ".join(f"{name} {value:,.4g}" for name, value in points[-1].items()), flush=True
        )
    return points


def validate(model: FELRec, split: Split, exclude_seen: Any) -> dict[str, float]:
    """Rank and hits on validation from a cache that these weights filled; the model is left as it was."""
    before = model.state()
    with torch.no_grad():
        found = evaluate(model, split, model="felrec-q", cache="reset", part="validation", exclude_seen=exclude_seen)
    model.load_state(before)
    return {"rank": found.metric("rank"), "hr@10": found.metric("hr@10")}


def plot(summary: dict[str, Any], path: Path) -> None:
    """Validation rank and hr@10 against seconds of training, one line a share."""
    figure, axes = _figure(11, 4.2, columns=2)
    for axis, metric, better in zip(axes, ("rank", "hr@10"), ("lower", "higher"), strict=True):
        for place, curve in enumerate(summary["curves"]):
            seconds, values = zip(*((point["seconds"], point[metric]) for point in curve["points"]), strict=True)
            axis.plot(seconds, values, color=COLOURS[place], marker=MARKERS[place], label=f"{curve['share']:g}")
        axis.set_xlabel("seconds of training")
        axis.set_title(f"validation {metric} ({better} is better)", fontsize=10, loc="left")
    axes[0].legend(title="share learned from", frameon=False)
    figure.suptitle(f"{summary['data']}, {summary['machine']['threads']} threads", fontsize=11, x=0.01, ha="left")
    _save(figure, path)


if __name__ == "__main__":
    main()
