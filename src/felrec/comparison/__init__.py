"""Compare several models on one log, with confidence intervals; the paper's experiments use the same trials."""

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
