"""Evaluation over the test part: protocol `online` against the authors' own test pass, in turns.

    python benchmarks/online.py CHECKOUT --data ml-1m.parquet

Ours encodes a new query for each event and updates each touched user and item once per block; theirs encodes both
sides of each event once. `--exclude-seen` also excludes items that users already have, which theirs never does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from figures import Figure, parse, parser_of, report
from machine import encoder_flop, peak_flops
from ours import lengths_before, model_before, settings_of
from reference import Reference
from replay import work_per_event
from timing import over, race

from felrec.data.reading.sources import read_log
from felrec.data.split import split_log
from felrec.evaluation.protocols import walk

GOAL = 3.0


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", type=Path, required=True, metavar="LOG", help="a log, as for felrec train")
    parser.add_argument("--events", type=int, default=2048, help="events per lap, from the start of the test part")
    parser.add_argument("--exclude-seen", action="store_true", help="exclude items that users already have")
    arguments = parse(parser)
    report([measure(arguments)], arguments.json)


def measure(arguments: argparse.Namespace) -> Figure:
    settings, training = settings_of(arguments.set)
    split = split_log(read_log(arguments.data))
    start, size = split.validation_end, arguments.events
    events = split.log[: start + (arguments.laps + 1) * size]
    model = model_before(events, start, settings)
    reference = Reference.of(arguments.checkout, model, events, training)

    def step(begin: int, end: int) -> int:
        walk(model, events, begin, end, exclude_seen=arguments.exclude_seen)
        return end - begin

    theirs = over(reference.test, start, size) if reference else None
    timings = race(over(step, start, size), theirs, arguments.laps)
    queries = lengths_before(events.users, start + size, len(events), settings.history_length)
    updates, _ = work_per_event(events, start + size, settings)
    flop = encoder_flop(queries, settings) / len(queries) + updates
    return Figure.of_race(
        f"online-{arguments.data.stem}",
        timings,
        at_least=GOAL,
        share_of_peak=timings.ours_rate * flop / peak_flops(),
        notes={"exclude_seen": arguments.exclude_seen, "events": f"{start + size:,} to {len(events):,}"},
    )


if __name__ == "__main__":
    main()
