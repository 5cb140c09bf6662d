"""Compare felrec with the authors' implementation: the same weights, the same events, every number.

    git clone https://github.com/kweimann/FELRec CHECKOUT
    python benchmarks/parity.py CHECKOUT [--data LOG]

Their code is imported from CHECKOUT and never copied. Both models get the same random weights, queues and caches at
the paper's sizes, without dropout, and process the same events through their own data paths. Everything is computed
in float64, because float32 gradients differ by more than the tolerance.
Prints one row per comparison; exits with 1 if a difference has no reason listed here. See docs/parity.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from reference import Authors
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from felrec.config import TrainingSettings, check
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.evaluation.metrics import draw_negatives, event_metrics, ranks, sampled_ranks
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.model.paper.objectives import Contrast
from felrec.training.schedule import learning_rate

TOLERANCE = 1e-4
BATCH = 64  # divides the queue size, as theirs requires
FROZEN, TRAINED, EVALUATED = 5, 3, 2  # batches compared before, during and after three steps of SGD
EVENTS = BATCH * (FROZEN + TRAINED + EVALUATED)
LENGTHS = (0, 1, 63, 64, 65)  # history lengths at both ends of the window are reported separately

Tensors = dict[str, Tensor]
OUR_NAMES = {
    "encoder.norm": "encoder.input_norm",
    "encoder.fc": "encoder.output",
    "layers": "blocks",
    "mha.W_q": "attention.query_key_value",
    "mha.W_o": "attention.output",
    "mha_sublayer.norm": "attention_norm",
    "ffn.W_1": "expand",
    "ffn.W_2": "contract",
    "ffn_sublayer.norm": "feed_forward_norm",
    "user_projection": "objective.user_projection",
    "item_projection": "objective.item_projection",
    "user_prediction": "objective.user_predictor",
    "item_prediction": "objective.item_predictor",
}
FUSED_OR_STATE = ("W_k", "W_v", "token", "positional", "embeddings", "queue")

HALF_TIES = "half ties: theirs depends on the order argsort gives equal scores"
NO_DROPPED_EVENTS = "no dropped events: theirs drops the first train % batch events when a queue is used"
UNMEASURED = (
    "ring queue: ours takes any batch and queue size; theirs asserts that the batch divides the queue",
    "no flipped direction: theirs ranks ascending if validation says so; a live service cannot know",
    "sampled negatives never hit the target; theirs may draw it, which counts as a tie with itself",
    "-NN looks at all users but the one asking; theirs at a sample of 16,384 outside the batch",
    "dropout masks are drawn differently, so that a run can be resumed exactly; compared here with dropout 0",
    "duplicates in a cache write: ours keeps the last event; theirs keeps any, unless torch has one thread as here",
    "validation and the replay before test follow protocol `online`; theirs observes, then scores throughout",
    "what a user had: theirs never leaves it out; ours only under protocol online, where users do not repeat",
)


@dataclass
class Table:
    """The largest difference of each comparison, and the largest value, to judge the tolerance."""

    difference: dict[str, float] = field(default_factory=dict)
    largest: dict[str, float] = field(default_factory=dict)
    reason: dict[str, str] = field(default_factory=dict)

    def compare(self, what: str, ours: Any, theirs: Any, reason: str = "") -> None:
        """Add a pair of values to the row `what`; different shapes and NaN count as an infinite difference."""
        a, b = torch.as_tensor(ours).detach().double(), torch.as_tensor(theirs).detach().double()
        difference = float((a - b).abs().max()) if a.shape == b.shape and a.numel() else np.inf
        difference = np.inf if np.isnan(difference) else difference
        self.difference[what] = max(difference, self.difference.get(what, 0.0))
        self.largest[what] = max(float(b.abs().max()), self.largest.get(what, 0.0))
        self.reason[what] = reason

    def report(self) -> bool:
        """Print all rows and the deviations without a number; True if all differences are explained."""
        print(f"{'comparison':<52} {'difference':>10} {'of at most':>10} {'tolerance':>9}  verdict")
        for what, difference in self.difference.items():
            print(f"{what:<52} {difference:10.1e} {self.largest[what]:10.1e} {TOLERANCE:9.0e}  {self._verdict(what)}")
        print("\nDeliberate deviations that have no row:")
        for line in UNMEASURED:
            print(f"  {line}")
        return all(d <= TOLERANCE or self.reason[what] for what, d in self.difference.items())

    def _verdict(self, what: str) -> str:
        if self.difference[what] <= TOLERANCE:
            return "agrees"
        return f"DEVIATES ({self.reason[what] or 'undocumented'})"


@dataclass
class Pair:
    """Both models, and all outputs of their encoders: users, then items, batch by batch."""

    name: str
    ours: FELRec
    theirs: Any
    their_step: Any
    our_vectors: list[Tensor] = field(default_factory=list)
    their_vectors: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ours.objective.register_forward_pre_hook(lambda _, vectors: self.our_vectors.extend(vectors))
        self.theirs.encoder.register_forward_hook(lambda _, __, vectors: self.their_vectors.append(vectors))


def main() -> int:
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)  # with more, it is random which of two vectors their cache keeps for a row
    parser = argparse.ArgumentParser(description="Compare felrec with the authors' implementation.")
    parser.add_argument("checkout", type=Path, help="a clone of github.com/kweimann/FELRec")
    parser.add_argument("--data", type=Path, metavar="LOG", help="Parquet or CSV with user, item, timestamp")
    arguments = parser.parse_args()
    authors, table = Authors.load(arguments.checkout), Table()
    events = read_events(arguments.data) if arguments.data else random_events()
    print(f"{len(events)} events in batches of {BATCH}, torch {torch.__version__}\n")
    for variant in ("q", "p"):
        for empty_caches in (True, False):
            pair = same_weights(authors, variant, events, empty_caches, table)
            compare_frozen(pair, authors, events, table)
            compare_training(pair, authors, events, table)
            compare_scores(pair, authors, events, table)
    compare_metrics(authors, table)
    compare_schedule(authors, table)
    compare_split(authors, table)
    return 0 if table.report() else 1


# The events


def random_events() -> Events:
    """Draw events with skewed users and items, so that histories of every length occur."""
    rng = np.random.default_rng(0)
    share = np.arange(1.0, 61.0) ** -1.3
    users, items = (rng.choice(60, EVENTS, p=share / share.sum()) for _ in range(2))
    return numbered(users, items)


def read_events(path: Path) -> Events:
    """Read the oldest events of a log."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    frame = frame.sort_values("timestamp", kind="stable").head(EVENTS)
    if len(frame) < EVENTS:
        raise SystemExit(f"{path} has {len(frame)} events; {EVENTS} are needed")
    return numbered(frame["user"].to_numpy(), frame["item"].to_numpy())


