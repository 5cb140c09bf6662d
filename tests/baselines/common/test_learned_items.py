"""What BPR-MF, GRU4Rec, GRU4Rec-BPTT and SASRec share: sizes as in the paper, resuming, vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from felrec.abilities import Representing
from felrec.baselines.common.learned_items import LearnedItems
from felrec.data.events import Events
from felrec.data.split import Sizes
from felrec.model_kind import PAPER_SIZES
from felrec.recommender import Trainable
from felrec.registry import MODELS
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer
from killed import KillAfter, KilledError

SMALL = {"width": 8, "layers": 2, "heads": 2, "feed_forward": 16, "history_length": 4, "negatives": 2}
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("bpr-mf", {}),
    ("gru4rec", {}),
    ("gru4rec-bptt", {}),
    ("sasrec", {}),
    ("sasrec", {"loss": "cross-entropy"}),
]
PRINTED = {  # the paper's tables of results, column "params"; train users and items that give all four
    "MovieLens 25M": (
        PAPER_SIZES.train_users,
        PAPER_SIZES.train_items,
        {"bpr-mf": "22.06", "gru4rec": "17.93", "gru4rec-bptt": "4.72", "sasrec": "4.82"},
    ),
    "Twitch": (802_278, 387_800, {"bpr-mf": "152.33", "gru4rec": "199.19", "gru4rec-bptt": "49.95", "sasrec": "50.05"}),
}
GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 20, 330), GENERATOR.integers(0, 15, 330), np.arange(330))


def build(name: str, settings: dict[str, Any], sizes: Sizes) -> Trainable:
    kind = MODELS[name]
    small = {key: value for key, value in SMALL.items() if key in kind.settings.model_fields}
    model = kind.build(kind.settings(**{**small, **settings}), 0, "cpu", sizes)
    assert isinstance(model, Trainable)
    return model


def trainer(path: Path, name: str, own: dict[str, Any], *listeners: Any, **training: Any) -> Trainer:
    run = RunDirectory.open(path) if (path / "manifest.json").exists() else RunDirectory.create(path, {})
    _, chosen = MODELS[name].divide({"epochs": 3, "batch_size": 64, "checkpoint_seconds": 1e-6, **training})
    model = build(name, own, Sizes(20, 15, 20, 15))

    def validate() -> dict[str, float]:
        model.observe(EVENTS[:5])
        return {"rank": 0.5, "hr@10": 0.0, "mrr": 0.0}

    made = Trainer(model, EVENTS, chosen, run, validate, listeners)
    made.resume()
    return made


@pytest.mark.parametrize("dataset", PRINTED)
def test_parameters_are_as_many_as_in_the_paper(dataset: str) -> None:
    """They are linear in the numbers of users and items, so three small models tell those of a huge one."""
    train_users, train_items, printed = PRINTED[dataset]
    for name, millions in printed.items():
        kind = MODELS[name]
        none, one_user, one_item = (
            kind.build(kind.settings(), 0, "cpu", Sizes(*counts, *counts)).parameter_count()
            for counts in ((1, 1), (2, 1), (1, 2))
        )
        parameters = none + (one_user - none) * (train_users - 1) + (one_item - none) * (train_items - 1)
        assert f"{parameters / 1e6:.2f}" == millions, name


def test_a_model_of_the_papers_size_says_so() -> None:
    described = MODELS["sasrec"].describe()
    assert f"{described['parameters'] / 1e6:.2f}" == "4.82"
    assert described["partitions"] == ["observed", "new_users"]


@pytest.mark.parametrize(("name", "own"), SETTINGS)
@pytest.mark.parametrize(("killed_at", "training"), [(4, {}), (9, {"optimizer": "adamw", "trained_share": 0.5})])
def test_resuming_gives_the_result_of_an_uninterrupted_run(
    tmp_path: Path, name: str, own: dict[str, Any], killed_at: int, training: dict[str, Any]
) -> None:
    whole = trainer(tmp_path / "whole", name, own, **training)
    whole.fit()
    with pytest.raises(KilledError):
        trainer(tmp_path / "cut", name, own, KillAfter(killed_at), **training).fit()
    resumed = trainer(tmp_path / "cut", name, own, **training)
    assert resumed.step or resumed.epoch
    resumed.fit()
    assert all(torch.equal(tensor, resumed.model.weights()[key]) for key, tensor in whole.model.weights().items())
    assert whole.run.manifest["best"]["sha256"] == resumed.run.manifest["best"]["sha256"]
    assert whole.run.manifest["epochs"] == resumed.run.manifest["epochs"]


@pytest.mark.parametrize(("name", "own"), SETTINGS)
def test_bfloat16_trains(tmp_path: Path, name: str, own: dict[str, Any]) -> None:
    made, begun = trainer(tmp_path, name, own, epochs=1, precision="bfloat16"), build(name, own, Sizes(20, 15, 20, 15))
    made.fit()
    after = made.model.weights()
    assert any(not torch.equal(weight, after[key]) for key, weight in begun.weights().items())
    for tensor in (*after.values(), *made.model.state().values()):
        assert tensor.dtype != torch.bfloat16
        assert tensor.isfinite().all()


@pytest.mark.parametrize(("name", "own"), SETTINGS)
def test_an_epoch_leaves_the_state_of_the_training_part(tmp_path: Path, name: str, own: dict[str, Any]) -> None:
    made, replayed = trainer(tmp_path, name, own, epochs=1), build(name, own, Sizes(20, 15, 20, 15))
    made.fit()
    replayed.observe(EVENTS)
    left, expected = made.model.state(), replayed.state()
    assert left.keys() == expected.keys()
    assert ("ring" in left) == (name != "bpr-mf")  # which keeps no history
    if "ring" in left:
        assert torch.equal(left["ring"], expected["ring"])
        places = left["ring"].shape[1]
        assert torch.equal(left["count"].clamp(max=places), expected["count"].clamp(max=places))


@pytest.mark.parametrize(("name", "own"), SETTINGS)
def test_vectors_are_of_unit_length_or_zero(name: str, own: dict[str, Any]) -> None:
    model = build(name, own, Sizes(20, 15, 20, 15))
    assert isinstance(model, Representing)
    model.observe(EVENTS)
    users, items = model.user_vectors(np.array([0, 19, 99])), model.item_vectors(np.array([0, 14, 15]))
    assert torch.allclose(users.norm(dim=1), torch.ones(3))
    assert torch.allclose(items.norm(dim=1), torch.tensor([1.0, 1.0, 0.0]))


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    for name, own in SETTINGS:
        model = build(name, own, Sizes(20, 15, 20, 15))
        assert isinstance(model, LearnedItems)
        _, training = MODELS[name].divide({"batch_size": 64})
        model.loss(model.batches(EVENTS, training, 0)[0])
    assert torch.equal(before, torch.random.get_rng_state())
