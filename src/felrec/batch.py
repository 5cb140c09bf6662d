"""Recommendations for many users into a file, in parts, so that an interrupted job continues where it stopped.

Several processes or machines can do a shard of the users each; `merge` makes one file of the shards.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from felrec.data.lazy_polars import pl
from felrec.data.vocabulary import Id
from felrec.errors import ConfigError
from felrec.evaluation.protocols import Progress
from felrec.files import publish, write_atomically
from felrec.fitted import AT_ONCE, FittedModel

FORMATS = (".parquet", ".csv")
_PART = 80 * AT_ONCE  # users
_PLAN = "plan.json"
_NOTE = "felrec_shard"  # in the metadata of a shard: its job and its number


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of the users of a job, which are numbered from 1.

    >>> Shard.read("3/16")
    Shard(number=3, count=16)
    """

    number: int = 1
    count: int = 1

    @classmethod
    def read(cls, text: str) -> Shard:
        """From "3/16", the third of sixteen."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        shard = cls(*map(int, found.groups())) if found else cls(0)
        if not 1 <= shard.number <= shard.count:
            raise ConfigError(f"--shard {text}: write it as 3/16, the third of sixteen")
        return shard

    def of(self, users: pl.Series) -> pl.Series:
        """Its users: those that are answered in one call stay together, so that their scores have the same bits."""
        calls = -(-len(users) // AT_ONCE)
        first, last = (calls * number // self.count for number in (self.number - 1, self.number))
        return users[first * AT_ONCE : last * AT_ONCE]

    def file(self, out: Path) -> Path:
        """Where a job that would write `out` writes its shard; always Parquet."""
        return out if self.count == 1 else out.with_name(f"{out.name}.{self.number}-of-{self.count}")


ALL = Shard()


@dataclass(frozen=True)
class BatchJob:
    """Which users get how many of which items, by which model."""

    model: FittedModel = field(repr=False)
    source: str  # identifies the model's weights and state, as its run does
    users: pl.Series
    k: int = 10
    exclude_seen: bool | None = None
    candidates: Sequence[Id] | None = None
    shard: Shard = ALL

    def run(self, out: Path, progress: Progress | None = None) -> int:
        """Write the file `out`, or the shard of it; returns the number of rows.

        What an interrupted run of the same job did is kept.
        """
        check_output(out)
        out, users = self.shard.file(out), self.shard.of(self.users)
        parts = out.with_name(f".{out.name}.parts")
        self._begin(parts)
        for number, at in enumerate(range(0, max(1, len(users)), _PART)):
            part, some = parts / f"{number:06}.parquet", users[at : at + _PART]
            if part.exists():
                if progress:
                    progress(len(some))
                continue
            found = self.model.recommend_many(
                some, self.k, exclude_seen=self.exclude_seen, candidates=self.candidates, progress=progress
            )
            unfinished = part.with_suffix(".new")
            found.write_parquet(unfinished)
            publish(unfinished, part)
        note = {} if self.shard.count == 1 else {_NOTE: json.dumps({**self._plan(), **asdict(self.shard)})}
        rows = _join(sorted(parts.glob("*.parquet")), out, note)
        shutil.rmtree(parts)
        return rows

    def _begin(self, parts: Path) -> None:
        """Keep the parts of the same job, and remove those of another one."""
        plan = json.dumps({**self._plan(), "part": _PART}, indent=2) + "\n"
        try:
            same = (parts / _PLAN).read_text(encoding="utf-8") == plan
        except (OSError, UnicodeDecodeError):
            same = False
        if not same:
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir()
            write_atomically(parts / _PLAN, plan)

    def _plan(self) -> dict[str, Any]:
        """Two jobs with the same plan write the same file."""
        candidates = None if self.candidates is None else _digest(pl.Series(list(map(str, self.candidates))))
        return {
            "source": self.source,
            "k": self.k,
            "exclude_seen": self.exclude_seen,
            "users": _digest(self.users),
            "candidates": candidates,
        }


def check_output(out: Path) -> None:
    """Raise an error if the file cannot be written, before any work is done."""
    if out.suffix not in FORMATS:
        raise ConfigError(f"--out {out}: the format is not known; end the name in {' or '.join(FORMATS)}")
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigError(f"--out {out}: is a directory, or there is no directory {out.parent}; give a file")


def merge(files: Sequence[Path], out: Path) -> int:
    """Write the file of a whole job from its shards; returns the number of its rows."""
    check_output(out)
    first, shards = files[0], dict[int, Path]()
    plan = _note(first)
    for file in files:
        note = _note(file)
        for name in plan.keys() - {"number"}:
            if note[name] != plan[name]:
                raise ConfigError(f"{file} and {first} are of different jobs ({name} differs); give shards of one job")
        same = shards.setdefault(note["number"], file)
        if same != file:
            raise ConfigError(f"{same} and {file} are both shard {note['number']}/{plan['count']}; give one of them")
    missing = [f"{number}/{plan['count']}" for number in range(1, plan["count"] + 1) if number not in shards]
    if missing:
        raise ConfigError(f"missing: shard {', '.join(missing)}; make them with felrec recommend --shard, or give them")
    return _join([shards[number] for number in sorted(shards)], out, {})


def _note(file: Path) -> dict[str, Any]:
    """What a shard says about itself."""
    try:
        note: dict[str, Any] = json.loads(pl.read_parquet_metadata(file)[_NOTE])
    except (OSError, KeyError, pl.exceptions.ComputeError):
        raise ConfigError(f"{file}: not a shard that felrec recommend --shard wrote; give only shards") from None
    return note


def _join(parts: Sequence[Path], out: Path, metadata: dict[str, str]) -> int:
    """Write one file from the parts; returns the number of its rows."""
    frame = pl.scan_parquet(list(parts))
    beside = out.with_name(f".{out.name}.new")
    if out.suffix == ".csv":
        frame.sink_csv(beside)
    else:
        frame.sink_parquet(beside, metadata=metadata)
    publish(beside, out)
    rows: int = frame.select(pl.len()).collect().item()
    return rows


def _digest(ids: pl.Series) -> str:
    return hashlib.sha256("\0".join(ids.cast(pl.String).to_list()).encode()).hexdigest()