def numbered(users: NDArray[Any], items: NDArray[Any]) -> Events:
    user_rows, item_rows = (np.unique(ids, return_inverse=True)[1] for ids in (users, items))
    return Events.of(user_rows, item_rows, np.arange(len(users)))


def history_lengths(owners: NDArray[np.int32]) -> NDArray[np.int64]:
    """Number of earlier events of each event's owner."""
    lengths: NDArray[np.int64] = pd.Series(owners).groupby(owners).cumcount().to_numpy()
    return lengths


def batches(authors: Authors, events: Events, first: int, count: int) -> Iterator[tuple[int, Events, Any]]:
    """The start of each batch, and the batch in our form and in theirs."""
    start, stop = first * BATCH, (first + count) * BATCH
    loader = DataLoader(Subset(authors.sessions(events), range(start, stop)), batch_size=BATCH)
    for begin, (_, session) in zip(range(start, stop, BATCH), loader, strict=True):
        yield begin, events[begin : begin + BATCH], session


# One set of weights in two models


def same_weights(authors: Authors, variant: Any, events: Events, empty_caches: bool, table: Table) -> Pair:
    """Two models that share every random number; the queues are about to wrap."""
    torch.manual_seed(0)
    encoder = authors.felrec.Encoder(num_layers=3, num_heads=4, d_model=128, d_ff=256, dropout=0.0)
    kind = authors.felrec.FELRecQ if variant == "q" else authors.felrec.FELRecP
    users, items = int(events.users.max()) + 1, int(events.items.max()) + 1
    theirs = kind(encoder=encoder, num_users=users + 1, num_items=items + 1)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter += 0.05 * torch.randn_like(parameter)  # norms and biases must not be trivial either
        if not empty_caches:
            theirs.user_embeddings[1:].normal_()
            theirs.item_embeddings[1:].normal_()
    ours = FELRec(check(FELRecSettings, {"dropout": 0.0}), variant)
    ours.load_weights(in_our_names(theirs.state_dict()))
    ours.users.cache.restore(theirs.user_embeddings[1:].clone())
    ours.items.cache.restore(theirs.item_embeddings[1:].clone())
    if isinstance(ours.objective, Contrast):
        theirs.queue_ptr[0] = theirs.K - 2 * BATCH
        for side in ("user", "item"):
            queue = getattr(ours.objective, f"{side}_queue")
            queue.keys, queue.next = getattr(theirs, f"{side}_queue").clone(), int(theirs.queue_ptr)
    name = f"FELRec-{variant.upper()}"
    their_count = sum(parameter.numel() for parameter in theirs.parameters())
    table.compare(f"{name}: number of parameters", ours.parameter_count(), their_count)
    codes = theirs.encoder.positional(torch.zeros(1, 64, 128))[0]
    table.compare("positional codes, oldest to newest", ours.encoder.positions, codes)
    ours.encoder.positions.copy_(codes)  # a difference is reported by the row above; the other rows compare the rest
    step = authors.felrec.train_step_Q() if variant == "q" else authors.felrec.train_step_P()
    return Pair(name, ours.train(), theirs.train(), step)


