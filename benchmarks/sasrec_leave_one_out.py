"""SASRec with cross-entropy on MovieLens 1M, leave-one-out, ranked among all items, to compare with published numbers.

    python benchmarks/sasrec_leave_one_out.py --data ml-1m.parquet --out DIR [--set lr=0.002 ...]

The setting is that of SASRec+ in "Turning Dross Into Gold Loss: is BERT4Rec really better than SASRec?" (Klenitskiy and
Vasilev, RecSys 2023): items with fewer than 5 events are dropped, the last event of each user is the test, items that
the user already had are not ranked. The same command resumes an interrupted run. The result is in DIR/result.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from machine import describe
from numpy.typing import NDArray

from felrec.baselines.sasrec import SASRec
from felrec.config import read_pairs
from felrec.data.events import Events, Rows
from felrec.data.leave_one_out import LeaveOneOut, leave_one_out
from felrec.data.log import InteractionLog
from felrec.data.split import Sizes
from felrec.evaluation.metrics import ranks
from felrec.recommender import Queries
from felrec.registry import model_kind
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer

PUBLISHED = {"hr@10": 0.3152, "ndcg@10": 0.1821}  # SASRec+ on ML-1M
LEAST_EVENTS = 5  # per item
SETTINGS: dict[str, Any] = {
    "loss": "cross-entropy",
    "width": 64,
    "layers": 2,
    "heads": 1,
    "feed_forward": 128,
    "history_length": 200,
    "dropout": 0.1,
    "optimizer": "adamw",
    "lr": 0.002,
    "warmup": 0.05,
    "batch_size": 8192,
    "epochs": 50,
}


class Evaluation:
    """Ranks the next item of every user among all items that they do not have yet."""

    def __init__(self, model: SASRec, parts: LeaveOneOut) -> None:
        self.model, self.parts = model, parts

    def __call__(self) -> dict[str, float]:
        """Metrics on validation. The trainer keeps the epoch with the lowest `rank`: here, the highest ndcg@10."""
        metrics = self.metrics([self.parts.train], self.parts.validation)
        return {"rank": 1 - metrics["ndcg@10"], **metrics}

    def metrics(self, known: list[Events], targets: Events) -> dict[str, float]:
        """hr@10 and ndcg@10 of one target per user, after the concatenated `known` parts."""
        self.model.reset()
        for part in known:
            self.model.observe(part)
        users, items = (np.concatenate(columns) for columns in zip(*((p.users, p.items) for p in known), strict=True))
        had = items[np.argsort(users, kind="stable")]
        ends = np.cumsum(np.bincount(users, minlength=int(targets.users.max()) + 1))
        rank = np.concatenate([self._ranks(block, had, np.append(0, ends)) for block in targets.blocks(256)])
        hits = rank < 10
        return {"hr@10": float(hits.mean()), "ndcg@10": float((hits / np.log2(rank + 2)).mean())}

    def _ranks(self, block: Events, had: Rows, bounds: NDArray[np.int64]) -> NDArray[np.float64]:
        scores = self.model.score(Queries.now(block.users, 0.0), np.arange(self.model.items, dtype=np.int32))
        targets = torch.from_numpy(block.items.astype(np.int64))[:, None]
        truth = scores.gather(1, targets)
        for row, user in enumerate(block.users):
            scores[row, torch.from_numpy(had[bounds[user] : bounds[user + 1]].astype(np.int64))] = torch.nan
        rank, _ = ranks(scores.scatter(1, targets, truth), targets[:, 0])
        return rank


class Printed:
    """A listener that prints each epoch."""

    def __init__(self) -> None:
        self.since, self.loss = time.perf_counter(), 0.0

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Store the loss."""
        self.loss = loss if step == 1 else 0.98 * self.loss + 0.02 * loss

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Print the validation metrics and the seconds since the previous validation."""
        now = time.perf_counter()
        shown = ", ".join(f"{name} {metrics[name]:.4f}" for name in ("hr@10", "ndcg@10"))
        print(f"epoch {epoch + 1}: loss {self.loss:.3f}, validation {shown}, {now - self.since:.0f} s", flush=True)
        self.since = now


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="ml-1m as Parquet: user, item, timestamp")
    parser.add_argument("--out", type=Path, required=True, help="the run directory")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of model and training")
    arguments = parser.parse_args()
    frame = pl.read_parquet(arguments.data).filter(pl.len().over("item") >= LEAST_EVENTS)
    log = InteractionLog.from_frame(frame)
    parts = leave_one_out(log.events)
    own, training = model_kind("sasrec").divide({**SETTINGS, **read_pairs(arguments.set)})
    sizes = Sizes(log.n_users, log.n_items, log.n_users, log.n_items)
    model = SASRec(own, training.seed, "cpu", sizes)  # type: ignore[arg-type]
    manifest = {"settings": own.model_dump(), "training": training.model_dump()}
    begun = (arguments.out / "manifest.json").exists()
    run = RunDirectory.open(arguments.out) if begun else RunDirectory.create(arguments.out, manifest)
    evaluation = Evaluation(model, parts)
    if not run.manifest.get("finished"):
        trainer = Trainer(model, parts.train, training, run, evaluation, (Printed(),))
        trainer.resume()
        trainer.fit()
    model.load_weights(run.read("best", "weights"))
    result = {
        "test": evaluation.metrics([parts.train, parts.validation], parts.test),
        "published": PUBLISHED,
        "best": {name: run.manifest["best"][name] for name in ("epoch", "metrics")},
        "events": len(log),
        "parameters": model.parameter_count(),
        "machine": describe(),
        **manifest,
    }
    (arguments.out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result["test"]), "published", json.dumps(PUBLISHED))


if __name__ == "__main__":
    main()
