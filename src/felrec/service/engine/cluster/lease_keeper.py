"""A thread that keeps the lease of the store, or tries to get it, and looks where the change log is."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from felrec.errors import StoreError
from felrec.store.protocol import SharedStore, Standing

_log = logging.getLogger(__name__)
_BEATS = 4  # in the time of a lease


class LeaseKeeper:
    """`held` and `standing` may be read by any thread; only the member's thread calls the other methods."""

    def __init__(self, store: SharedStore, seconds: float, standing: Standing, beat: Callable[[], None]) -> None:
        """`beat` is called at each beat, also if the store cannot be reached."""
        self._store, self._seconds, self._beat = store, seconds, beat
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._candidate = False
        self._terms = 0  # so far; each has its own name, so that a commit of an earlier one cannot belong to it
        self._until = 0.0  # how long the lease surely lasts, by the clock `time.monotonic`
        self.standing, self.contact = standing, time.monotonic()  # and when it was seen
        self._silent = False  # whether the store did not answer at the last beat
        self._thread = threading.Thread(target=self._run, name="felrec-lease", daemon=True)
        self._thread.start()

    @property
    def name(self) -> str:
        """The name of this process as a candidate."""
        return f"{socket.gethostname()}-{os.getpid()}-{self._terms}"

    @property
    def held(self) -> bool:
        """Whether this process has the lease."""
        return time.monotonic() < self._until

    def stand(self) -> None:
        """Try to get the lease from now on."""
        self._candidate = True

    def withdraw(self) -> None:
        """Leave the lease to others, until `stand` is called."""
        with self._lock:
            self._candidate, self._until = False, 0.0
            self._terms += 1
            with suppress(StoreError):  # then others wait until it ends
                self._store.resign()

    def close(self) -> None:
        """Stop the thread and leave the lease."""
        self._stop.set()
        self._thread.join()
        self.withdraw()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds / _BEATS):
            try:
                self._renew()
                self.standing, self.contact = self._store.standing(), time.monotonic()
                self._tell(None)
            except StoreError as error:
                self._tell(error)
            except Exception:
                _log.exception("the lease was not renewed")
            self._beat()

    def _tell(self, error: StoreError | None) -> None:
        """Log once that the store cannot be reached, and once that it can again."""
        if error is not None and not self._silent:
            _log.warning("the store cannot be reached; it is tried again: %s", error)
        elif error is None and self._silent:
            _log.warning("the store can be reached again")
        self._silent = error is not None

    def _renew(self) -> None:
        with self._lock:
            if self._candidate:
                begun = time.monotonic()
                self._until = begun + self._seconds if self._store.lead(self.name, self._seconds) else 0.0