def in_our_names(theirs: Tensors) -> Tensors:
    """Their weights or gradients under our names: W_q, W_k and W_v are fused, and so are the type vectors."""
    tokens = {ITEM_SEQUENCE: theirs["item_token"], USER_SEQUENCE: theirs["user_token"]}
    ours = {"encoder.types": torch.cat([tokens[kind][0] for kind in sorted(tokens)])}
    for name, tensor in theirs.items():
        if "W_q" in name:
            tensor = torch.cat([theirs[name.replace("W_q", f"W_{part}")] for part in "qkv"])
        if not any(part in name for part in FUSED_OR_STATE):
            for their_part, our_part in OUR_NAMES.items():
                name = name.replace(their_part, our_part)
            ours[name] = tensor
    return ours


# Vectors, losses, gradients, queues, weights


def compare_frozen(pair: Pair, authors: Authors, events: Events, table: Table) -> None:
    """Compare batches with frozen weights: encoded vectors, losses, gradients and caches."""
    lengths = []
    for begin, batch, session in batches(authors, events, 0, FROZEN):
        lengths += [history_lengths(side)[begin : begin + BATCH] for side in (events.users, events.items)]
        losses = pair.ours.loss(TimeBatch(batch)), pair.their_step(pair.theirs, session)
        table.compare(f"{pair.name}: loss", *losses)
        compare_state(pair, table)
        for loss, model in zip(losses, (pair.ours, pair.theirs), strict=True):
            model.zero_grad()
            loss.backward()
        gradients = in_our_names({name: weight.grad for name, weight in pair.theirs.named_parameters()})
        for name, weight in pair.ours.named_parameters():
            table.compare(f"{pair.name}: gradient, {part_of(name)}", weight.grad, gradients.pop(name))
        assert not gradients, f"no counterpart for {list(gradients)}"
    ours, theirs, length_of = torch.cat(pair.our_vectors), torch.cat(pair.their_vectors), np.concatenate(lengths)
    for length in LENGTHS:
        if (chosen := length_of == length).any():
            table.compare(f"encoded vectors, history of {length}", ours[chosen], theirs[chosen])
    table.compare("encoded vectors, histories of all lengths", ours, theirs)


def compare_state(pair: Pair, table: Table) -> None:
    """Compare caches, queues and the pointer into them."""
    table.compare("user cache after each batch", pair.ours.users.cache.snapshot(), pair.theirs.user_embeddings[1:])
    table.compare("item cache after each batch", pair.ours.items.cache.snapshot(), pair.theirs.item_embeddings[1:])
    if isinstance(pair.ours.objective, Contrast):
        for side in ("user", "item"):
            ours, theirs = getattr(pair.ours.objective, f"{side}_queue"), getattr(pair.theirs, f"{side}_queue")
            table.compare(f"{pair.name}: {side} queue after each batch", ours.keys, theirs)
            table.compare(f"{pair.name}: queue pointer after each batch", ours.next, int(pair.theirs.queue_ptr))


def part_of(name: str) -> str:
    """Name the part of the model that a parameter belongs to."""
    if name.startswith("encoder.blocks"):
        return "attention" if "attention" in name else "feed-forward"
    return name.split(".")[1].replace("_", " ")


