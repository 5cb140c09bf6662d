"""Pass over a range of a log once, in time order, as a protocol says, and return one row per event.

`online` scores a block and then observes it; `paper` uses the published order; `rules.py` has all of them. The caller
prepares the state of the model at the start (the cache `kept`, `reset` or `empty`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.abilities import Comparing
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending, grouped
from felrec.evaluation.compared import Columns, compared_ranks, require_numbers
from felrec.evaluation.lists import Lists, top_items
from felrec.evaluation.metrics import Floats, event_metrics, ranks, sampled_ranks
from felrec.evaluation.rules import BLOCK, RULES, Protocol, Rules
from felrec.evaluation.seen import Simultaneous, never_ranked
from felrec.recommender import Queries, Recommender, usable

Hidden = tuple[NDArray[np.int64], NDArray[np.int32]]  # pairs (position in a block, item) that are not ranked
Progress = Callable[[int], None]  # may raise Enough


class Enough(Exception):
    """Raised by a `Progress` to end an evaluation early: its results are those of the events so far."""


@dataclass(frozen=True)
class EventResults:
    """One value per evaluated event."""

    events: NDArray[np.int64]  # index in the log
    rank: Floats  # 0 is best, ties count half
    candidates: Floats  # number of items ranked
    first: NDArray[np.bool_]  # the target was not in the catalogue
    item_events: NDArray[np.int64]  # number of earlier events of the target: its age
    metrics: dict[str, Floats]
    lists: Lists = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))  # best items, if asked for
    catalogue: int = 0  # number of items in the last ranking: of all that could be recommended
    unfinished: int = 0  # events that were not evaluated, because there was enough

    def only(self, chosen: NDArray[np.bool_]) -> EventResults:
        """The results of some of the events."""
        return EventResults(
            self.events[chosen],
            self.rank[chosen],
            self.candidates[chosen],
            self.first[chosen],
            self.item_events[chosen],
            {name: values[chosen] for name, values in self.metrics.items()},
            self.lists[chosen],
            self.catalogue,
            self.unfinished,
        )


def replay(
    recommender: Recommender, events: Events, progress: Progress | None = None, block: int = BLOCK["online"]
) -> None:
    """Observe events in blocks of `block`, as if they arrived live; fills the cache with the current weights."""
    for observed in events.blocks(block):
        recommender.observe(usable(recommender, observed))
        if progress:
            progress(len(observed))


def walk(
    recommender: Recommender,
    events: Events,
    start: int,
    stop: int,
    *,
    since: int = 0,
    protocol: Protocol = "online",
    exclude_seen: bool = False,
    block: int | None = None,
    seed: int = 0,
    list_length: int = 0,
    progress: Progress | None = None,
) -> EventResults:
    """Evaluate events[start:stop] in blocks; events[since:start] define the initial catalogue and seen items.

    With a `list_length` the results have the best items of each query.
    """
    rules = RULES[protocol]
    counts = np.zeros(int(events.items.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(counts, events[since:start].shown().items, 1)
    seen = never_ranked(events[since:stop], exclude_seen)
    others = Simultaneous(events[start:stop]) if rules.one_of_simultaneous else None
    size, rows, candidates, end = block or rules.block, [], np.zeros(0, dtype=np.int32), start
    for begin in range(start, stop, size):
        end = min(begin + size, stop)
        some = events[begin:end]
        ages = counts[some.items] + _earlier_in_block(some.items)
        if rules.observe_first:
            np.add.at(counts, some.shown().items, 1)
        every = np.arange(len(counts)) if rules.whole_catalogue else np.flatnonzero(counts)
        candidates = every.astype(np.int32)
        hidden = seen.before(begin - since, end - since) if seen else None
        if others:
            hidden = others.of(begin - start, end - start)
        ranked = _rank_block(recommender, some, candidates, hidden, begin, rules, seed, list_length)
        rows.append(ranked | {"age": ages})
        if not rules.observe_first:
            recommender.observe(usable(recommender, some))
            np.add.at(counts, some.shown().items, 1)
        try:
            if progress:
                progress(len(some))
        except Enough:
            break
    results = replace(_collect(rows, start, end, len(candidates)), unfinished=stop - end)
    evaluated = events[start:end].counts  # what is context, or speaks against an item, is no target
    if rules.only_with_history:
        evaluated &= _with_history(events, start, end)
    return results if evaluated.all() else results.only(evaluated)


def _with_history(events: Events, start: int, stop: int) -> NDArray[np.bool_]:
    """Which of events[start:stop] have an earlier event of their user."""
    _, first = np.unique(events.users[:stop], return_index=True)
    predicted = np.ones(stop, dtype=bool)
    predicted[first] = False
    return predicted[start:]


def _rank_block(
    recommender: Recommender,
    block: Events,
    candidates: Rows,
    hidden: Hidden | None,
    begin: int,
    rules: Rules,
    seed: int,
    list_length: int,
) -> dict[str, NDArray[np.generic]]:
    """Rank a block's targets. The recommender gets queries and candidates, never the targets."""
    column = np.full(int(max(block.items.max(), candidates.max(initial=0))) + 1, -1, dtype=np.int64)
    column[candidates] = np.arange(len(candidates))
    targets = column[block.items]
    first = targets < 0
    if not len(candidates):  # never if the block is observed first
        nothing = np.zeros(len(block))
        empty = np.full((len(block), list_length), -1, dtype=np.int32)
        return {"first": first, "rank": nothing, "ranked": nothing, "sampled": nothing, "top": empty}
    at, numbers = np.where(first, 0, targets), np.arange(begin, begin + len(block))
    left_out = None if hidden is None else _left_out(hidden, column, targets)
    if rules.observe_first:
        scores = recommender.observe_then_score(block, candidates)
    else:
        queries = _queries(block, rules)
        if isinstance(recommender, Comparing) and not list_length:
            compared = compared_ranks(recommender, queries, candidates, at, left_out, numbers, seed)
            if compared is not None:
                return {"first": first, "top": np.zeros((len(block), 0), dtype=np.int32), **compared}
        scores = recommender.score(queries, candidates)
    goals = torch.from_numpy(at).to(scores.device)
    require_numbers(scores.gather(1, goals[:, None]).cpu().numpy())
    if left_out is not None:
        scores = scores.clone()
        scores[torch.from_numpy(left_out[0]), torch.from_numpy(left_out[1])] = torch.nan
    rank, ranked = ranks(scores, goals)
    sampled = sampled_ranks(scores, goals, ranked, numbers, seed)
    top = top_items(scores, candidates, list_length)
    return {"first": first, "rank": rank, "ranked": ranked, "sampled": sampled, "top": top}


