"""Trains the models that can be distributed for 50 steps, alone or with others, and writes down what each process saw.

torchrun --standalone --nproc-per-node 2 tests/train_together.py DIRECTORY
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from torch import Tensor

from felrec.data.split import Split, split_log
from felrec.data.synthetic import synthetic_log
from felrec.fitting import Job
from felrec.model.kernels.native import learning
from felrec.model.paper.encoder import Encoder
from felrec.peers import Peers
from felrec.recommender import Distributable, Tensors
from felrec.training.distributed import joined, together
from felrec.training.sink import MemoryCheckpoints
from felrec.training.trainer import Trainer

STEPS = 50
SMALL = {"width": 16, "heads": 2, "layers": 1, "feed_forward": 16, "history_length": 32, "batch_size": 96, "epochs": 1}
PAPER = {**SMALL, "queue_size": 256, "lr": 0.02, "dropout": 0.1}
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "q": ("felrec-q", PAPER),
    "q, layer norm, a share of the events": ("felrec-q", {**PAPER, "normalisation": "layer", "trained_share": 0.5}),
    "p": ("felrec-p", PAPER),
    "s": ("felrec-s", SMALL),
    "s, ensemble and all signals": ("felrec-s", {**SMALL, "members": 2, "trained_share": 1.0}),
}


class Losses(list[float]):
    """A listener that keeps the loss of every step."""

    def step(self, *, loss: float, **_: object) -> None:
        self.append(loss)

    def validated(self, **_: object) -> None:
        pass


class Computed:
    """Counts the histories that this process encodes by torch, and the queries that it learns from by the kernels."""

    def __init__(self) -> None:
        self.rows = 0
        encode, learn = Encoder.forward, learning._learn_piece

        def encode_counted(encoder: Encoder, vectors: Tensor, *rest: Any) -> Tensor:
            self.rows += len(vectors) if encoder.training else 0
            return encode(encoder, vectors, *rest)

        def learn_counted(tables: Any, queries: Any, *rest: Any) -> None:
            self.rows += len(queries)
            learn(tables, queries, *rest)

        Encoder.forward, learning._learn_piece = encode_counted, learn_counted  # type: ignore[method-assign,assignment]


def log() -> Split:
    events = STEPS * SMALL["batch_size"]
    return split_log(synthetic_log(round(events / 0.8), n_users=150, n_items=120, seed=5).log)


def train(model: str, settings: dict[str, Any], split: Split, peers: Peers, computed: Computed) -> dict[str, Any]:
    """Losses of 50 steps, validation metrics, and digests of all that the model holds after them."""
    job = Job.of(split, model, settings, "cpu", peers)
    recommender, losses, run = job.build(), Losses(), MemoryCheckpoints(job.manifest())
    assert isinstance(recommender, Distributable)
    validate = job._validation(recommender)
    trainer = Trainer(recommender, split.train, job.training, run, validate, (losses,))
    before = computed.rows
    with together(peers, recommender):
        trainer.fit()
    held = {"weights": recommender.weights(), "state": recommender.state(), "memory": recommender.memory()}
    return {
        "computed": computed.rows - before,
        "losses": losses,
        "metrics": run.manifest["best"]["metrics"],
        **{name: _digest(tensors) for name, tensors in held.items()},
    }


def train_all(peers: Peers) -> dict[str, Any]:
    split, computed = log(), Computed()
    return {name: train(model, settings, split, peers, computed) for name, (model, settings) in TRAININGS.items()}


def _digest(tensors: Tensors) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].contiguous().numpy().tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    with joined() as joined_peers:
        found = train_all(joined_peers)
        Path(sys.argv[1], f"{joined_peers.rank}.json").write_text(json.dumps(found))
