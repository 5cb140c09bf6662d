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
from felrec.comparison.progress import ProgressReporter, Silent, TrainingWatch

__all__ = [
    "ENOUGH",
    "Comparison",
    "Difference",
    "ProgressReporter",
    "Silent",
    "TrainingWatch",
    "compare",
    "differences",
    "read_names",
    "settings_by_model",
    "write",
]
