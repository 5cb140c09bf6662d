"""Run the benchmarks and compare every figure with baseline.json.

    python benchmarks/run.py [CHECKOUT] [--data FOLDER] [--only NAME ...] [--update]

The baseline stores the cost of a figure: calibration loops (run in the same process) per 1,000 events or per start, or
gigabytes. A cost 20 % above the baseline is marked, and the exit code is 1. Without a checkout only felrec is run.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from figures import Figure

HERE = Path(__file__).parent
BASELINE = HERE / "baseline.json"
REGRESSION = 1.2
LOGS = {"train-ml-1m": "ml-1m", "train-movietweetings": "movietweetings", "replay": "ml-1m", "online": "ml-1m"}
WITHOUT_LOG = ("ranking", "load", "memory", "startup")
TINY = ["width=16", "layers=1", "heads=2", "feed_forward=16", "history_length=8", "queue_size=128", "batch_size=64"]
SMOKE = {
    "train": ["--start", "3000"],
    "replay": ["--start", "3000", "--events", "256"],
    "online": ["--events", "256"],
    "ranking": ["--users", "32", "--items", "500"],
    "load": ["--rows", "20000"],
    "memory": ["--rows", "20000", "--steps", "2"],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?", help="a clone of github.com/kweimann/FELRec")
    parser.add_argument("--data", type=Path, help="folder with ml-1m.parquet and movietweetings.parquet")
    parser.add_argument("--only", nargs="+", choices=[*LOGS, *WITHOUT_LOG], default=[*LOGS, *WITHOUT_LOG])
    parser.add_argument("--work", type=Path, help="folder of the synthetic log")
    parser.add_argument("--laps", type=int, help="number of laps per side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to a file")
    parser.add_argument("--update", action="store_true", help="make these figures the baseline")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, only to check that everything runs")
    arguments = parser.parse_args()
    if arguments.smoke and arguments.update:
        parser.error("figures of --smoke mean nothing, so they cannot be the baseline")
    figures, machine = run_all(arguments)
    baseline = json.loads(BASELINE.read_text())
    if arguments.smoke:
        print(f"{len(figures)} figures: {', '.join(figure['name'] for figure in figures)}; all scripts ran")
        return 0
    regressions = print_table(figures, baseline.get("figures", {}))
    if arguments.json:
        results = {"date": date.today().isoformat(), "machine": machine, "figures": figures}
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")
    if arguments.update:
        update(baseline, figures, machine)
        return 0
    return 1 if regressions else 0


def run_all(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All figures, and the machine as reported by the last script."""
    figures, machine = [], {"python": platform.python_version()}
    for name in arguments.only:
        command = command_of(name, arguments)
        if command is None:
            print(f"{name}: skipped, it needs --data with {LOGS[name]}.parquet", file=sys.stderr)
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        figures += result["figures"]
        machine |= result["machine"]
    return figures, machine


def command_of(name: str, arguments: argparse.Namespace) -> list[str] | None:
    """The command line of a script; None if its log is missing."""
    script = name.split("-")[0]
    command = [sys.executable, str(HERE / f"{script}.py"), "--json"]
    if arguments.checkout:
        command.append(str(arguments.checkout))
    if name in LOGS:
        log = arguments.data / f"{LOGS[name]}.parquet" if arguments.data else None
        if log is None or not log.exists():
            return None
        command += ["--data", str(log)]
    if script in ("load", "memory") and arguments.work:
        command += ["--work", str(arguments.work)]
    if arguments.laps:
        command += ["--laps", str(arguments.laps)]
    if arguments.smoke:
        command += [*SMOKE.get(script, []), *(part for pair in TINY for part in ("--set", pair))]
    return command


def print_table(figures: list[dict[str, Any]], baseline: dict[str, float]) -> list[str]:
    """Print one line per figure; return the names of those whose cost rose by more than noise."""
    header = ("figure", "ours", "reference", "ratio", "goal", "of peak", "cost", "baseline", "change")
    print("{:<22} {:>20} {:>12} {:>7} {:>9} {:>8} {:>9} {:>9} {:>7}".format(*header))
    regressions = []
    for figure in (Figure(**entry) for entry in figures):
        before = baseline.get(figure.name)
        change = figure.cost / before if before else None
        mark = ""
        if change is not None and change > REGRESSION:
            regressions.append(figure.name)
            mark = "  REGRESSION"
        elif figure.reached is not None:
            mark = "  reached" if figure.reached else "  goal missed"
        print(
            f"{figure.name:<22} {f'{figure.ours:,.2f} {figure.unit}':>20} {shown(figure.reference, ',.2f'):>12}"
            f" {shown(figure.ratio, '.2f'):>7} {figure.goal:>9} {shown(figure.share_of_peak, '.0%'):>8}"
            f" {figure.cost:>9.3g} {shown(before, '.3g'):>9} {shown(change, '.2f'):>7}{mark}"
        )
    return regressions


def shown(value: float | None, style: str) -> str:
    """Format a number, or a dash for None."""
    return "—" if value is None else format(value, style)


def update(baseline: dict[str, Any], figures: list[dict[str, Any]], machine: dict[str, Any]) -> None:
    """Store the new costs; figures that were not run keep their old costs."""
    costs = {**baseline.get("figures", {}), **{figure["name"]: figure["cost"] for figure in figures}}
    document = {"date": date.today().isoformat(), "machine": machine, "figures": costs}
    BASELINE.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
