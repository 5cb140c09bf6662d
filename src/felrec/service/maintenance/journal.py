"""All events of a store in the order in which they are applied: what a new store is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events
from felrec.data.lazy_polars import pl
from felrec.data.numbering import by_first_appearance
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import Block

Names = Sequence[str | None]  # ids by row; None: erased


@dataclass(frozen=True)
class Journal:
    """Events, and the ids of their rows.

    >>> old = Journal(Events.of([0, 1], [0, 0], [5.0, 9.0]), ["ada", "bob"], ["tea"])
    >>> late = Journal(Events.of([0], [0], [7.0]), ["bob"], ["jam"])
    >>> old.with_more(late).in_time_order().named()
    [('ada', 'tea', 5.0), ('bob', 'jam', 7.0), ('bob', 'tea', 9.0)]
    """

    events: Events
    users: Names
    items: Names

    def __len__(self) -> int:
        return len(self.events)

    def named(self) -> list[tuple[str | None, str | None, float]]:
        """Each event with its ids; for small journals."""
        rows = zip(self.events.users.tolist(), self.events.items.tolist(), self.events.times.tolist(), strict=True)
        return [(self.users[user], self.items[item], time) for user, item, time in rows]

    def only(self, kept: NDArray[np.int64]) -> Journal:
        """The events at these places, in this order."""
        return replace(self, events=self.events[kept])

    def with_more(self, other: Journal) -> Journal:
        """These events, then others: equal ids are the same users and items."""
        users, user_rows = _together(self.users, other.users)
        items, item_rows = _together(self.items, other.items)
        more = replace(other.events, users=user_rows[other.events.users], items=item_rows[other.events.items])
        return Journal(Events.joined([self.events, more]), users, items)

    def in_time_order(self) -> Journal:
        """Sorted by time; events of the same time keep their order."""
        return self.only(np.argsort(self.events.times, kind="stable"))

    def had_before(self, first: int) -> NDArray[np.bool_]:
        """Of each event from place `first` on, whether the events before `first` have it.

        That is one with the same user, item, time and weight. If they have it n times, so are its first n occurrences.

        >>> twice = Journal(Events.of([0, 0, 0], [0, 0, 0], [5.0, 5.0, 5.0]), ["ada"], ["tea"])
        >>> twice.had_before(1).tolist()
        [True, False]
        """
        columns = vars(self.events)  # one that is None becomes a column of nulls, which are equal here, as NaNs are
        frame = pl.DataFrame(columns)
        had = frame[:first].group_by(list(columns)).agg(had=pl.len())
        rest = frame[first:].with_columns(occurrence=pl.int_range(pl.len()).over(list(columns)))
        joined = rest.join(had, on=list(columns), how="left", maintain_order="left", nulls_equal=True)
        return joined.select(pl.col("occurrence") < pl.col("had").fill_null(0)).to_series().to_numpy()

    def had_otherwise(self, first: int) -> NDArray[np.bool_]:
        """Of each event from place `first` on, whether the events before have one of its user, item and time.

        >>> events = Events.of([0, 0, 0], [0, 0, 1], [5.0, 5.0, 5.0], [1, 3, 1])
        >>> Journal(events, ["ada"], ["tea", "jam"]).had_otherwise(1).tolist()
        [True, False]
        """
        columns = ["users", "items", "times"]
        frame = pl.DataFrame({name: vars(self.events)[name] for name in columns})
        had = frame[:first].unique().with_columns(had=True)
        joined = frame[first:].join(had, on=columns, how="left", maintain_order="left", nulls_equal=True)
        return joined["had"].fill_null(False).to_numpy()

    def blocks(self, limits: Limits) -> Iterator[Block]:
        """The blocks of an import into a new store, with rows by first appearance."""
        users, user_rows = by_first_appearance(self.events.users, len(self.users))
        items, item_rows = by_first_appearance(self.events.items, len(self.items))
        names = [self.users[row] for row in user_rows.tolist()], [self.items[row] for row in item_rows.tolist()]
        renumbered = replace(self.events, users=users, items=items)
        cut = (block for chunk in renumbered.blocks(limits.submission) for block in chunk.blocks(limits.block))
        yield from with_new_ids(cut, *names)


def with_new_ids(
    blocks: Iterator[Events], users: Names, items: Names, known: tuple[int, int] = (0, 0)
) -> Iterator[Block]:
    """Blocks with the ids that are new in each. Every id keeps its row, because rows decide the initial vectors.

    The first rows of users and items, as many as `known`, have their ids already.
    """
    known_users, known_items = known
    for events in blocks:
        if len(events):
            new_users, new_items = int(events.users.max()) + 1, int(events.items.max()) + 1
            yield Block(events, users[known_users:new_users], items[known_items:new_items])
            known_users, known_items = max(known_users, new_users), max(known_items, new_items)


def _together(first: Names, second: Names) -> tuple[Names, NDArray[np.int32]]:
    """All ids, and the row of each id of the second among them."""
    rows = {name: row for row, name in enumerate(first) if name is not None}
    new = [name for name in second if name not in rows]
    rows |= {name: row for row, name in enumerate(new, len(first)) if name is not None}
    return [*first, *new], np.array([-1 if name is None else rows[name] for name in second], dtype=np.int32)
