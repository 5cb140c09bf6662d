"""Read, sort, number and index a log of 25 million rows: felrec against pandas and the authors' session datasets.

    python benchmarks/load.py CHECKOUT [--rows 25000000] [--work DIR]

Both read the same CSV, laid out as MovieLens 25M; ours is also timed on Parquet. Each runs in a separate process.
"""

from __future__ import annotations

import argparse

from figures import Figure, parse, parser_of, report
from logs import add_size_options, synthetic_folder
from machine import calibration_seconds
from timing import Timings
from workers import in_own_process

GOAL_RATIO, GOAL_GB = 10.0, 6.0


def main() -> None:
    parser = parser_of(__doc__)
    parser.set_defaults(laps=1)
    add_size_options(parser)
    arguments = parse(parser)
    report(measure(arguments), arguments.json)


def measure(arguments: argparse.Namespace) -> list[Figure]:
    folder = synthetic_folder(arguments.work, arguments.rows)
    timings, peaks = Timings(), dict.fromkeys(("csv", "parquet", "reference"), 0.0)
    seconds: dict[str, float] = {}

    def run(side: str, *command: object) -> float:
        result = in_own_process(*map(str, command))
        peaks[side] = max(peaks[side], result["peak_gb"])
        seconds[side] = min(seconds.get(side, result["seconds"]), result["seconds"])
        return result["seconds"] / result["rows"]

    for _ in range(arguments.laps):
        timings.calibration.append(calibration_seconds())
        timings.ours.append(run("csv", "load", folder / "ratings.csv"))
        if arguments.checkout:
            timings.reference.append(run("reference", "load-reference", arguments.checkout, folder))
        run("parquet", "load", folder / "ratings.parquet")
    notes: dict[str, float | str] = {"rows": f"{arguments.rows:,}"}
    notes |= {f"seconds, {side}": value for side, value in seconds.items()}
    notes |= {f"peak GB, {side}": value for side, value in peaks.items() if value}
    ours_gb = max(peaks["csv"], peaks["parquet"])
    return [
        Figure.of_race("load", timings, unit="rows/s", at_least=GOAL_RATIO, notes=notes),
        Figure("load-memory", ours_gb, "GB", ours_gb, reference=peaks["reference"] or None, at_most=GOAL_GB),
    ]


if __name__ == "__main__":
    main()
