"""Find the columns of users, items and times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Columns:
    """The names of the three columns of a log."""

    user: str
    item: str
    time: str

    def names(self) -> list[str]:
        """User, item, time."""
        return [self.user, self.item, self.time]


@dataclass(frozen=True)
class Wanted:
    """Column names that the caller gave; None where the usual names are searched."""

    user: str | None = None
    item: str | None = None
    time: str | None = None

    def find(self, present: Sequence[str], source: str) -> Columns:
        """Choose from the columns that are present.

        >>> Wanted(item="Film").find(["userId", "Film", "rating", "timestamp:float"], "ratings.csv")
        Columns(user='userId', item='Film', time='timestamp:float')
        """
        found = [find_column(role, getattr(self, role), present, source) for role in _USUAL_NAMES]
        if len(set(found)) < len(found):
            raise DataError(f"{source}: user, item and time must be three different columns, not {', '.join(found)}")
        return Columns(*found)

    def needed(self, present: Sequence[str]) -> list[str]:
        """The columns of a file to read; all if one of the three is missing, which the path of the file may hold.

        >>> Wanted().needed(["rating", "user", "item", "time"])
        ['user', 'item', 'time']
        """
        found = [_search(role, getattr(self, role), present) for role in _USUAL_NAMES]
        return list(present) if None in found else [name for name in present if name in found]

    def time_among(self, present: Sequence[str]) -> str | None:
        """The column of times, if it is there.

        >>> Wanted().time_among(["Created_At"]), Wanted().time_among(["when"]), Wanted(time="when").time_among(["when"])
        ('Created_At', None, 'when')
        """
        return _search("time", self.time, present)


def _search(role: str, wanted: str | None, present: Sequence[str]) -> str | None:
    if wanted is not None:
        return wanted if wanted in present else None
    return first_named(_USUAL_NAMES[role].split(), present)


def find_column(role: str, wanted: str | None, present: Sequence[str], source: str) -> str:
    """The column of a role (user, item or time): the wanted one, or one with a usual name."""
    found = _search(role, wanted, present)
    if found is not None:
        return found
    missing = f"no column '{wanted}'" if wanted else f"no column of {role}s"
    shown = ", ".join(name or "''" for name in present[:12]) + (", …" if len(present) > 12 else "")
    advice = f"name it with --{role}-col"
    if any(name.replace(".", "", 1).isdigit() for name in present):
        advice = "its first line must name the columns, as in user,item,timestamp"
    raise DataError(f"{source}: {missing} among {shown!r}; {advice}")


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
