"""Find the columns of users, items and times, and of kinds and values if there are any."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from felrec.data.events import WEIGHT_COLUMN
from felrec.data.lazy_polars import pl
from felrec.data.reading.where import Condition
from felrec.errors import DataError

# Most specific name first: a table with both `user_id` and `user` has display names in `user`.
_USUAL_NAMES = {
    "user": "userid user uid visitorid customerid customer memberid member accountid reviewerid householdid "
    "clientid viewerid personid username sessionid",
    "item": "itemid item iid movieid movie productid product asin articleid article clickarticleid newsid contentid "
    "documentid trackid songid artistid bookid isbn videoid gameid businessid listingid streamerid streamer sku",
    "time": "timestamp ts time datetime date unixtime unixreviewtime eventtime eventtimestamp clicktimestamp "
    "createdat starttime timestart",
}


_OPTIONAL_NAMES = {
    "kind": "kind eventtype event eventname action actiontype interactiontype interaction behaviortype behavior type",
    "value": "value rating score stars amount quantity seconds duration",
}


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a log."""

    user: str
    item: str
    time: str
    kind: str | None = None  # such as view or purchase
    value: str | None = None  # such as a rating or an amount
    conditions: tuple[str, ...] = ()  # one for each condition of `Wanted`
    weight: str | None = None  # as `felrec export` writes it

    def names(self) -> list[str]:
        """User, item, time, and the others that are there."""
        others = (name for name in (self.kind, self.value, self.weight, *self.conditions) if name is not None)
        return list(dict.fromkeys((self.user, self.item, self.time, *others)))

    def expressions(self, elsewhere: Columns) -> dict[str, pl.Expr]:
        """These columns, taken from a frame where they have the names of `elsewhere`."""
        optional = (role for role in (*_OPTIONAL_NAMES, "weight") if getattr(self, role) is not None)
        roles = (*_USUAL_NAMES, *optional)
        named = {getattr(self, role): pl.col(getattr(elsewhere, role)) for role in roles}
        return named | {mine: pl.col(name) for mine, name in zip(self.conditions, elsewhere.conditions, strict=True)}


@dataclass(frozen=True)
class Wanted:
    """Column names that the caller gave; None where the usual names are searched."""

    user: str | None = None
    item: str | None = None
    time: str | None = None
    where: tuple[Condition, ...] = ()

    def find(self, present: Sequence[str], source: str) -> Columns:
        """Choose from the columns that are present.

        >>> Wanted(item="Film").find(["userId", "Film", "rating", "timestamp:float"], "ratings.csv")
        Columns(user='userId', item='Film', time='timestamp:float', kind=None, value='rating', conditions=(), \
weight=None)
        """
        found = [find_column(role, getattr(self, role), present, source) for role in _USUAL_NAMES]
        if len(set(found)) < len(found):
            raise DataError(f"{source}: user, item and time must be three different columns, not {', '.join(found)}")
        left = [name for name in present if name not in found]
        kind, value = (_search(names, None, left) for names in _OPTIONAL_NAMES.values())
        conditions = tuple(_find_named(condition.column, present, source) for condition in self.where)
        weight = WEIGHT_COLUMN if WEIGHT_COLUMN in left else None
        return Columns(found[0], found[1], found[2], kind, value, conditions, weight)

    def needed(self, present: Sequence[str]) -> list[str]:
        """The columns of a file to read; all if one is missing, which the path of the file may hold.

        >>> Wanted().needed(["price", "user", "item", "time"])
        ['user', 'item', 'time']
        """
        try:
            found = self.find(present, "").names()
        except DataError:
            return list(present)
        return [name for name in present if name in found]

    def time_among(self, present: Sequence[str]) -> str | None:
        """The column of times, if it is there.

        >>> Wanted().time_among(["Created_At"]), Wanted().time_among(["when"]), Wanted(time="when").time_among(["when"])
        ('Created_At', None, 'when')
        """
        return _search(_USUAL_NAMES["time"], self.time, present)


def roles_of(names: Sequence[str], *, with_kinds: bool = False) -> dict[str, str]:
    """Which of these names are those of user, item and time, and of kind and value if they are asked for.

    >>> roles_of(["productId", "user_id", "price"])
    {'user': 'user_id', 'item': 'productId'}
    """
    found = {role: _search(usual, None, names) for role, usual in _USUAL_NAMES.items()}
    if with_kinds:
        left = [name for name in names if name not in found.values()]
        found |= {role: _search(usual, None, left) for role, usual in _OPTIONAL_NAMES.items()}
    return {role: name for role, name in found.items() if name is not None}


def is_value_name(name: str) -> bool:
    """Whether this is a usual name of the value of an event, such as rating."""
    return _plain(name) in _OPTIONAL_NAMES["value"].split()


def _search(usual: str, wanted: str | None, present: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in present else None
    return first_named(usual.split(), present)


def _find_named(name: str, present: Sequence[str], source: str) -> str:
    """The column of a condition, by its name or as the kind or value."""
    usual = _OPTIONAL_NAMES.get(name, _plain(name))
    if found := name if name in present else _search(usual, None, present):
        return found
    raise DataError(f"{source}: no column '{name}' among {_listed(present)}; change --where")


def find_column(role: str, wanted: str | None, present: Sequence[str], source: str) -> str:
    """The column of a role (user, item or time): the wanted one, or one with a usual name."""
    found = _search(_USUAL_NAMES[role], wanted, present)
    if found is not None:
        return found
    missing = f"no column '{wanted}'" if wanted else f"no column of {role}s"
    advice = f"name it with --{role}-col"
    if any(name.replace(".", "", 1).isdigit() for name in present):
        advice = "its first line must name the columns, as in user,item,timestamp"
    raise DataError(f"{source}: {missing} among {_listed(present)}; {advice}")


def _listed(present: Sequence[str]) -> str:
    return repr(", ".join(name or "''" for name in present[:12]) + (", …" if len(present) > 12 else ""))


def item_column(present: Sequence[str]) -> str | None:
    """The column of items in a table about items, by its usual names."""
    return first_named(_USUAL_NAMES["item"].split(), present)


def first_named(names: Iterable[str], present: Sequence[str]) -> str | None:
    """The first column that has one of these names, whatever its capitals and underscores.

    >>> first_named(["itemid", "item"], ["Item", "Item_ID"])
    'Item_ID'
    """
    plain = {_plain(name): name for name in reversed(present)}
    return next((plain[name] for name in names if name in plain), None)


def _plain(name: str) -> str:
    """Normalise a name: `User_ID` and RecBole's `user_id:token` both become `userid`."""
    return "".join(filter(str.isalnum, name.split(":")[0].lower()))
