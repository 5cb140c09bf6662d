"""felrec: recommend new items within their first events, without item text or retraining.

>>> import felrec
>>> log = felrec.synthetic_log(2_000, n_users=50, n_items=40, seed=1).log
>>> model = felrec.fit(felrec.split_log(log), model="decayed-popularity")
>>> model.observe([("a new user", "a new item", log.times[-1] + 1)])
>>> "a new item" in [item for item, score in model.recommend("another user", k=41)]
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from felrec.version import __version__

if TYPE_CHECKING:
    from felrec.data.log import InteractionLog
    from felrec.data.reading.sources import read_log
    from felrec.data.split import Split, split_log
    from felrec.data.synthetic import synthetic_log
    from felrec.errors import FelrecError
    from felrec.evaluation.report import Report
    from felrec.fitted import FittedModel
    from felrec.pretrained import load_pretrained
    from felrec.runs import evaluate, fit, load, train

__all__ = [
    "FelrecError",
    "FittedModel",
    "InteractionLog",
    "Report",
    "Split",
    "__version__",
    "evaluate",
    "fit",
    "load",
    "load_pretrained",
    "read_log",
    "split_log",
    "synthetic_log",
    "train",
]

# Imported on first use, so that `felrec --help` and reading a log do not wait for torch.
_HOME = {
    "FelrecError": "felrec.errors",
    "FittedModel": "felrec.fitted",
    "InteractionLog": "felrec.data.log",
    "Report": "felrec.evaluation.report",
    "Split": "felrec.data.split",
    "evaluate": "felrec.runs",
    "fit": "felrec.runs",
    "load": "felrec.runs",
    "load_pretrained": "felrec.pretrained",
    "read_log": "felrec.data.reading.sources",
    "split_log": "felrec.data.split",
    "synthetic_log": "felrec.data.synthetic",
    "train": "felrec.runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'felrec' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
