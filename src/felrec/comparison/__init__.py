"""Several models on one log, with intervals; the paper's experiments are made of the same trials."""

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
from felrec.comparison.progress import ProgressReporter, Silent, TrainingListener

__all__ = [
    "ENOUGH",
    "Comparison",
    "Difference",
    "ProgressReporter",
    "Silent",
    "TrainingListener",
    "compare",
    "differences",
    "read_names",
    "settings_by_model",
    "write",
]
