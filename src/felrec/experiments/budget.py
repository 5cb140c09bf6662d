"""Converts CPU minutes to epochs before training, so that the schedule fits and a resumed run keeps it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from felrec.config import TrainingSettings
from felrec.data.split import Sizes, Split
from felrec.evaluation.protocols import walk
from felrec.evaluation.report import resolve_exclude_seen
from felrec.evaluation.rules import BLOCK
from felrec.model_kind import ModelKind
from felrec.recommender import Recommender, Trainable
from felrec.training.device import pick_device
from felrec.training.optimiser import build_optimiser

SMALLEST_SHARE = 0.25  # of events with gradients; below it, most time goes into events that train nothing
HARDLY_ANY = 0.01  # the same for a model that must see all events
FEW_VALIDATIONS = 10_000  # validation events for a run that does not cover the whole log
_FILL = 1 << 16  # events per block when filling the state; results do not matter here
_ENOUGH = 0.5  # CPU seconds to time in each part of an epoch, but at least one step
_BLOCKS = 4  # of validation to time
_PARTS = 3  # of an epoch; steps slow down as histories grow


@dataclass(frozen=True)
class Speed:
    """Measured CPU seconds of a model on a log."""

    event: float  # per training event, with gradients from all events
    event_at_smallest_share: float
    validated_event: float

    def at(self, share: float) -> float:
        """Seconds per event with gradients from `share` of the events, interpolated between the two measurements."""
        slope = (self.event - self.event_at_smallest_share) / (1 - SMALLEST_SHARE)
        return max(0.0, self.event - slope * (1 - share))

    @property
    def has_share(self) -> bool:
        """Whether training gets cheaper with fewer gradient events."""
        return self.event_at_smallest_share < 0.9 * self.event


@dataclass(frozen=True)
class Plan:
    """How to train a model within its budget."""

    epochs: int
    trained_share: float
    train_events: int | None  # the newest of the training part; None: all
    seconds: float | None  # estimated CPU seconds; None if not measured
    speed: Speed | None = None

    def settings(self) -> dict[str, Any]:
        """The training settings of the plan."""
        return {"epochs": self.epochs, "trained_share": self.trained_share}

    def cut(self, split: Split) -> Split:
        """The split to train on: all of it, or the newest training events and the first validation events."""
        return split if self.train_events is None else newest(split, self.train_events)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Plan:
        """The plan from the result of `to_json`."""
        return cls(**{**told, "speed": told["speed"] and Speed(**told["speed"])})


def newest(split: Split, train_events: int) -> Split:
    """The newest training events and at most `FEW_VALIDATIONS` validation events, as a log of their own."""
    start = max(0, split.train_end - train_events)
    stop = min(split.validation_end, split.train_end + FEW_VALIDATIONS)
    return Split(split.log.part(start, stop), split.train_end - start, stop - start)


def is_trained(kind: ModelKind) -> bool:
    """Whether a model is trained with gradients."""
    return isinstance(_smallest(kind), Trainable)


def represented(kind: ModelKind) -> frozenset[str]:
    """The partitions that a model can represent."""
    return _smallest(kind).represents


def _smallest(kind: ModelKind) -> Recommender:
    return kind.build(kind.settings(), 0, "cpu", Sizes(2, 2, 2, 2))


def plan(
    speed: Speed, split: Split, seconds: float, wanted: TrainingSettings, *, whole: bool, validated: int | None = None
) -> Plan:
    """Plan as many epochs as fit, up to `wanted`. If none fits: fewer gradient events, then only the newest events.

    A model with weights per user or item (`whole`) trains on the whole log, even if that exceeds the budget.
    """
    events, share = len(split.train), wanted.trained_share
    validation = speed.validated_event * (len(split.validation) if validated is None else validated)
    epoch = speed.at(share) * events + validation
    if epoch <= seconds:
        epochs = min(wanted.epochs, int(seconds / epoch))
        return Plan(epochs, share, None, epochs * epoch, speed)
    floor = min(share, HARDLY_ANY if whole else SMALLEST_SHARE)
    if speed.has_share and floor < share:
        least = speed.at(floor) * events + validation
        share = floor + (share - floor) * max(0.0, seconds - least) / (epoch - least)
    epoch = speed.at(share) * events + validation
    if whole or epoch <= seconds * 1.001:
        return Plan(1, share, None, epoch, speed)
    validation = min(validation, speed.validated_event * FEW_VALIDATIONS)
    fitting = int((seconds - validation) / speed.at(share))
    fitting = min(events, max(fitting, 2 * wanted.batch_size))
    return Plan(1, share, fitting, speed.at(share) * fitting + validation, speed)


def measure(kind: ModelKind, given: dict[str, Any], split: Split, device: str) -> Speed:
    """Time some steps in each third of an epoch and some blocks of validation, on a model that is then discarded.

    The state is filled in large blocks in between, because encoding a long history takes longer than a short one.
    """
    settings, training = kind.divide(given)
    model = kind.build(settings, training.seed, pick_device(device), split.sizes)
    assert isinstance(model, Trainable)
    whole = training.model_copy(update={"trained_share": 1.0})
    least = training.model_copy(update={"trained_share": SMALLEST_SHARE})
    model.train()
    model.begin_epoch()
    filled, spent = 0, {1.0: 0.0, SMALLEST_SHARE: 0.0}
    for part in range(_PARTS):
        filled = _fill(model, split, filled, round((part + 0.5) / _PARTS * len(split.train)))
        for some in (whole, least):
            spent[some.trained_share] += _time_steps(model, split, some, part) / _PARTS
    _fill(model, split, filled, len(split.train))
    model.train(False)
    return Speed(spent[1.0], spent[SMALLEST_SHARE], _time_validation(model, split, training))


def _fill(model: Trainable, split: Split, start: int, stop: int) -> int:
    for block in split.train[start:stop].blocks(_FILL):
        model.observe(block)
    return max(start, stop)


def _time_steps(model: Trainable, split: Split, settings: TrainingSettings, part: int) -> float:
    """CPU seconds per training event, estimated from some steps of this part of an epoch."""
    optimiser = build_optimiser(model.parameters(), settings)
    for group in optimiser.param_groups:
        group["lr"] = 0.0  # the same work, but training cannot diverge
    began = time.process_time()
    batches = model.batches(split.train, settings, 0)
    preparing = time.process_time() - began

    def take(step: int) -> None:
        optimiser.zero_grad(set_to_none=True)
        model.loss(batches[step]).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    first, *others = steps_of(part, len(batches))
    take(first)  # not timed: the optimiser allocates its state, which takes as long as several steps
    began, done = time.process_time(), 0
    for step in others or [first]:
        take(step)
        done += 1
        if time.process_time() - began > _ENOUGH:
            break
    return (preparing + (time.process_time() - began) / done * len(batches)) / len(split.train)


def steps_of(part: int, steps: int) -> list[int]:
    """The steps of a part of an epoch in random order, because the first may not be typical in size.

    >>> [sorted(steps_of(part, 7)) for part in range(3)], steps_of(2, 1)
    ([[0, 1, 2], [3, 4], [5, 6]], [0])
    """
    parts = np.array_split(np.arange(steps), min(_PARTS, steps))
    order: list[int] = np.random.default_rng(0).permutation(parts[min(part, len(parts) - 1)]).tolist()
    return order


def _time_validation(model: Trainable, split: Split, settings: TrainingSettings) -> float:
    start, stop = split.bounds("validation")
    stop = min(stop, start + _BLOCKS * BLOCK["online"])
    leave_out = resolve_exclude_seen(settings.exclude_seen, split)
    began = time.process_time()
    walk(model, split.log.events, start, stop, exclude_seen=leave_out)
    return (time.process_time() - began) / (stop - start)
