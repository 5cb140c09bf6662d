"""The result of an evaluation: metrics by partition as JSON, and per event as Parquet."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from felrec.data.split import PARTITIONS, Split
from felrec.errors import ConfigError
from felrec.evaluation.metrics import METRICS, average
from felrec.evaluation.protocols import EventResults, Progress, replay, walk
from felrec.evaluation.rules import BLOCK, RULES, Protocol
from felrec.recommender import Recommender

CacheStart = Literal["kept", "reset", "empty"]
ExcludeSeen = Literal["auto", "yes", "no"]
FEW_REPEATS = 0.01  # below this share of repeated pairs in validation, `auto` excludes seen items


@dataclass(frozen=True)
class Report:
    """The result of one evaluation."""

    model: str
    protocol: Protocol
    cache: CacheStart
    exclude_seen: bool
    block: int  # events that were scored together
    seed: int
    parameters: int
    seconds: float
    represents: frozenset[str]
    partition: NDArray[np.uint8]  # per event, index into PARTITIONS
    results: EventResults

    @property
    def has_usual_blocks(self) -> bool:
        """Whether the block size is the protocol's default."""
        return self.block == BLOCK[self.protocol]

    @property
    def first_events(self) -> float:
        """Share of events whose item was not in the catalogue yet, so that no model could recommend it."""
        return float(self.results.first.mean())

    @property
    def partitions(self) -> dict[str, dict[str, Any]]:
        """Number and share of events and the mean of each metric; None where the model cannot represent the events."""
        can = np.isin(self.partition, [code for code, name in enumerate(PARTITIONS) if name in self.represents])
        rows = {
            name: self._average((self.partition == code) & can, self.partition == code)
            for code, name in enumerate(PARTITIONS)
        }
        rows["total"] = self._average(np.ones(len(can), dtype=bool), counted_as_missed=~can)
        rows["total_representable"] = self._average(can)
        return rows

    def metric(self, name: str, partition: str = "total") -> float:
        """One mean, for example `report.metric("hr@10", "new_items")`; NaN where the value is None."""
        partitions = self.partitions
        if partition not in partitions:
            raise ConfigError(f"unknown partition {partition!r}; use one of {', '.join(partitions)}")
        if name not in partitions[partition]:
            raise ConfigError(f"unknown metric {name!r}; use one of {', '.join(partitions[partition])}")
        value = partitions[partition][name]
        return float("nan") if value is None else float(value)

    def to_json(self) -> dict[str, Any]:
        """The content of `felrec evaluate --json`."""
        return {
            "model": self.model,
            "protocol": self.protocol,
            "cache": self.cache,
            "exclude_seen": self.exclude_seen,
            "block": self.block,
            "seed": self.seed,
            "first_events": self.first_events,
            "parameters": self.parameters,
            "seconds": self.seconds,
            "partitions": self.partitions,
        }

    def write_json(self, path: Path | str) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")

    def write_events(self, path: Path | str) -> None:
        """Write one row per event: index, partition, rank, candidates, hit, age of the item in events, metrics."""
        r = self.results
        columns: dict[str, Any] = {
            "event": r.events,
            "partition": np.array(PARTITIONS)[self.partition],
            "rank": r.rank,
            "candidates": r.candidates,
            "hit": r.metrics["hr@10"] > 0,
            "first": r.first,
            "item_events": r.item_events,
            "normalised_rank": r.metrics["rank"],
            **{name: r.metrics[name] for name in METRICS if name != "rank"},
        }
        pl.DataFrame(columns).write_parquet(path)

    def _average(
        self,
        chosen: NDArray[np.bool_],
        listed: NDArray[np.bool_] | None = None,
        counted_as_missed: NDArray[np.bool_] | None = None,
    ) -> dict[str, Any]:
        metrics = self.results.metrics
        if counted_as_missed is not None:
            metrics = {k: np.where(counted_as_missed, float(k == "rank"), v) for k, v in metrics.items()}
        means = average(metrics, chosen)
        if means is not None:
            return means
        events = 0 if listed is None else int(listed.sum())
        return {"events": events, "share": events / max(1, len(chosen)), **dict.fromkeys(METRICS)}


def evaluate(
    recommender: Recommender,
    split: Split,
    *,
    model: str,
    protocol: Protocol = "online",
    cache: CacheStart = "kept",
    exclude_seen: ExcludeSeen = "auto",
    block: int | None = None,
    seed: int = 0,
    part: Literal["test", "validation"] = "test",
    progress: Progress | None = None,
) -> Report:
    """Evaluate on a part of a split. `kept` uses the recommender's current state, `reset` and `empty` replace it."""
    rules = RULES[protocol]
    if block is not None and rules.fixed_block:
        raise ConfigError(f"--block {block}: protocol {protocol} always uses {rules.block} events; omit --block")
    block = rules.block if block is None else block
    if block < 1:
        raise ConfigError(f"--block {block}: must be at least 1")
    began = time.perf_counter()
    start, stop = split.bounds(part)
    events = split.log.events
    if cache != "kept":
        recommender.reset()
    if cache == "reset":
        replay(recommender, events[:start], progress, block if protocol == "online" else BLOCK["online"])
    leave_out = _excludes_seen(protocol, exclude_seen, split)
    results = walk(
        recommender,
        events,
        start,
        stop,
        since=start if cache == "empty" else 0,
        protocol=protocol,
        exclude_seen=leave_out,
        block=block,
        seed=seed,
        progress=progress,
    )
    return Report(
        model=model,
        protocol=protocol,
        cache=cache,
        exclude_seen=leave_out,
        block=block,
        seed=seed,
        parameters=recommender.parameter_count(),
        seconds=time.perf_counter() - began,
        represents=recommender.represents,
        partition=split.partition(start, stop)[results.events - start],
        results=results,
    )


def events_to_walk(split: Split, cache: CacheStart) -> int:
    """Number of events that `evaluate` processes for the test part, for a progress bar."""
    start, stop = split.bounds("test")
    return stop if cache == "reset" else stop - start


def resolve_exclude_seen(wanted: ExcludeSeen, split: Split) -> bool:
    """Whether to exclude seen items; `auto` does so where users rarely repeat an item."""
    return wanted == "yes" or (wanted == "auto" and split.repeat_share() < FEW_REPEATS)


def _excludes_seen(protocol: Protocol, wanted: ExcludeSeen, split: Split) -> bool:
    fixed = RULES[protocol].exclude_seen
    if fixed is None:
        if protocol == "paper" and wanted == "auto":
            return False  # the published evaluation never excludes items
        return resolve_exclude_seen(wanted, split)
    if wanted != "auto" and (wanted == "yes") != fixed:
        rule = "always" if fixed else "never"
        raise ConfigError(
            f"--exclude-seen {wanted}: protocol {protocol} {rule} excludes seen items; omit --exclude-seen"
        )
    return fixed
