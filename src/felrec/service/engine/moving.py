"""A store that takes the place of another one, with other weights: the notes by which all processes agree on it.

The new store follows the old one (`FOLLOWS`) until that has moved (`MOVED`). What was left in the inbox of the old one
is carried to the new one, command by command (`CARRIED`). Once the new one is `complete`, processes go on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import msgspec

from felrec.errors import StoreMoved
from felrec.store.location import StoreLocation
from felrec.store.protocol import MOVED

FOLLOWS = "follows"  # in the new store: what it has of the old one
CARRIED = "carried"  # in the new store: the last command that came from the inbox of the old one


class _Note(msgspec.Struct, frozen=True):
    def note(self) -> str:
        """The text of the note."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> Self:
        """The inverse of `note`."""
        return msgspec.json.decode(text, type=cls)


class Moved(_Note, frozen=True):
    """Where a store went."""

    store: str  # the file of the new one, or the address of its database without a password
    run: str  # with its weights
    namespace: str | None = None  # in that database

    @classmethod
    def to(cls, location: StoreLocation, run: str) -> Moved:
        """To a store and the run that it belongs to."""
        noted = location.without_password()
        return cls(noted.address, run, noted.namespace)

    @property
    def location(self) -> StoreLocation:
        """Where the new store is."""
        return StoreLocation(self.store, self.namespace)


class Followed(_Note, frozen=True):
    """How much of another store a store has."""

    store: str  # the name of the other one
    blocks: int  # of its journal
    own: int  # blocks of its own journal; if it has more, somebody else wrote to it
    change: int = 0  # the newest entry of its change log
    let_go: str = ""  # how often it has let go of users and items, as its note says
    complete: bool = False  # the other one takes no more writes, and this one has all of it


def moved_to(notes: Mapping[str, str]) -> Moved | None:
    """Which store has taken the place of the one with these notes, if any."""
    return Moved.read(notes[MOVED]) if MOVED in notes else None


def followed_by(notes: Mapping[str, str]) -> Followed | None:
    """What the store with these notes has of another one, if it follows one."""
    return Followed.read(notes[FOLLOWS]) if FOLLOWS in notes else None


def refuse_moved(name: str, notes: Mapping[str, str]) -> None:
    """Raise StoreMoved if another store has taken the place of this one."""
    if moved := moved_to(notes):
        raise StoreMoved(f"{name} was left for {moved.location.name}; open that one, with {moved.run}")
