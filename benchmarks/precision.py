"""FELRec-Q in bfloat16 against itself in float32, in turns: CPU time of training and replay, and how vectors differ.

    python benchmarks/precision.py --data ml-1m.parquet --threads 1

A lap is one batch of training steps, or as many events replayed. The cosine is that of vectors which both precisions
encode from the same weights and caches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from figures import parse, parser_of
from ours import model_before, settings_of, trainer_of
from torch.nn import functional as F  # noqa: N812
from train import STARTS

from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.reading.sources import read_log
from felrec.evaluation.protocols import replay
from felrec.model.paper.felrec import FELRec

Lap = Callable[[Events], object]
PRECISIONS = ("float32", "bfloat16")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as for felrec train")
    arguments = parse(parser)
    log, size = read_log(arguments.data), settings_of(arguments.set)[1].batch_size
    start = STARTS.get(arguments.data.stem, len(log) // 2)
    events = log[: start + (arguments.laps + 1) * size]
    laps = [events[start + lap * size : start + (lap + 1) * size] for lap in range(arguments.laps + 1)]
    for name, made in (("training", training), ("replay", replaying)):
        runs = [made(events, start, [*arguments.set, *both(precision)]) for precision in PRECISIONS]
        seconds = np.array([[cpu_seconds(run, lap) for run in runs] for lap in laps][1:])  # the first warms up
        rates, ratio = size / np.median(seconds, axis=0), np.median(seconds[:, 0] / seconds[:, 1])
        print(f"{name:<10} {rates[0]:7.0f} → {rates[1]:7.0f} events per CPU second, {ratio:.2f}×")
    short, long = (vectors(model_of(events, start, [*arguments.set, *both(p)]), laps[0]) for p in PRECISIONS[::-1])
    cosine = F.cosine_similarity(short, long, dim=1)
    print(f"1 - cosine of {len(short)} vectors: mean {1 - cosine.mean():.1e}, worst {1 - cosine.min():.1e}")


def both(precision: str) -> list[str]:
    return [f"precision={precision}", f"inference_precision={precision}"]


def model_of(events: Events, start: int, pairs: list[str]) -> FELRec:
    return model_before(events, start, settings_of(pairs)[0])


def training(events: Events, start: int, pairs: list[str]) -> Lap:
    trainer = trainer_of(model_of(events, start, pairs), events, settings_of(pairs)[1])
    return lambda lap: trainer._train_step(TimeBatch(lap))


def replaying(events: Events, start: int, pairs: list[str]) -> Lap:
    model = model_of(events, start, pairs).eval()
    return lambda lap: replay(model, lap)


def vectors(model: FELRec, block: Events) -> torch.Tensor:
    """New vectors of all users and items of a block, as they would be cached."""
    change = model.eval().change(block)
    return torch.cat([torch.from_numpy(change[name][1]) for name in ("user_cache", "item_cache")])


def cpu_seconds(run: Lap, lap: Events) -> float:
    began = time.process_time()
    run(lap)
    return time.process_time() - began


if __name__ == "__main__":
    main()
