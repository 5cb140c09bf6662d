"""Storage of a trainer's checkpoints: a run directory, or memory."""

from __future__ import annotations

from typing import Any, Protocol

from felrec.recommender import Tensors


class CheckpointSink(Protocol):
    """Keeps one checkpoint in each slot, "best" and "resume", and a manifest that describes them."""

    manifest: dict[str, Any]
    resumable: bool  # whether "resume" checkpoints are worth writing

    def update(self, changes: dict[str, Any]) -> None:
        """Change entries of the manifest."""
        ...

    def commit(self, slot: str, name: str, files: dict[str, Tensors], notes: dict[str, Any]) -> None:
        """Replace the checkpoint of a slot; the notes are written to the manifest."""
        ...

    def discard(self, slot: str) -> None:
        """Remove the checkpoint of a slot."""
        ...

    def read(self, slot: str, file: str) -> Tensors:
        """The tensors of one file of a slot's checkpoint."""
        ...


class MemoryCheckpoints:
    """Checkpoints in memory, which cannot be resumed."""

    resumable = False

    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifest = dict(manifest)
        self._files: dict[str, dict[str, Tensors]] = {}

    def update(self, changes: dict[str, Any]) -> None:
        """Change entries of the manifest."""
        self.manifest |= changes

    def commit(self, slot: str, name: str, files: dict[str, Tensors], notes: dict[str, Any]) -> None:
        """Replace the checkpoint of a slot."""
        self._files[slot] = files
        self.update({slot: notes})

    def discard(self, slot: str) -> None:
        """Remove the checkpoint of a slot."""
        self._files.pop(slot, None)
        self.manifest.pop(slot, None)

    def read(self, slot: str, file: str) -> Tensors:
        """The tensors of one file of a slot's checkpoint."""
        return self._files[slot][file]
