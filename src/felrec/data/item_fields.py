"""Find the attributes of items among the columns of a table, or the fields of a row, by their usual names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from felrec.data.reading.columns import first_named, item_column
from felrec.data.tags import BETWEEN_TAGS, TAG_NAMES

_NAMES: Mapping[str, Iterable[str]] = {
    "title": ("title", "name"),
    "tags": TAG_NAMES,
    "available": ("available",),
    "available_from": ("availablefrom",),
    "expires": ("expires",),
    "variant_of": ("variantof",),
}
ATTRIBUTES = tuple(_NAMES)


def item_fields(present: Sequence[str]) -> dict[str, str]:
    """The names of the id and the attributes of items; those that are missing are left out.

    >>> item_fields(["product_id", "Name", "genres", "price"])
    {'id': 'product_id', 'title': 'Name', 'tags': 'genres'}
    """
    found = {"id": item_column(present) or first_named(["id"], present)}
    found |= {role: first_named(names, present) for role, names in _NAMES.items()}
    return {role: name for role, name in found.items() if name is not None}


def item_values(row: Mapping[str, object], fields: Mapping[str, str]) -> dict[str, object]:
    """The id and the attributes of a row, without empty ones; tags may be one text with `|` between them.

    >>> item_values({"item": "tea", "name": "", "tags": "hot | drink"}, {"id": "item", "title": "name", "tags": "tags"})
    {'id': 'tea', 'tags': ['hot', 'drink']}
    """
    given = {role: row.get(name) for role, name in fields.items()}
    given = {role: value for role, value in given.items() if value is not None and value != ""}
    if isinstance(tags := given.get("tags"), str):
        given["tags"] = [tag.strip() for tag in tags.split(BETWEEN_TAGS) if tag.strip()]
    return given
