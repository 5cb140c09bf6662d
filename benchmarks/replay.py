"""Fill the cache from a log without gradients: felrec's replay against the authors' forward pass, in turns.

python benchmarks/replay.py CHECKOUT --data ml-1m.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

from figures import Figure, parse, parser_of, report
from machine import encoder_flop, peak_flops
from ours import lengths_observed, model_before, settings_of
from reference import Reference
from timing import over, race

from felrec.data.events import Events
from felrec.data.reading.sources import read_log
from felrec.evaluation.protocols import replay
from felrec.model.paper.felrec import FELRecSettings

GOAL = 8.0


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as for felrec train")
    parser.add_argument("--start", type=int, default=200_000, help="the first event; earlier ones fill the histories")
    parser.add_argument("--events", type=int, default=2048, help="events per lap")
    arguments = parse(parser)
    report([measure(arguments)], arguments.json)


def measure(arguments: argparse.Namespace) -> Figure:
    settings, training = settings_of(arguments.set)
    start, size = arguments.start, arguments.events
    events = read_log(arguments.data)[: start + (arguments.laps + 1) * size]
    model = model_before(events, start, settings)
    reference = Reference.of(arguments.checkout, model, events, training)

    def step(begin: int, end: int) -> int:
        replay(model, events[begin:end])
        return end - begin

    theirs = over(reference.encode, start, size) if reference else None
    timings = race(over(step, start, size), theirs, arguments.laps)
    flop, sequences = work_per_event(events, start + size, settings)
    return Figure.of_race(
        f"replay-{arguments.data.stem}",
        timings,
        at_least=GOAL,
        share_of_peak=timings.ours_rate * flop / peak_flops(),
        notes={"sequences an event": sequences, "events": f"{start + size:,} to {len(events):,}"},
    )


def work_per_event(events: Events, start: int, settings: FELRecSettings) -> tuple[float, float]:
    """FLOP and encoded sequences per event: each user and item is encoded once per block."""
    sides = [
        lengths_observed(owners, start, len(events), settings.history_length) for owners in (events.users, events.items)
    ]
    count = len(events) - start
    return sum(encoder_flop(side, settings) for side in sides) / count, sum(map(len, sides)) / count


if __name__ == "__main__":
    main()
