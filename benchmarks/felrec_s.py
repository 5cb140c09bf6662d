"""Training and evaluation of FELRec-S: compiled kernels against numpy and torch, in turns in one process.

    python benchmarks/felrec_s.py LOG [--seen 100000] [--blocks 10] [--turns 3] [--with-vectors]

CPU time on one thread. The model observes the first events of the log, learns for a while, and then both sides train on
and evaluate the same following blocks of 256 events from the same state and weights. Observing a block is part of both;
it is also shown alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from felrec.config import TrainingSettings
from felrec.data.events import Events
from felrec.data.reading.sources import read_log
from felrec.evaluation.protocols import replay, walk
from felrec.evaluation.rules import BLOCK
from felrec.model import felrec_s as module
from felrec.model.felrec_s import FELREC_S, FELRecS, felrec_s
from felrec.model.felrec_s_settings import DEFAULT_SIGNALS, FELRecSSettings
from felrec.model.signals.signal_set import SignalName
from felrec.training.optimiser import build_optimiser

SIZE = BLOCK["online"]
WARM_UP = 40  # batches that the model learns from before, so that its weights are not those of a new one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--seen", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--with-vectors", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    events = read_log(arguments.log).events
    added: list[SignalName] = ["vectors"] if arguments.with_vectors else []
    model = felrec_s(FELRecSSettings(signals=[*DEFAULT_SIGNALS, *added]))
    seen, some = events[: arguments.seen], SIZE * arguments.blocks
    replay(model, seen)
    train(model, seen[-SIZE * WARM_UP :])
    start = model.weights(), model.state()
    works: dict[str, Callable[[], object]] = {
        "training": lambda: train(model, events[len(seen) : len(seen) + some]),
        "evaluation": lambda: walk(model, events, len(seen), len(seen) + some),
        "observing alone": lambda: replay(model, events[len(seen) : len(seen) + some]),
    }
    print(f"{model.signals.recent.items.owners} items, {some} events a turn, microseconds of CPU an event")
    for name, work in works.items():
        turns = [
            [lap(model, start, work, compiled) / some for compiled in (False, True)] for _ in range(arguments.turns)
        ]
        before, after = np.median(turns, axis=0) * 1e6
        ratio = np.median([one / other for one, other in turns])
        print(f"{name}: {before:.0f} → {after:.0f}, {ratio:.1f}×; {1e6 / before:.0f} → {1e6 / after:.0f} events/s")


def lap(
    model: FELRecS, start: tuple[dict[str, torch.Tensor], ...], work: Callable[[], object], compiled: bool
) -> float:
    """Seconds of CPU time."""
    model.load_weights(start[0])
    model.load_state(start[1])
    with nullcontext() if compiled else patch.object(module, "library", lambda: None):
        began = time.process_time()
        work()
        return time.process_time() - began


def train(model: FELRecS, events: Events) -> None:
    """One epoch, without `begin_epoch`."""
    settings = TrainingSettings(**{"seed": 0, **FELREC_S.training})
    optimiser, batches = build_optimiser(model.parameters(), settings), model.batches(events, settings, 0)
    for step in range(len(batches)):
        loss = model.loss(batches[step])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(model.parameters(), settings.clip)
        optimiser.step()


if __name__ == "__main__":
    main()
