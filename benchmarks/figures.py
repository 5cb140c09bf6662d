"""Figures with their goals, which every script measures and prints as text or JSON."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import machine
import torch
from machine import describe
from timing import Timings


@dataclass(frozen=True)
class Figure:
    """One row of docs/performance.md and of baseline.json."""

    name: str
    ours: float
    unit: str
    cost: float  # stored in baseline.json, lower is better: calibration loops, or gigabytes
    reference: float | None = None
    ratio: float | None = None
    at_least: float | None = None  # the goal, for the ratio
    at_most: float | None = None  # the goal, for our figure
    share_of_peak: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_race(cls, name: str, timings: Timings, unit: str = "events/s", **rest: Any) -> Figure:
        """Build from laps that were timed in turns."""
        return cls(name, timings.ours_rate, unit, timings.cost, timings.reference_rate, timings.ratio, **rest)

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.at_least is not None:
            return f"≥ {self.at_least:g}×"
        return f"≤ {self.at_most:g} {self.unit}" if self.at_most is not None else "none"

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None if there is no goal or nothing to compare with."""
        if self.at_least is not None:
            return None if self.ratio is None else self.ratio >= self.at_least
        return None if self.at_most is None else self.ours <= self.at_most

    def lines(self) -> list[str]:
        """The figure as text."""
        verdict = {True: "reached", False: "MISSED", None: "not compared"}[self.reached]
        lines = [self.name, f"  {'ours':<24} {self.ours:,.2f} {self.unit}"]
        if self.reference is not None:
            lines.append(f"  {'reference':<24} {self.reference:,.2f} {self.unit}")
        if self.ratio is not None:
            lines.append(f"  {'ratio':<24} {self.ratio:.2f}×")
        lines.append(f"  {'goal':<24} {self.goal}: {verdict}")
        if self.share_of_peak is not None:
            lines.append(f"  {'share of peak':<24} {100 * self.share_of_peak:.0f} %")
        for name, note in self.notes.items():
            lines.append(f"  {name:<24} {note:,.2f}" if isinstance(note, float) else f"  {name:<24} {note}")
        return lines


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options that all scripts share. Without a checkout only felrec's side is measured."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("checkout", type=Path, nargs="?", help="a clone of github.com/kweimann/FELRec")
    parser.add_argument("--laps", type=int, default=5, help="number of laps per side, timed in turns")
    parser.add_argument("--threads", type=int, help="of torch, for both sides (default: torch's own choice)")
    parser.add_argument("--cpu-time", action="store_true", help="compare CPU time: for a busy machine and one thread")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override the paper's sizes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Read the command line and set the threads."""
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    if arguments.cpu_time:
        machine.clock = time.process_time
    return arguments


def report(figures: Sequence[Figure], as_json: bool) -> None:
    """Print figures and the machine."""
    here = describe()
    if as_json:
        print(json.dumps({"machine": here, "figures": [asdict(figure) for figure in figures]}, indent=2))
        return
    for figure in figures:
        print("\n".join(figure.lines()), end="\n\n")
    print(
        f"{here['cpu']}, {here['threads']} threads, {here['gflops']:.0f} GFLOP/s,"
        f" {here['copy_gb_per_second']:.0f} GB/s copied, torch {here['torch']}"
    )
