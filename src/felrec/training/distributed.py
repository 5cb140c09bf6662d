"""Train with several processes, which torchrun starts: join them, let them agree, and share one run directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
from safetensors.torch import load, save
from torch import distributed

from felrec.errors import ConfigError
from felrec.peers import ALONE, Peers
from felrec.recommender import Distributable, Learner, Recommender, Tensors
from felrec.training.sink import CheckpointSink, MemoryCheckpoints
from felrec.training.trainer import Validate

_PATIENCE = timedelta(hours=1)  # with a process that still reads its log; one that ended is noticed at once


def rank() -> int:
    """The number that a launcher gave to this process; 0 without one."""
    return int(os.environ.get("RANK", 0))


def launched() -> int:
    """The number of processes that a launcher started; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", 1))


def own_device(device: str) -> str:
    """Every process of a machine has a GPU of its own; a CPU is shared."""
    return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if device == "cuda" and launched() > 1 else device


@contextmanager
def joined() -> Iterator[Peers]:
    """Connect the processes that were launched together: gloo exchanges what is on CPUs, NCCL what is on GPUs."""
    if launched() == 1:
        yield ALONE
        return
    distributed.init_process_group(timeout=_PATIENCE)
    try:
        yield Peers(distributed.get_rank(), distributed.get_world_size())
        distributed.barrier()  # nobody leaves while another one still sends
    finally:
        distributed.destroy_process_group()


def check_divisible(peers: Peers, recommender: Recommender, model: str, batch_size: int) -> None:
    """Raise an error if these processes cannot train a model together."""
    if peers.size == 1:
        return
    if not isinstance(recommender, Distributable):
        raise ConfigError(f"{model} cannot be trained by several processes; run felrec train without torchrun")
    if peers.size > batch_size:
        raise ConfigError(
            f"{peers.size} processes cannot share batches of {batch_size} events; start fewer, or raise batch_size"
        )


def check_agreement(peers: Peers, job: dict[str, Any]) -> None:
    """Raise an error on all processes if one of them was started with another job than the leading one."""
    if peers.size == 1:
        return
    leaders: dict[str, Any] = json.loads(peers.from_leader(json.dumps(job).encode()))
    differ = [name for name, value in json.loads(json.dumps(job)).items() if leaders[name] != value]
    if any(peers.sum([torch.tensor(len(differ))])):
        which = f"process {peers.rank} has another {differ[0]}" if differ else f"another one differs from {peers.rank}"
        raise ConfigError(f"the processes do not train the same: {which}; start all with the same arguments and log")


@contextmanager
def together(peers: Peers, recommender: Recommender) -> Iterator[None]:
    """Divide the work of a model among processes, which all make the same calls."""
    if not isinstance(recommender, Distributable):
        yield
        return
    recommender.peers = peers
    try:
        yield
    finally:
        recommender.peers = ALONE


def alike(peers: Peers, model: Learner, validate: Validate) -> Validate:
    """Validation with the weights of the leading process, whose metrics then count for all.

    Processors may round differently. So weights cannot drift apart, and all processes decide the same.
    """
    if peers.size == 1:
        return validate

    def validate_alike() -> dict[str, float]:
        model.load_weights(load(peers.from_leader(save(model.weights()) if peers.leads else b"")))
        metrics: dict[str, float] = json.loads(peers.from_leader(json.dumps(validate()).encode()))
        return metrics

    return validate_alike


class SharedCheckpoints:
    """Checkpoints that the leading process keeps and all read: the others need no access to the run directory."""

    def __init__(self, peers: Peers, kept: CheckpointSink) -> None:
        self._peers, self._kept = peers, kept
        self.manifest, self.resumable = kept.manifest, kept.resumable

    @classmethod
    def led(cls, peers: Peers, kept: CheckpointSink) -> CheckpointSink:
        """On the leading process: what it keeps is for all."""
        peers.from_leader(json.dumps(kept.manifest).encode())
        return kept if peers.size == 1 else cls(peers, kept)

    @classmethod
    def followed(cls, peers: Peers) -> CheckpointSink:
        """On another process: begins with the manifest of the leading one, and then changes it alike."""
        return cls(peers, MemoryCheckpoints(json.loads(peers.from_leader(b""))))

    def update(self, changes: dict[str, Any]) -> None:
        """Change entries of the manifest."""
        self._kept.update(changes)

    def commit(self, slot: str, name: str, files: dict[str, Tensors], notes: dict[str, Any]) -> None:
        """Replace the checkpoint of a slot; only the leading process keeps its tensors."""
        self._kept.commit(slot, name, files if self._peers.leads else {}, notes)

    def discard(self, slot: str) -> None:
        """Remove the checkpoint of a slot."""
        self._kept.discard(slot)

    def read(self, slot: str, file: str) -> Tensors:
        """The tensors of one file of a slot's checkpoint, which the leading process reads and sends."""
        return load(self._peers.from_leader(save(self._kept.read(slot, file)) if self._peers.leads else b""))
