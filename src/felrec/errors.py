"""Every error that felrec raises on purpose.

    FelrecError            base: its message is one line that says what is wrong and what to do
    ├── DataError          a log that cannot be used: the file, column or row at fault is named
    ├── FetchError         a dataset that could not be downloaded or does not match its checksum
    ├── ConfigError        a setting that does not exist or does not fit
    ├── CheckpointError    a run directory that is missing, damaged, or does not fit the log
    └── TrainingError      training that cannot go on, such as a loss that is not finite

The command line prints the message alone and exits with code 2.
"""


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
