"""Recommendations for many users into a file, in parts, so that an interrupted job continues where it stopped."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from felrec.data.vocabulary import Id
from felrec.errors import ConfigError
from felrec.evaluation.protocols import Progress
from felrec.files import publish, write_atomically
from felrec.fitted import FittedModel

FORMATS = (".parquet", ".csv")
_PART = 20_000  # users
_PLAN = "plan.json"


@dataclass(frozen=True)
class BatchJob:
    """Which users get how many of which items, by which model."""

    model: FittedModel = field(repr=False)
    source: str  # identifies the model's weights and state, as its run does
    users: pl.Series
    k: int = 10
    exclude_seen: bool | None = None
    candidates: Sequence[Id] | None = None

    def run(self, out: Path, progress: Progress | None = None) -> int:
        """Write the file `out`; returns the number of its rows. What an interrupted run of the same job did is kept."""
        check_output(out)
        parts = out.with_name(f".{out.name}.parts")
        self._begin(parts)
        for number, at in enumerate(range(0, len(self.users), _PART)):
            part, some = parts / f"{number:06}.parquet", self.users[at : at + _PART]
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
        rows = _join(sorted(parts.glob("*.parquet")), out)
        shutil.rmtree(parts)
        return rows

    def _begin(self, parts: Path) -> None:
        """Keep the parts of the same job, and remove those of another one."""
        plan = self._plan()
        try:
            same = (parts / _PLAN).read_text(encoding="utf-8") == plan
        except (OSError, UnicodeDecodeError):
            same = False
        if not same:
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir()
            write_atomically(parts / _PLAN, plan)

    def _plan(self) -> str:
        """Two jobs with the same plan write the same file."""
        candidates = None if self.candidates is None else _digest(pl.Series(list(map(str, self.candidates))))
        plan = {
            "source": self.source,
            "k": self.k,
            "exclude_seen": self.exclude_seen,
            "users": _digest(self.users),
            "candidates": candidates,
        }
        return json.dumps(plan, indent=2) + "\n"


def check_output(out: Path) -> None:
    """Raise an error if the file cannot be written, before any work is done."""
    if out.suffix not in FORMATS:
        raise ConfigError(f"--out {out}: the format is not known; end the name in {' or '.join(FORMATS)}")
    if out.is_dir() or not out.parent.is_dir():
        raise ConfigError(f"--out {out}: is a directory, or there is no directory {out.parent}; give a file")


def _join(parts: Sequence[Path], out: Path) -> int:
    """Write one file from the parts; returns the number of its rows."""
    frame = pl.scan_parquet(list(parts))
    beside = out.with_name(f".{out.name}.new")
    if out.suffix == ".csv":
        frame.sink_csv(beside)
    else:
        frame.sink_parquet(beside)
    publish(beside, out)
    rows: int = frame.select(pl.len()).collect().item()
    return rows


def _digest(ids: pl.Series) -> str:
    return hashlib.sha256("\0".join(ids.cast(pl.String).to_list()).encode()).hexdigest()