def compare_training(pair: Pair, authors: Authors, events: Events, table: Table) -> None:
    """Three steps of SGD with clipped gradients: their loop, and the steps of felrec.training.trainer."""
    before, settings = pair.ours.weights(), check(TrainingSettings, {})
    optimisers = [
        torch.optim.SGD(model.parameters(), settings.lr, settings.momentum) for model in (pair.ours, pair.theirs)
    ]
    both = list(batches(authors, events, FROZEN, TRAINED))
    for _, batch, _ in both:
        loss = pair.ours.loss(TimeBatch(batch))
        optimisers[0].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(pair.ours.parameters(), settings.clip)
        optimisers[0].step()
    authors.reclib.optim.train_epoch(
        pair.theirs, optimisers[1], pair.their_step, [(None, session) for _, _, session in both]
    )
    compare_state(pair, table)
    after, theirs = pair.ours.weights(), in_our_names(pair.theirs.state_dict())
    for name, start in before.items():
        what = "batch statistics" if "running" in name or "num_batches" in name else "weights"
        table.compare(f"{pair.name}: change of {what} in three steps", after[name] - start, theirs[name] - start)


# Scores, metrics, schedule, split


@torch.no_grad()
def compare_scores(pair: Pair, authors: Authors, events: Events, table: Table) -> None:
    """Protocol `paper` on the events that follow training."""
    pair.theirs.eval()
    seen = events.items[: (FROZEN + TRAINED) * BATCH]
    existing = authors.felrec.create_mask(np.unique(seen).astype(np.int64) + 1, size=pair.theirs.num_items)
    their_step = authors.felrec.eval_step(existing)
    for begin, batch, session in batches(authors, events, FROZEN + TRAINED, EVALUATED):
        theirs, _ = their_step(pair.theirs, session)
        ours = pair.ours.observe_then_score(batch, np.unique(events.items[: begin + BATCH]))
        table.compare(f"{pair.name}: scores, protocol paper", ours, theirs)
        compare_state(pair, table)


def compare_metrics(authors: Authors, table: Table) -> None:
    """Compare metrics on scores without ties, and on rounded scores with many ties."""
    generator, theirs = torch.Generator().manual_seed(0), authors.reclib.metrics
    scores = torch.stack([torch.randperm(500, generator=generator) for _ in range(1000)]).float()
    targets, index = torch.randint(500, (1000,), generator=generator), np.arange(1000)
    for kind, values, reason in (("no ties", scores, ""), ("ties", (scores / 50).floor(), HALF_TIES)):
        rank, ranked = ranks(values, targets)
        sampled = sampled_ranks(values, targets, ranked, index, seed=0)
        ours = event_metrics(rank, ranked, sampled, np.zeros(1000, dtype=bool))
        columns = torch.from_numpy(draw_negatives(index, ranked - 1, seed=0))
        columns = torch.cat([targets[:, None], columns + (columns >= targets[:, None])], dim=1)
        same_negatives = values.gather(1, columns), torch.zeros_like(targets)
        for name, value in (
            ("rank", theirs.normalized_rank(values, targets)),
            ("hr@10", theirs.HR(values, targets, k=10)),
            ("ndcg@10", theirs.NDCG(values, targets, k=10)),
            ("mrr", theirs.reciprocal_rank(values, targets)),
            ("hr@10_sampled", theirs.HR(*same_negatives, k=10)),
        ):
            table.compare(f"metric {name}, {kind}", ours[name], value, reason)


def compare_schedule(authors: Authors, table: Table) -> None:
    """Compare the learning rate of each of 100 epochs."""
    settings = check(TrainingSettings, {})
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], settings.lr)
    schedule = authors.reclib.optim.CosineLRSchedule(optimiser, steps=100, warmup_steps=10, eta_min=1e-7)
    for epoch in range(100):
        schedule.step()
        ours, theirs = learning_rate(settings, epoch, 0, 50), optimiser.param_groups[0]["lr"]
        table.compare("learning rate / highest, 100 epochs", ours / settings.lr, theirs / settings.lr)


def compare_split(authors: Authors, table: Table) -> None:
    """Compare the number of training events of 100,000."""
    theirs, _, _ = authors.reclib.utils.data.split(pd.DataFrame(index=range(100_000)), 0.1, 0.1, divisible_by=1024)
    table.compare("events trained on, of 100,000", 80_000.0, float(len(theirs)), NO_DROPPED_EVENTS)


if __name__ == "__main__":
    sys.exit(main())
