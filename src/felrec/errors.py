"""Every error that felrec raises on purpose.

    FelrecError            base: its message is one line that says what is wrong and what to do
    ├── DataError          a log that cannot be used: the file, column or row at fault is named
    ├── FetchError         a dataset that could not be downloaded or does not match its checksum
    ├── ConfigError        a setting that does not exist or does not fit
    ├── CheckpointError    a run directory that is missing, damaged, or does not fit the log
    ├── TrainingError      training that cannot go on, such as a loss that is not finite
    ├── ServiceError       a request that a service refused or did not answer, as `felrec.client` tells it
    ├── StoreError         a store that cannot be used
    │   ├── StoreFull      no room on the disk or within the limit; nothing of the write happened
    │   ├── StoreDamaged   bytes of the file are not those that were written
    │   ├── StoreMismatch  a store of another model, other weights, another width or a newer format
    │   └── StoreBusy      another engine writes to the store
    └── EngineError        what the engine does not take
        ├── InvalidRequest something that was asked for does not fit
        ├── NotFound       a user or an item that the store does not know
        ├── KeyConflict    an idempotency key that came before with other events
        ├── Overloaded     the queue is full; try again after `retry_after` seconds
        └── Stopped        the engine is closing

The command line prints the message alone and exits with code 2.
"""


def how_to_install(extra: str) -> str:
    """What to do where an optional part is missing.

    >>> how_to_install("serve")
    "in the checkout run pip install -c constraints.txt -e '.[serve]'"
    """
    return f"in the checkout run pip install -c constraints.txt -e '.[{extra}]'"


class FelrecError(Exception):
    """Base of all errors that a user can cause and mend."""


class DataError(FelrecError):
    """A log that cannot be used."""


class FetchError(FelrecError):
    """A dataset that could not be downloaded or verified."""


class ConfigError(FelrecError):
    """A setting that does not exist or does not fit."""


class CheckpointError(FelrecError):
    """A run directory that is missing, damaged, or does not fit."""


class TrainingError(FelrecError):
    """Training that cannot go on."""


class ServiceError(FelrecError):
    """A request that a service refused or did not answer: its status (0 for none), code and request id."""

    def __init__(self, message: str, status: int, code: str, request_id: str) -> None:
        super().__init__(message)
        self.status, self.code, self.request_id = status, code, request_id


class StoreError(FelrecError):
    """A store that cannot be used."""


class StoreFull(StoreError):
    """No room; nothing of the write happened."""


class StoreDamaged(StoreError):
    """Bytes of the file are not those that were written."""


class StoreMismatch(StoreError):
    """A store of another model, other weights, another width or a newer format."""


class StoreBusy(StoreError):
    """Another engine writes to the store."""


class EngineError(FelrecError):
    """What the engine does not take."""


class InvalidRequest(EngineError):
    """Something that was asked for does not fit."""


class NotFound(EngineError):
    """A user or an item that the store does not know."""


class KeyConflict(EngineError):
    """An idempotency key that came before with other events."""


class Overloaded(EngineError):
    """The queue is full."""

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class Stopped(EngineError):
    """The engine is closing."""
