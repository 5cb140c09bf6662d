"""A model that is ready to use, with external ids as inputs and outputs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from felrec.abilities import Found, Linking, Representing, Selection
from felrec.data.events import BEGINNING, Events, Rows, Times, Weights
from felrec.data.known import Known
from felrec.data.lazy_polars import pl
from felrec.data.log import InteractionLog
from felrec.data.question_time import question_time
from felrec.data.reading.timestamps import MILLISECONDS_FROM
from felrec.data.seen import PAIR, PairRecords, RejectedItems, SeenPairs, merged, pair_records
from felrec.data.split import Sizes
from felrec.data.vocabulary import Ids, Vocabulary
from felrec.errors import CheckpointError, ConfigError, DataError
from felrec.evaluation.protocols import Progress, replay
from felrec.ids import spelled
from felrec.item_score_cache import ItemScoreCache
from felrec.recommender import Queries, Recommender, Tensors
from felrec.training.checkpoint import MANIFEST, RunDirectory
from felrec.version import __version__

Id = int | str
AT_ONCE = 256  # users whose items are found in one call
_NOTHING = np.zeros(0, dtype=np.int32)


class Scored(NamedTuple):
    """An item or a user, and how well it matches."""

    id: Id
    score: float


@dataclass(repr=False)
class FittedModel:
    """A recommender with its vocabularies, in the state after the last event it observed. Prints as a table.

    Unknown users and items are always accepted: an unknown user has an empty history, and a new item can be
    recommended right after `observe`.
    """

    name: str
    recommender: Recommender
    user_ids: Vocabulary
    item_ids: Vocabulary
    seen: SeenPairs
    exclude_seen: bool
    after_validation: Tensors
    fingerprint: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    clock: float = BEGINNING  # the time of the newest event
    pairs: PairRecords = field(default_factory=lambda: np.zeros(0, PAIR))  # as `seen` before any `observe`
    now: Callable[[], float] = time.time  # the present, in seconds since 1970
    manifest: dict[str, Any] = field(default_factory=dict)  # of its training run; empty: weights without a log
    observed: list[Events] = field(default_factory=list)  # since it was trained or loaded

    def __post_init__(self) -> None:
        self.rejected = RejectedItems(self.pairs)

    def __repr__(self) -> str:
        newest = datetime.fromtimestamp(self.clock, UTC).strftime("%Y-%m-%d %H:%M UTC")
        rows = {
            "model": self.name,
            "parameters": f"{self.recommender.parameter_count():,}",
            "users": f"{len(self.user_ids):,}",
            "items": f"{len(self.item_ids):,}",
            "newest event": newest if len(self.item_ids) else "none",
            "seen items": "left out" if self.exclude_seen else "recommended too",
        }
        return "\n".join(f"{name:<14}{value}" for name, value in rows.items())

    @cached_property
    def _scorer(self) -> ItemScoreCache:
        return ItemScoreCache(self.recommender)  # made when needed: an engine has its own, and may replace the model

    def recommend(
        self,
        user: Id,
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[Id] | None = None,
    ) -> list[Scored]:
        """The best k items for a user, from the whole catalogue or from `candidates`, as of `question_time`."""
        _check(k)
        select = self._selecting(k, exclude_seen, candidates)
        (found,) = self._found(np.array([self._user_row(user)], dtype=np.int32), select)
        return _named(found.rows, found.scores.tolist(), self.item_ids)

    def recommend_many(
        self,
        users: Ids,
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[Id] | None = None,
        progress: Progress | None = None,
    ) -> pl.DataFrame:
        """What `recommend` answers for each of many users: a frame of user, place (1 is best), item and score."""
        _check(k)
        given = pl.Series("user", users)
        rows = self.user_ids.rows(given)
        rows = np.where(rows >= 0, rows, len(self.user_ids)).astype(np.int32)
        select = self._selecting(k, exclude_seen, candidates)
        answers = list[Found]()
        for some in self._in_threads([rows[at : at + AT_ONCE] for at in range(0, len(rows), AT_ONCE)], select):
            answers += some
            if progress:
                progress(len(some))
        return _frame(given, answers, self.item_ids)

    def _selecting(
        self, k: int, exclude_seen: bool | None, candidates: Sequence[Id] | None
    ) -> Callable[[int], Selection]:
        """What may be recommended to the user of a row."""
        items = None if candidates is None else self._known(self.item_ids.rows(list(candidates)))
        excluded = self.exclude_seen if exclude_seen is None else exclude_seen
        leave_out = self.seen if excluded else self.rejected
        return lambda row: Selection(k, leave_out.items(row), items)

    def _found(self, rows: Rows, select: Callable[[int], Selection]) -> list[Found]:
        now = Queries.now(rows, question_time(self.clock, self.now()))
        return self._scorer.best(now, [select(row) for row in rows.tolist()], len(self.item_ids))

    def _in_threads(self, parts: Sequence[Rows], select: Callable[[int], Selection]) -> Iterator[list[Found]]:
        """Answers for each part, in order. Compiled kernels run on all cores; other models use them by themselves."""
        if not self._scorer.prunes:
            yield from (self._found(part, select) for part in parts)
            return
        yield from (self._found(part, select) for part in parts[:1])  # it computes what all others read
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            yield from threads.map(lambda part: self._found(part, select), parts[1:])

    def observe(self, events: InteractionLog | Iterable[tuple[Id, Id, float]]) -> None:
        """Apply a log, or (user, item, timestamp) events in time order; new ids are added.

        Only a log has kinds: `model.observe(read_log(frame, kinds="view=context"))`.
        Late events are treated as happening at the latest known time, as in the service.
        """
        users: Ids
        items: Ids
        weights: Weights | None = None
        if isinstance(events, InteractionLog):
            users, items = events.user_ids.ids(events.users), events.item_ids.ids(events.items)
            stamps, weights = events.times, events.events.weights
        elif rows := list(events):
            users, items, stamps = _columns(rows)
        else:
            return
        stamps = np.maximum(stamps, self.clock)
        block = Events.of(self.user_ids.add(users), self.item_ids.add(items), stamps, weights)
        replay(self.recommender, block)
        self.seen.add(block)
        self.rejected.add(block)
        self.observed.append(block)
        self.clock = max(self.clock, float(stamps[-1]))

    def save(self, path: Path | str) -> None:
        """Write the model as it is now, with all it has observed, into a new run directory: `felrec.load` reads it."""
        path = Path(path)
        if (path / MANIFEST).exists():
            raise CheckpointError(f"{path} already contains a run; choose another folder")
        kept = dict(self.manifest) or _manifest_without_log()
        trained = {key: value for key, value in kept.pop("best").items() if key not in ("folder", "sha256")}
        log = kept["log"] | {"validation_ends": self.clock}
        if self.observed:
            log["fingerprint"] += "+observed"  # so that no log is taken for the one of this state
        changes = {"settings": self.settings, "log": log, "finished": False}
        run = RunDirectory.create(path, {**kept, "model": self.name, "exclude_seen": self.exclude_seen, **changes})
        pairs = merged(self.pairs, pair_records(Events.joined(self.observed)))
        Known(self.user_ids, self.item_ids, pairs).save(path)
        files = {"weights": self.recommender.weights(), "state_validation": self.recommender.state()}
        run.commit("best", "best", files, trained)
        run.update({"finished": True})

    def similar_items(self, item: Id, k: int = 10) -> list[Scored]:
        """The items that the same users take, if the model counts them; otherwise those with the nearest vectors."""
        _check(k)
        row = self._item_row(item)
        linked = self.recommender.linked_items(int(row[0])) if isinstance(self.recommender, Linking) else None
        if linked:
            return _named(linked.rows[:k], linked.scores[:k].tolist(), self.item_ids)
        others = np.setdiff1d(self._catalogue(), row)
        vectors = self._representing().item_vectors(others)
        return self._best(vectors @ self._vector(item, row), others, self.item_ids, k)

    def audience(self, item: Id, k: int = 10) -> list[Scored]:
        """At most k users to show an item to, without those who have it.

        Those who lately took items that the same users take, by the score of the item for them; if the model does not
        count that, those whose vectors match it best.
        """
        _check(k)
        row = self._item_row(item)
        near = self.recommender.users_near_item(int(row[0])) if isinstance(self.recommender, Linking) else None
        users = np.arange(len(self.user_ids), dtype=np.int32) if near is None else near
        owners, owned = self.seen.columns()
        users = np.setdiff1d(users, owners[owned == row])
        if near is None:
            scores = self._representing().user_vectors(users) @ self._vector(item, row)
        else:
            scores = self._scorer.score(Queries.now(users, question_time(self.clock, self.now())), row)[:, 0]
        return self._best(scores, users, self.user_ids, k)

    def _catalogue(self) -> Rows:
        return np.arange(len(self.item_ids), dtype=np.int32)

    def _user_row(self, user: Id) -> int:
        row = int(self.user_ids.rows([user])[0])
        return row if row >= 0 else len(self.user_ids)  # the next free row: a user without a history

    def _item_row(self, item: Id) -> Rows:
        row = self.item_ids.rows([item])
        if row[0] < 0:
            raise DataError(f"item {item!r} has no events yet, so it has no vector; observe one first")
        return row

    def _vector(self, item: Id, row: Rows) -> Tensor:
        vector = self._representing().item_vectors(row)[0]
        if not vector.any():
            raise DataError(f"{self.name} cannot represent item {item!r}, which is not in its training part")
        return vector

    def _known(self, rows: Rows) -> Rows:
        return np.unique(rows[rows >= 0])

    def _representing(self) -> Representing:
        if not isinstance(self.recommender, Representing):
            raise ConfigError(f"{self.name} has no vectors to compare; use a felrec model")
        return self.recommender

    def _best(self, scores: Tensor, rows: Rows, ids: Vocabulary, k: int) -> list[Scored]:
        _check(k)
        best = torch.topk(scores.float(), min(k, int(scores.isfinite().sum())))  # -inf: cannot be represented
        return _named(rows[best.indices.cpu().numpy()], best.values.tolist(), ids)


def _manifest_without_log() -> dict[str, Any]:
    """The manifest of weights that were not trained on one log."""
    sizes = asdict(Sizes(0, 0, 0, 0))
    return {
        "felrec": __version__,
        "training": {"seed": 0},
        "device": "cpu",
        "log": {"fingerprint": "", "events": 0, "sizes": sizes},
        "split": {"train_end": 0, "validation_end": 0},
        "best": {"epoch": 0, "metrics": {}},
    }


def _check(k: int) -> None:
    if k < 1:
        raise ConfigError(f"k={k}: must be at least 1")


def _named(rows: Rows, scores: list[float], ids: Vocabulary) -> list[Scored]:
    names: Sequence[Id] = ids.ids(rows)
    return [Scored(name, score) for name, score in zip(names, scores, strict=True)]


def _frame(users: pl.Series, answers: Sequence[Found], item_ids: Vocabulary) -> pl.DataFrame:
    sizes = np.array([len(found.rows) for found in answers], dtype=np.int64)
    ends = np.cumsum(sizes)
    rows = np.concatenate([_NOTHING, *(found.rows for found in answers)])
    scores = np.concatenate([np.zeros(0, np.float32), *(found.scores for found in answers)])
    return pl.DataFrame(
        {
            "user": users.gather(np.repeat(np.arange(len(answers)), sizes)),
            "place": (np.arange(len(rows)) - np.repeat(ends - sizes, sizes) + 1).astype(np.int32),
            "item": item_ids.series.gather(rows),
            "score": scores.astype(np.float32),
        }
    )


def _columns(rows: list[tuple[Id, Id, float]]) -> tuple[list[Id], list[Id], Times]:
    """Check all events before any is applied, so that an invalid one changes nothing."""
    for row in rows:
        if len(row) != 3 or not all(isinstance(spelled(value), str) for value in row[:2]):
            raise DataError(f"event {row!r}: give (user, item, timestamp), with whole numbers or strings as ids")
    users, items, times = zip(*rows, strict=True)
    try:
        stamps = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("timestamps must be numbers, seconds since 1970") from None
    if not np.isfinite(stamps).all() or (stamps < BEGINNING).any() or (np.diff(stamps) < 0).any():
        raise DataError("timestamps must be finite seconds since 1970 in ascending order; sort them")
    if stamps[-1] >= MILLISECONDS_FROM:
        raise DataError(f"timestamp {stamps[-1]:.0f} is after the year 5000; give seconds, not milliseconds")
    return list(users), list(items), stamps
