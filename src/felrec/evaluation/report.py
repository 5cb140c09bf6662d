"""The result of an evaluation: metrics by partition as JSON, and per event as Parquet."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from felrec.data.lazy_polars import pl
from felrec.data.split import PARTITIONS, Split
from felrec.data.tags import ItemTags
from felrec.errors import ConfigError, DataError
from felrec.evaluation.lists import BY_USER, OF_LISTS, list_metrics
from felrec.evaluation.metrics import AT_K, METRICS, Floats, average, metric_at
from felrec.evaluation.protocols import EventResults, Progress, replay, walk
from felrec.evaluation.rules import BLOCK, RULES, Protocol
from felrec.evaluation.text import COLUMNS, aligned, cells, number, share
from felrec.recommender import Recommender

CacheStart = Literal["kept", "reset", "empty"]
ExcludeSeen = Literal["auto", "yes", "no"]
FEW_REPEATS = 0.01  # below this share of repeated pairs in validation, `auto` excludes seen items
PAPER_LABEL = "(published protocol: leaks, do not compare with online)"


@dataclass(frozen=True, repr=False)
class Report:
    """The result of one evaluation; prints as a table."""

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
    k: tuple[int, ...] = ()  # lengths of lists that were measured
    lists: dict[str, float] = field(default_factory=dict)  # metrics of whole lists, by `name@k`

    def __repr__(self) -> str:
        tables = [aligned([("partition", *COLUMNS), *((name, *cells(row)) for name, row in self.shown().items())])]
        if self.k:
            tables.append(aligned([("metric", *(f"@{k}" for k in self.k)), *self.rows_at_k()]))
        return "\n".join((self.headline, *tables))

    @property
    def headline(self) -> str:
        """The conditions of the evaluation, in one line."""
        protocol = f"protocol {self.protocol}" + (f" {PAPER_LABEL}" if self.protocol == "paper" else "")
        if not self.has_usual_blocks:
            protocol += f" in blocks of {self.block}"
        seen = "seen items left out" if self.exclude_seen else "seen items ranked too"
        first, size = f"first events {share(self.first_events)}", f"{self.parameters:,} parameters"
        return ", ".join(
            (f"{self.model}: {protocol}", f"cache {self.cache}", seen, first, size, f"{self.seconds:.1f} s")
        )

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
        return self._by_partition(self.results.metrics)

    def shown(self) -> dict[str, dict[str, Any]]:
        """The partitions of a table: `total_representable` only if it differs from `total`."""
        partitions = self.partitions
        if partitions["total_representable"] == partitions["total"]:
            del partitions["total_representable"]
        return partitions

    def metric(self, name: str, partition: str = "total") -> float:
        """One mean, for example `report.metric("ndcg@20", "new_items")`; NaN where the value is None.

        `recall`, `precision`, `map` and `ndcg` take any cut-off. Metrics of whole lists, such as `coverage@10`, are
        there for the `k` that the evaluation was asked for, and only in total.
        """
        if name in self.lists and partition == "total":
            return self.lists[name]
        found = self._at(name)
        every = {**self.results.metrics, **({} if found is None else {name: found})}
        if name not in every:
            known = [*every, *(f"{kind}@k" for kind in AT_K), *(self.lists if partition == "total" else ())]
            raise ConfigError(f"unknown metric {name!r}; use one of {', '.join(known)}")
        partitions = self._by_partition({name: every[name]})
        if partition not in partitions:
            raise ConfigError(f"unknown partition {partition!r}; use one of {', '.join(partitions)}")
        value = partitions[partition][name]
        return float("nan") if value is None else float(value)

    def rows_at_k(self) -> list[tuple[str, ...]]:
        """A row of a table for each metric with a cut-off, over all events: its name, then its value at each k."""
        kinds = [*AT_K, *(kind for kind in (*BY_USER, *OF_LISTS) if f"{kind}@{self.k[0]}" in self.lists)]
        return [(kind, *(number(self.metric(f"{kind}@{k}")) for k in self.k)) for kind in kinds]

    def to_frame(self) -> pl.DataFrame:
        """One row per partition, one column per metric; those of whole lists are null but in `total`."""
        at_k = [f"{kind}@{k}" for k in self.k for kind in AT_K]
        extra = {name: values for name in at_k if (values := self._at(name)) is not None}
        by_partition = self._by_partition(self.results.metrics | extra)
        by_partition["total"] |= self.lists
        kinds = {name: pl.Int64 if name == "events" else pl.Float64 for name in by_partition["total"]}
        rows = [{"partition": name, **values} for name, values in by_partition.items()]
        return pl.DataFrame(rows, schema={"partition": pl.String, **kinds})

    def to_json(self) -> dict[str, Any]:
        """The content of `felrec evaluate --json`."""
        told = {
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
            **({"unfinished": self.results.unfinished} if self.results.unfinished else {}),
        }
        if self.k:
            at_k = {f"{kind}@{k}": self.metric(f"{kind}@{k}") for kind in AT_K for k in self.k}
            told["k"] = list(self.k)
            told["at_k"] = at_k | {name: None if value != value else value for name, value in self.lists.items()}
        return told

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

    def _at(self, name: str) -> Floats | None:
        return metric_at(name, self.results.rank, self.results.first)

    def _by_partition(self, metrics: dict[str, Floats]) -> dict[str, dict[str, Any]]:
        can = np.isin(self.partition, [code for code, name in enumerate(PARTITIONS) if name in self.represents])
        rows = {
            name: _average(metrics, (self.partition == code) & can, self.partition == code)
            for code, name in enumerate(PARTITIONS)
        }
        missed = {name: np.where(can, values, float(name == "rank")) for name, values in metrics.items()}
        rows["total"] = _average(missed, np.ones(len(can), dtype=bool))
        rows["total_representable"] = _average(metrics, can)
        return rows


def _average(
    metrics: dict[str, Floats], chosen: NDArray[np.bool_], listed: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    means = average(metrics, chosen)
    if means is not None:
        return means
    events = 0 if listed is None else int(listed.sum())
    return {"events": events, "share": events / max(1, len(chosen)), **dict.fromkeys(metrics)}


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
    k: Sequence[int] = (),
    tags: ItemTags | None = None,
    progress: Progress | None = None,
) -> Report:
    """Evaluate on a part of a split. `kept` uses the recommender's current state, `reset` and `empty` replace it.

    With lengths `k` the report has metrics of lists, with `tags` also their diversity.
    """
    rules = RULES[protocol]
    if block is not None and rules.fixed_block:
        raise ConfigError(f"--block {block}: protocol {protocol} always uses {rules.block} events; omit --block")
    block = rules.block if block is None else block
    if block < 1:
        raise ConfigError(f"--block {block}: must be at least 1")
    began = time.perf_counter()
    start, stop = split.bounds(part)
    events = split.log.events
    if not events[start:stop].counts.any():
        raise DataError(f"no event of the {part} part counts; change --kinds")
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
        list_length=max(k, default=0),
        progress=progress,
    )
    tagged = None if tags is None else tags.of(split.log.item_ids)
    lists = list_metrics(results.lists, events[results.events], events[:start], results.catalogue, k, tagged)
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
        k=tuple(k),
        lists=lists,
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