def _queries(block: Events, rules: Rules) -> Queries:
    """One query per event, without its target."""
    if rules.sees_block:
        return Queries.before_each(block)
    return Queries(block.users, block.times, Pending.none(len(block)))


def _left_out(hidden: Hidden, column: NDArray[np.int64], targets: NDArray[np.int64]) -> Columns:
    """Query and column of each item to exclude from a ranking; never the target itself."""
    positions, items = hidden
    known = items < len(column)
    columns = np.where(known, column[np.where(known, items, 0)], -1)
    out = (columns >= 0) & (columns != targets[positions])
    return positions[out], columns[out]


def _earlier_in_block(items: Rows) -> NDArray[np.int64]:
    """Number of earlier events of each event's item in the block."""
    order, first = grouped(items)
    earlier = np.empty(len(items), dtype=np.int64)
    earlier[order] = np.arange(len(items)) - first
    return earlier


def _collect(rows: list[dict[str, NDArray[np.generic]]], start: int, stop: int, catalogue: int) -> EventResults:
    def joined(name: str) -> NDArray[np.generic]:
        return np.concatenate([row[name] for row in rows]) if rows else np.zeros(0)

    rank, ranked = joined("rank").astype(np.float64), joined("ranked").astype(np.float64)
    first = joined("first").astype(bool)
    return EventResults(
        events=np.arange(start, stop),
        rank=np.where(first, np.nan, rank),
        candidates=ranked,
        first=first,
        item_events=joined("age").astype(np.int64),
        metrics=event_metrics(rank, ranked, joined("sampled").astype(np.float64), first),
        lists=joined("top").astype(np.int32),
        catalogue=catalogue,
    )
