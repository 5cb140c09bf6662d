"""Read rows about items: an id and attributes. A bad row is rejected alone, with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pydantic import ValidationError

from felrec.answers.types import Rejected
from felrec.data.item_fields import ATTRIBUTES, item_fields, item_values
from felrec.service.engine.types import Attributes
from felrec.service.http.event_fields import IgnoredFields
from felrec.service.http.row_bodies import as_object
from felrec.service.http.schemas import ItemRow

_ADVICE = "give an object with an id and attributes, such as title and tags"
_TIMES, _TIME = ("available_from", "expires"), "give seconds since 1970, or ISO 8601"
_CACHED_CHARACTERS = 500  # clients choose the names: only short ones are remembered


class ItemRows(NamedTuple):
    """What became of rows about items."""

    items: dict[str, Attributes]
    numbers: dict[str, list[int]]  # the rows of each item; the last one counts
    rejected: list[Rejected]
    ignored: dict[str, int] | None = None  # in how many rows each unknown field was ignored

    def refuse(self, reasons: Mapping[str, str]) -> list[Rejected]:
        """All rejected rows, if items are refused for these reasons."""
        more = [Rejected(row, reason) for item, reason in reasons.items() for row in self.numbers[item]]
        return sorted([*self.rejected, *more], key=lambda one: one.row)


def read_items(rows: Iterable[tuple[int, object]], strict: bool = False) -> ItemRows:
    """The items of numbered rows, of which an item's last one counts; `strict` rejects rows with unknown fields.

    >>> read_items(enumerate([{"item_id": 7, "name": "Tea", "genres": "hot|drink", "price": 2}, {"title": "No id"}]))
    ItemRows(items={'7': Attributes(title='Tea', tags=('hot', 'drink'), available=True, available_from=None, \
expires=None, variant_of=None)}, numbers={'7': [0]}, rejected=[Rejected(row=1, \
reason='id: missing; name it id, or item_id')], ignored={'price': 1})
    """
    read, ignored = ItemRows({}, {}, []), IgnoredFields()
    for number, row in rows:
        try:
            item, attributes, unknown = _read(row, strict)
        except ValueError as error:
            read.rejected.append(Rejected(number, _reason(error)))
        else:
            read.items[item] = attributes
            read.numbers.setdefault(item, []).append(number)
            ignored.add(unknown)
    return read._replace(ignored=ignored.counts())


def _read(row: object, strict: bool) -> tuple[str, Attributes, tuple[str, ...]]:
    row = as_object(row, _ADVICE)
    names = tuple(row)
    fields, unknown = _remembered(names) if sum(map(len, names)) <= _CACHED_CHARACTERS else _find(names)
    if strict and unknown:
        raise ValueError(f"unknown field {unknown[0][:40]!r}; give id, {', '.join(ATTRIBUTES)}")
    given = ItemRow.model_validate(item_values(row, fields))
    return given.id, given.said(), unknown


def _find(names: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    fields = item_fields(names)
    return fields, tuple(name for name in names if name not in fields.values())


_remembered = lru_cache(maxsize=256)(_find)


def _reason(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    field = str(first["loc"][0])
    if first["type"] == "missing":
        return f"{field}: missing; name it id, or item_id"
    return f"{field}: {_TIME if field in _TIMES else first['msg']}"
