"""The cost and benefit of training on a share of the events: validation against CPU seconds of training.

    python benchmarks/share.py --data ml-1m.parquet --out DIR --seconds 600 [--set width=64 ...]

Each share trains for the same CPU time with a constant learning rate, since a schedule that ends with the budget would
differ between shares. The validation part is evaluated `online` after every epoch, which is not timed, and
training stops at the first epoch that ends past the budget. CPU time and one thread let several shares run side by
side (`--shares 1 & --shares 0.5 &`). Finished shares are skipped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

from machine import describe
from ours import settings_of

from felrec.data.reading.sources import read_log
from felrec.data.split import Split, split_log
from felrec.evaluation.plots import COLOURS, MARKERS, new_figure, save_figure
from felrec.evaluation.report import evaluate
from felrec.model.paper.felrec import FELRec
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer

SHARES = (1.0, 0.5, 0.25, 0.125)
CONSTANT_RATE = ["warmup=0", "schedule=epoch", "epochs=100000"]  # so long a cosine is almost constant


class Clock:
    """Measures CPU seconds and events of training only."""

    def __init__(self) -> None:
        self.seconds, self.events = 0.0, 0
        self.resume()

    def resume(self) -> None:
        """Continue after a pause."""
        self._since = time.process_time()

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Count a step."""
        now = time.process_time()
        self.seconds, self.events, self._since = self.seconds + now - self._since, self.events + events, now

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Exclude the time of validation and its checkpoint."""
        self.resume()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as for felrec train")
    parser.add_argument("--out", type=Path, required=True, help="folder for a JSON per share, share.json and the plot")
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU seconds of training for each share")
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
    """The curve of a share, trained now unless already stored."""
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
    """Train for the budget; returns one point per epoch."""
    settings, training = settings_of([*CONSTANT_RATE, *arguments.set, f"trained_share={share}"])
    model, clock = FELRec(settings, seed=training.seed), Clock()
    points: list[dict[str, float]] = []

    def validate() -> dict[str, float]:
        found = evaluate(model, split, model="felrec-q", part="validation", exclude_seen=training.exclude_seen)
        metrics = {"rank": found.metric("rank"), "hr@10": found.metric("hr@10")}
        points.append({"seconds": clock.seconds, "events": clock.events, **metrics})
        print(f"share {share:g}: " + ", ".join(f"{k} {v:,.4g}" for k, v in points[-1].items()), flush=True)
        return metrics

    trainer = Trainer(model, split.train, training, run, validate, (clock,))
    model.train()
    while clock.seconds < arguments.seconds:
        trainer._train_epoch()
        trainer._end_epoch()
    return points


def plot(summary: dict[str, Any], path: Path) -> None:
    """Plot validation rank and hr@10 against seconds of training, one line per share."""
    figure, axes = new_figure(11, 4.2, columns=2)
    for axis, metric, better in zip(axes, ("rank", "hr@10"), ("lower", "higher"), strict=True):
        for place, curve in enumerate(summary["curves"]):
            seconds, values = zip(*((point["seconds"], point[metric]) for point in curve["points"]), strict=True)
            axis.plot(seconds, values, color=COLOURS[place], marker=MARKERS[place], label=f"{curve['share']:g}")
        axis.set_xlabel("CPU seconds of training")
        axis.set_title(f"validation {metric} ({better} is better)", fontsize=10, loc="left")
    axes[1].legend(title="share learned from", frameon=False, loc="upper right")
    figure.suptitle(f"{summary['data']}, {summary['machine']['threads']} thread(s)", fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)


if __name__ == "__main__":
    main()
