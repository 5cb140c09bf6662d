"""Opens the store that has taken the place of another one."""

from __future__ import annotations

from collections.abc import Callable

from felrec import runs
from felrec.errors import StoreBusy, StoreError
from felrec.service.engine.cluster.following import Follower
from felrec.service.engine.moving import Moved, followed_by
from felrec.store.protocol import SharedStore


class NotComplete(StoreError):
    """The store does not have everything yet."""


def open_successor(moved: Moved, before: SharedStore, now: Callable[[], float]) -> tuple[SharedStore, Follower]:
    """The new store with its state, and the weights that it belongs to; NotComplete if it still follows the old one.

    If it is on the server of the store before, it is opened with the password of that.
    """
    there = moved.location.with_password_of(before.place)
    with there.open("read") as seen:  # which does not keep the process away that is to complete it
        followed = followed_by(seen.notes())
    if followed is None or not followed.complete:
        raise NotComplete(
            f"{there.name} lacks the last writes; if felrec replay … --follow does not run, start it again"
        )
    try:
        store = there.open("write", shared=True)
    except StoreBusy as error:
        raise NotComplete(str(error)) from None  # that process is about to end
    try:
        oldest = store.standing().horizon
        follower = Follower(store, runs.load(moved.run), now)
        follower.read_from(oldest - 1)  # a process that was faster may have done writes of this one
    except BaseException:
        store.close()
        raise
    return store, follower
