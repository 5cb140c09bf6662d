"""All errors that felrec raises, as a tree.

    FelrecError            base; the message is one line that says what is wrong and what to do
    ├── DataError          a log cannot be used; the message names the file, column or row at fault
    ├── FetchError         a dataset could not be downloaded or does not match its checksum
    ├── ConfigError        a setting does not exist or is invalid
    ├── CheckpointError    a run directory is missing, damaged, or does not match the log
    ├── TrainingError      training cannot continue, for example because the loss is not finite
    ├── ServiceError       a service rejected a request or did not respond; raised by `felrec.client`
    ├── StoreError         a store cannot be used
    │   ├── StoreFull      the disk is full or the size limit is reached; nothing was written
    │   ├── StoreDamaged   the file is corrupt
    │   ├── StoreMismatch  the store belongs to another model, other weights, another width or a newer format
    │   ├── StoreBusy      another engine is writing to the store
    │   ├── StoreLost      a file of the store was removed or replaced while it was open
    │   ├── StoreUnreachable  the server of the store does not answer at the moment
    │   ├── NotLeader      another process writes to the store now
    │   ├── NotesChanged   an append expected other notes
    │   └── ChangesTrimmed this process is so far behind that it has to load everything again
    └── EngineError        the engine rejected a request
        ├── InvalidRequest a parameter is invalid
        ├── NotFound       the store has no such user or item
        ├── KeyConflict    an idempotency key was reused with different events
        ├── Overloaded     the queue is full; try again after `retry_after` seconds
        ├── Unanswered     the process that writes did not answer in time; try again after `retry_after` seconds
        ├── CapacityReached a limit of users, items or memory is reached; known ones go on
        └── Stopped        the engine is closing

The command line prints the message alone and exits with code 2.
"""


def how_to_install(extra: str) -> str:
    """The instruction to install an extra.

    >>> how_to_install("serve")
    "in the checkout run pip install -c constraints.txt -e '.[serve]'"
    """
    return f"in the checkout run pip install -c constraints.txt -e '.[{extra}]'"


class FelrecError(Exception):
    """Base of all errors that a user can cause and fix."""


class DataError(FelrecError):
    """A log cannot be used."""


class FetchError(FelrecError):
    """A dataset could not be downloaded or verified."""


class ConfigError(FelrecError):
    """A setting does not exist or is invalid."""


class CheckpointError(FelrecError):
    """A run directory is missing, damaged, or does not match."""


class TrainingError(FelrecError):
    """Training cannot continue."""


class ServiceError(FelrecError):
    """A service rejected a request or did not respond (status 0)."""

    def __init__(self, message: str, status: int, code: str, request_id: str) -> None:
        super().__init__(message)
        self.status, self.code, self.request_id = status, code, request_id


class StoreError(FelrecError):
    """A store cannot be used."""


class StoreMissing(StoreError):
    """There is no store at this path or address."""


class StoreFull(StoreError):
    """The disk is full or the size limit is reached; nothing was written."""


class StoreDamaged(StoreError):
    """The file is corrupt."""


class StoreMismatch(StoreError):
    """The store belongs to another model, other weights, another width or a newer format."""


class StoreBusy(StoreError):
    """Another engine is writing to the store."""


class StoreLost(StoreError):
    """A file of the store was removed or replaced while it was open; what was written since may be gone."""


class StoreUnreachable(StoreError):
    """The server of the store does not answer at the moment; it is tried again."""


class NotLeader(StoreError):
    """Another process writes to the store now; nothing was changed."""


class StoreMoved(StoreError):
    """Another store has taken the place of this one; nothing was changed."""


class NotesChanged(StoreError):
    """A note of the store has another value than expected; nothing was changed."""


class ChangesTrimmed(StoreError):
    """The change log does not reach back as far as this reader is behind: it has to load everything again."""


class EngineError(FelrecError):
    """The engine rejected a request."""


class InvalidRequest(EngineError):
    """A parameter is invalid."""


class NotFound(EngineError):
    """The store has no such user or item."""


class KeyConflict(EngineError):
    """An idempotency key was reused with different events."""


class Overloaded(EngineError):
    """The queue is full."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Unanswered(EngineError):
    """The process that writes did not answer in time: what was sent may be stored."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class CapacityReached(EngineError):
    """A limit of users, items or memory is reached: nothing new fits, known users and items go on."""


class Stopped(EngineError):
    """The engine is closing."""
