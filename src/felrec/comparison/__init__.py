"""Several models on one log, with intervals; and its rows, of which the paper's experiments are made too."""

from felrec.comparison.comparing import (
    ENOUGH,
    Comparison,
    Difference,
    compare,
    differences,
    read_names,
    settings_by_model,
    write,
)
from felrec.comparison.watch import TrainingWatch, Unwatched, Watcher

__all__ = [
    "ENOUGH",
    "Comparison",
    "Difference",
    "TrainingWatch",
    "Unwatched",
    "Watcher",
    "compare",
    "differences",
    "read_names",
    "settings_by_model",
    "write",
]
