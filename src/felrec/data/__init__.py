"""Interaction logs: read, download, split, summarise and generate them. Nothing here imports torch."""

from felrec.data.events import Events, Rows, Times
from felrec.data.log import InteractionLog
from felrec.data.reading.datasets import DATASETS, Dataset
from felrec.data.reading.fetch import fetch, sha256_of
from felrec.data.reading.sources import read_log
from felrec.data.split import PARTITIONS, Split, split_log
from felrec.data.summary import inspect
from felrec.data.synthetic import SyntheticLog, synthetic_log
from felrec.data.vocabulary import Vocabulary

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "Dataset",
    "Events",
    "InteractionLog",
    "Rows",
    "Split",
    "SyntheticLog",
    "Times",
    "Vocabulary",
    "fetch",
    "inspect",
    "read_log",
    "sha256_of",
    "split_log",
    "synthetic_log",
]
