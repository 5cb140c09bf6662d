"""Copy a store as it is into a new one, which may be of another kind."""

from __future__ import annotations

from felrec.data.events import all_rows
from felrec.errors import StoreError
from felrec.service.engine.committer import Progress
from felrec.store.protocol import Base, Batch, Contents, SharedStore, TableSpec

_BLOCKS = 64  # blocks written together


def copy_store(contents: Contents, new: SharedStore, progress: Progress | None = None) -> None:
    """Fill an empty store with all that another one has: nothing is computed, so every bit of the state is the same.

    Only complete is the copy a store: until the end its state includes blocks that its journal lacks.
    """
    if contents.unfinished:
        raise StoreError("an erasure is not finished; open the store with felrec serve, stop it, then try again")
    tables = [TableSpec(name, values.dtype.str, values.shape[1:]) for name, values in contents.state.items()]
    new.begin(
        contents.identity,
        Base(contents.users, contents.items, contents.pairs, contents.clock, tables, all_rows(contents.state)),
    )
    rows = len(contents.users), len(contents.items)
    blocks = contents.event_blocks
    for start in range(0, len(blocks), _BLOCKS):
        piece = blocks[start : start + _BLOCKS]
        new.commit(Batch(*rows, blocks=piece))
        if progress:
            progress(sum(map(len, piece)))
    ahead = new.seconds() - contents.seconds  # of the clock by which answers expire
    answers = [answer._replace(expires=answer.expires + ahead) for answer in contents.answers]
    new.commit(Batch(*rows, answers=answers, attributes=contents.attributes, notes=contents.notes))
    new.save({}, applied=contents.applied)
    copy_inbox(contents, new)


def copy_inbox(contents: Contents, new: SharedStore) -> None:
    """Let the engine that opens the new store find the commands that nobody has done yet, in order."""
    for _, kind, body in contents.inbox:
        new.append(kind, body)
