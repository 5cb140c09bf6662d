"""Find user, item, time, kind and value among the fields of an event, by the same names as the columns of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

from felrec.data.reading.columns import roles_of

_SHOWN_CHARACTERS, _SHOWN_NAMES = 40, 20  # of ignored fields in a receipt
_CACHED_CHARACTERS = 500  # clients choose the names: only short ones are remembered
OTHERS = "other fields"


class Fields(NamedTuple):
    """The names of the fields of an event; None where there is no such field."""

    user: str | None
    item: str | None
    time: str | None
    kind: str | None
    value: str | None
    ignored: tuple[str, ...]


def fields_of(names: Collection[str], with_kinds: bool = False) -> Fields:
    """Which field is what; kind and value are looked for only if they are asked for.

    >>> fields_of(["user_id", "productId", "price"])
    Fields(user='user_id', item='productId', time=None, kind=None, value=None, ignored=('price',))
    """
    given = tuple(names)
    find = _remembered if sum(map(len, given)) <= _CACHED_CHARACTERS else _find
    return find(given, with_kinds)


def _find(names: tuple[str, ...], with_kinds: bool) -> Fields:
    roles = roles_of(names, with_kinds=with_kinds)
    used = set(roles.values())
    ignored = tuple(name for name in names if name not in used)
    user, item, time, kind, value = map(roles.get, ("user", "item", "time", "kind", "value"))
    return Fields(user, item, time, kind, value, ignored)


_remembered = lru_cache(maxsize=256)(_find)


class IgnoredFields:
    """Counts the fields that were ignored; of many names only some are kept, because clients choose them."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> None:
        """Count the ignored fields of one event."""
        for name in names:
            shown = name[:_SHOWN_CHARACTERS]
            self._counts[shown if shown in self._counts or len(self._counts) < _SHOWN_NAMES else OTHERS] += 1

    def counts(self) -> dict[str, int] | None:
        """In how many events each field was ignored; None if there was none."""
        return dict(self._counts) or None
