"""Find the files of a log: a single one, those of a folder or a pattern, or that of a known dataset."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from felrec.data.reading.datasets import DATASETS
from felrec.data.reading.formats import READERS, ending_of
from felrec.data.reading.published import TWITCH_FILES
from felrec.errors import DataError

_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def files_of(path: Path) -> list[Path]:
    """The files to read one after the other, sorted by name."""
    if path.is_dir():
        known = _known_dataset(path)
        return [known] if known else _of_one_kind(path, (one for one in path.rglob("*") if not _is_hidden(one, path)))
    if path.exists():
        return [path]
    if glob.has_magic(str(path)):
        return _of_one_kind(path, map(Path, glob.iglob(str(path), recursive=True)))
    raise DataError(f"{path}: no such file or folder; check the path")


def partitions_of(path: Path) -> dict[str, str | None]:
    """The columns that the folders of a file name, as Hive and Spark write them.

    >>> partitions_of(Path("events/date=2024-05-01/country=de/0.parquet"))
    {'date': '2024-05-01', 'country': 'de'}
    """
    named = (_PARTITION.fullmatch(part) for part in path.parts[:-1])
    return {one[1]: None if one[2] == _NO_VALUE else unquote(one[2]) for one in named if one}


def _of_one_kind(given: Path, paths: Iterable[Path]) -> list[Path]:
    files = sorted(path for path in paths if ending_of(path) and path.is_file() and path.stat().st_size)
    if not files:
        raise DataError(f"{given}: no file of a log there; their names end in one of {', '.join(READERS)}")
    endings = {str(ending_of(path)).removesuffix(".gz") for path in files}
    if len(endings) > 1:
        example = (given if given.is_dir() else given.parent) / f"*{min(endings)}"
        raise DataError(
            f"{given}: files of several kinds ({', '.join(sorted(endings))}); name those of the log, as in '{example}'"
        )
    return files


def _is_hidden(path: Path, folder: Path) -> bool:
    """Whether it is a writer's own file, such as those of `_delta_log`."""
    return any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)


def _known_dataset(folder: Path) -> Path | None:
    """The one file in a dataset's folder that holds its log."""
    known = dict.fromkeys([*(dataset.file for dataset in DATASETS.values()), *TWITCH_FILES])
    found = [name for name in known if (folder / name).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: holds several logs; give one of {', '.join(found)}")
    return folder / found[0] if found else None
