"""Every kind of write: how it travels to the process that leads, what that does, and what its answer is made of.

A new kind is one more class here, and a member of `Command`; `Engine` has a method that does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec

from felrec.answers.types import Erasure, Item, Receipt, Rejected
from felrec.data.events import EventColumns
from felrec.service.engine.click_counts import Counted
from felrec.service.engine.cluster.encoding import encode
from felrec.service.engine.moving import Moved
from felrec.service.engine.refused import Source
from felrec.service.engine.types import Attributes, IdempotencyKey

if TYPE_CHECKING:  # a process that only sends commands needs no model
    from felrec.service.engine.engine import Engine
    from felrec.service.engine.outcomes import Awaited
    from felrec.service.engine.read_only import ReadOnlyEngine


class Post(msgspec.Struct, frozen=True, tag="post"):
    """Events, in time order."""

    events: EventColumns
    key: IdempotencyKey | None = None
    rejected: tuple[Rejected, ...] = ()
    notes: Mapping[str, str] = {}
    source: Source | None = None  # a stream, for which the writer keeps what does not fit

    def do(self, engine: Engine, awaited: Awaited) -> Future[Receipt]:
        """Ingest them."""
        return engine.submit(self.events, self.key, self.rejected, self.notes, awaited=awaited, source=self.source)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> Receipt:
        """The receipt."""
        return msgspec.convert(value, Receipt)


class PutItem(msgspec.Struct, frozen=True, tag="put_item"):
    """Attributes of an item."""

    item: str
    attributes: Attributes

    def do(self, engine: Engine, awaited: Awaited) -> Future[Item]:
        """Set them."""
        return engine.put_item(self.item, self.attributes, awaited=awaited)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> Item:
        """The item as this process sees it now."""
        return engine.item(self.item)


class PutItems(msgspec.Struct, frozen=True, tag="put_items"):
    """Attributes of many items."""

    items: dict[str, Attributes]

    def do(self, engine: Engine, awaited: Awaited) -> Future[dict[str, str]]:
        """Set them, in pieces; it is answered after the last."""
        return engine.put_items(self.items)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> dict[str, str]:
        """The reasons of refusals."""
        return msgspec.convert(value, dict[str, str])


class DeleteItem(msgspec.Struct, frozen=True, tag="delete_item"):
    """An item that goes."""

    item: str

    def do(self, engine: Engine, awaited: Awaited) -> Future[None]:
        """Delete it."""
        return engine.delete_item(self.item, awaited=awaited)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> None:
        """There is nothing to say."""


class EraseUser(msgspec.Struct, frozen=True, tag="erase_user"):
    """A user to erase."""

    user: str

    def do(self, engine: Engine, awaited: Awaited) -> Future[Erasure]:
        """Erase the user, in pieces; it is answered after the last."""
        return engine.erase_user(self.user)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> Erasure:
        """What was erased."""
        return msgspec.convert(value, Erasure)


class Count(msgspec.Struct, frozen=True, tag="count"):
    """Impressions and clicks."""

    counted: Counted

    def do(self, engine: Engine, awaited: Awaited) -> Future[None]:
        """Add them to the note, from which all processes know the total."""
        return engine.count(self.counted, awaited=awaited)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> None:
        """There is nothing to say."""


class Move(msgspec.Struct, frozen=True, tag="move"):
    """Another store, which takes the place of this one."""

    to: Moved

    def do(self, engine: Engine, awaited: Awaited) -> Future[None]:
        """Write nothing more."""
        return engine.move(self.to, awaited=awaited)

    def answer(self, engine: ReadOnlyEngine, value: Any) -> None:
        """There is nothing to say."""


Command = Post | PutItem | PutItems | DeleteItem | EraseUser | Count | Move


class Asked(msgspec.Struct, frozen=True):
    """A command with its id, as it is in the inbox."""

    id: str  # empty: nobody waits
    command: Command


def to_inbox(command: Command, identifier: str = "") -> tuple[str, bytes]:
    """The kind and the body of a command, for `SharedStore.append`."""
    return type(command).__name__, encode(Asked(identifier, command))
