"""A run directory: safetensors files and one JSON manifest, updated atomically.

A checkpoint is a folder of safetensors that is written under a temporary name, synced and renamed. It is
valid only once the manifest names it, and the manifest is replaced atomically. So the manifest always
names a complete checkpoint, even after a crash.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from felrec.errors import CheckpointError
from felrec.files import publish, write_atomically
from felrec.recommender import Tensors

FORMAT = 1
MANIFEST = "manifest.json"
_OWN = ("users.parquet", "items.parquet", "seen.parquet", "model.json", "weights.safetensors", "best")
_CHECKPOINT = re.compile(r"(best-\d{4}|resume-\d{4}-\d{7})(-again)*")


class RunDirectory:
    """Reads and writes the checkpoints of one run."""

    resumable = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: dict[str, Any] = {}

    @classmethod
    def create(cls, path: Path, manifest: dict[str, Any]) -> RunDirectory:
        """Start a run in a directory that does not contain one."""
        if (path / MANIFEST).exists():
            raise CheckpointError(f"{path} already contains a run; continue it with --resume or choose another --out")
        try:
            path.mkdir(parents=True, exist_ok=True)
            held = sorted(entry.name for entry in path.iterdir() if _is_of_a_run(entry.name))
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be created ({error.strerror}); choose another --out") from None
        if held:
            raise CheckpointError(f"{path} contains {held[0]}, which a run would overwrite; choose another --out")
        run = cls(path)
        run.update({"format": FORMAT, "versions": versions(), **manifest})
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open an existing run."""
        run = cls(path)
        if path.is_file():
            raise CheckpointError(f"{path} is a file; give the run directory first, then the log")
        try:
            run.manifest = json.loads((path / MANIFEST).read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise CheckpointError(
                f"{path} is not a run directory (no {MANIFEST}); create one with felrec train, or use pretrained"
            ) from None
        except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
            raise CheckpointError(f"{path / MANIFEST} cannot be read ({error}); restore it or train again") from None
        if not isinstance(run.manifest, dict) or "format" not in run.manifest:
            raise CheckpointError(f"{path / MANIFEST} is not a felrec manifest; restore it or train again")
        if run.manifest["format"] > FORMAT:
            raise CheckpointError(
                f"{path} was written by a newer felrec (format {run.manifest['format']}); upgrade felrec"
            )
        return run

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from training here; the lock is released when this process ends, even if it is killed.

        A finished run is not changed and not locked, so it may be in a read-only directory.
        """
        if self.manifest.get("finished"):
            yield
            return
        try:
            lock = sqlite3.connect(self.path / ".lock", timeout=0, isolation_level=None)
            lock.execute("BEGIN EXCLUSIVE")  # SQLite's locks work on every system
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise CheckpointError(f"{self.path} cannot be written to ({error}); check its permissions") from None
            raise CheckpointError(
                f"another process is training in {self.path}; wait for it, or choose another --out"
            ) from None
        with closing(lock):
            self.manifest = self.open(self.path).manifest  # another process may have changed it since
            self._tidy()
            yield

    def update(self, changes: dict[str, Any]) -> None:
        """Change entries of the manifest, atomically."""
        self.manifest |= changes
        write_atomically(self.path / MANIFEST, json.dumps(self.manifest, indent=2) + "\n")

    def commit(self, slot: str, name: str, files: dict[str, Tensors], notes: dict[str, Any]) -> None:
        """Write a checkpoint folder `name` and make it the one of `slot` ("best" or "resume")."""
        while name in self._named():  # keep the named checkpoint until the manifest names another
            name += "-again"
        temporary, final = self.path / f".{name}.new", self.path / name
        for stale in (temporary, final):
            shutil.rmtree(stale, ignore_errors=True)
        temporary.mkdir()
        digests = {}
        for file, tensors in files.items():
            target = temporary / f"{file}.safetensors"
            write_tensors(tensors, target)
            digests[file] = _digest(target)
        publish(temporary, final)
        before = self.manifest.get(slot)
        self.update({slot: {"folder": name, "sha256": digests, **notes}})
        if before and before["folder"] != name:
            shutil.rmtree(self.path / before["folder"], ignore_errors=True)

    def _tidy(self) -> None:
        """Remove incomplete files and unnamed checkpoints that a killed process left."""
        for unfinished in self.path.glob(".*.new"):
            if unfinished.is_dir():
                shutil.rmtree(unfinished, ignore_errors=True)
            else:
                unfinished.unlink()
        for folder in self.path.iterdir():
            if _CHECKPOINT.fullmatch(folder.name) and folder.name not in self._named():
                shutil.rmtree(folder, ignore_errors=True)

    def _named(self) -> set[str]:
        return {self.manifest[slot]["folder"] for slot in ("best", "resume") if slot in self.manifest}

    def discard(self, slot: str) -> None:
        """Remove the checkpoint of `slot`."""
        before = self.manifest.pop(slot, None)
        self.update({})
        if before:
            shutil.rmtree(self.path / before["folder"], ignore_errors=True)

    def read(self, slot: str, file: str) -> Tensors:
        """Tensors of a checkpoint, checked against the manifest."""
        entry = self.manifest.get(slot)
        if entry is None:
            raise CheckpointError(f"{self.path} has no {slot} checkpoint yet; let training finish an epoch")
        path = self.path / entry["folder"] / f"{file}.safetensors"
        try:
            if _digest(path) != entry["sha256"][file]:
                raise CheckpointError(f"{path} is damaged (its checksum differs); restore it or train again")
            return load_file(path)
        except FileNotFoundError:
            raise CheckpointError(f"{path} is missing; restore it or train again") from None
        except SafetensorError as error:
            raise CheckpointError(f"{path} is damaged ({error}); restore it or train again") from None


def write_tensors(tensors: Tensors, path: Path) -> None:
    """Write a file of tensors; raise CheckpointError if that fails, e.g. on a full disk."""
    try:
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, path)
    except SafetensorError as error:
        raise CheckpointError(f"{path} cannot be written ({error}); free space, then use --resume") from None


def _is_of_a_run(name: str) -> bool:
    return name in _OWN or _CHECKPOINT.fullmatch(name) is not None


def versions() -> dict[str, str]:
    """Versions of Python, torch and numpy."""
    return {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
