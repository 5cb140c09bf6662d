"""The users, items and pairs that a model knows after the validation part of its log."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.seen import PAIR, PairRecords, pair_records
from felrec.data.split import Split
from felrec.data.vocabulary import Vocabulary
from felrec.errors import CheckpointError

_USERS, _ITEMS, _PAIRS = "users.parquet", "items.parquet", "seen.parquet"


class Known(NamedTuple):
    """Ids by row, and the distinct pairs of users and items."""

    user_ids: Vocabulary
    item_ids: Vocabulary
    pairs: PairRecords

    @classmethod
    def of(cls, split: Split) -> Known:
        """Collect from the train and validation parts of a log, not from the test part."""
        log, events = split.log, split.log.events[: split.validation_end]
        users, items = int(events.users.max()) + 1, int(events.items.max()) + 1
        return cls(log.user_ids.prefix(users), log.item_ids.prefix(items), pair_records(events))

    def save(self, folder: Path) -> None:
        """Write three Parquet files."""
        self.user_ids.save(folder / _USERS)
        self.item_ids.save(folder / _ITEMS)
        pl.DataFrame({name: self.pairs[name] for name in PAIR.names or ()}).write_parquet(folder / _PAIRS)

    @classmethod
    def load(cls, folder: Path) -> Known:
        """Read what `save` wrote."""
        return cls(Vocabulary.load(folder / _USERS), Vocabulary.load(folder / _ITEMS), _read_pairs(folder / _PAIRS))


def _read_pairs(path: Path) -> PairRecords:
    try:
        frame = pl.read_parquet(path)
        records = np.empty(len(frame), dtype=PAIR)
        for name in PAIR.names or ():
            records[name] = frame[name].to_numpy()
    except (OSError, pl.exceptions.PolarsError):
        raise CheckpointError(f"{path} is missing, damaged or outdated; restore it or train again") from None
    return records
