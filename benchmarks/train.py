"""Training steps at the paper's sizes: felrec against the authors' code on the same events, in turns.

    python benchmarks/train.py CHECKOUT --data ml-1m.parquet
    python benchmarks/train.py CHECKOUT --data movietweetings.parquet

A lap is one batch. Theirs is timed with its data loading, as in normal use; the time without it is a note.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from figures import Figure, parse, parser_of, report
from machine import BACKWARD, contrast_flop, encoder_flop, peak_flops
from ours import lengths_before, model_before, settings_of, trainer_of
from reference import Reference
from timing import over, race

from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.reading.sources import read_log
from felrec.model.paper.felrec import FELRecSettings

GOALS = {"ml-1m": 3.0, "movietweetings": 8.0}
STARTS = {"ml-1m": 200_000}  # other logs: the middle


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as for felrec train")
    parser.add_argument("--start", type=int, help="the first event trained on; earlier ones fill the histories")
    arguments = parse(parser)
    report([measure(arguments)], arguments.json)


def measure(arguments: argparse.Namespace) -> Figure:
    settings, training = settings_of(arguments.set)
    log, name, size = read_log(arguments.data), arguments.data.stem, training.batch_size
    start = STARTS.get(name, len(log) // 2) if arguments.start is None else arguments.start
    events = log[: start + (arguments.laps + 1) * size]
    model = model_before(events, start, settings)
    trainer = trainer_of(model, events, training)
    reference = Reference.of(arguments.checkout, model, events, training)

    def step(begin: int, end: int) -> int:
        trainer._train_step(TimeBatch(events[begin:end]))
        return end - begin

    theirs = over(reference.train, start, size) if reference else None
    timings = race(over(step, start, size), theirs, arguments.laps)
    notes: dict[str, float | str] = {"events": f"{start + size:,} to {len(events):,}"}
    if reference:
        without = np.array(timings.reference) - reference.loading[1:]
        notes["reference, no loading"] = float(1 / np.median(without))
        notes["ratio, no loading"] = float(np.median(without / timings.ours))
    return Figure.of_race(
        f"train-{name}",
        timings,
        at_least=GOALS.get(name),
        share_of_peak=timings.ours_rate * flop_per_event(events, start + size, settings) / peak_flops(),
        notes=notes,
    )


def flop_per_event(events: Events, start: int, settings: FELRecSettings) -> float:
    """FLOP of forward and backward passes of both sides of each event, without padding."""
    forward = sum(
        encoder_flop(lengths_before(owners, start, len(events), settings.history_length), settings)
        for owners in (events.users, events.items)
    )
    return (1 + BACKWARD) * forward / (len(events) - start) + contrast_flop(settings)


if __name__ == "__main__":
    main()
