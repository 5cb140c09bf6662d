"""The library as people use it: fit, evaluate, recommend, observe, save and load."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import felrec
from felrec import runs
from felrec.config import TrainingSettings
from felrec.data.events import Events
from felrec.data.known import Known
from felrec.errors import CheckpointError, ConfigError, DataError
from felrec.fitted import FittedModel
from felrec.registry import MODELS

TINY: dict[str, Any] = {
    "epochs": 1,
    "width": 8,
    "layers": 1,
    "heads": 2,
    "feed_forward": 16,
    "history_length": 8,
    "queue_size": 100,
    "batch_size": 128,
}
LOG = felrec.synthetic_log(1_500, n_users=60, n_items=50, seed=4).log
SPLIT = felrec.split_log(LOG)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    felrec.train(SPLIT, "felrec-q", path, TINY)
    return path


@pytest.fixture
def model(run: Path) -> FittedModel:
    return felrec.load(run)


def test_a_loaded_run_is_in_the_state_after_validation(model: FittedModel) -> None:
    state = model.recommender.state()
    assert state["user_count"].sum() == SPLIT.validation_end
    assert len(model.user_ids) == SPLIT.log.users[: SPLIT.validation_end].max() + 1  # nothing of the test part
    assert len(model.item_ids) == SPLIT.log.items[: SPLIT.validation_end].max() + 1


@pytest.mark.parametrize("name", sorted(MODELS))
def test_fit_writes_nothing_and_equals_what_train_returns_and_load_reads(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {*MODELS[name].settings.model_fields, *TrainingSettings.model_fields}
    settings = {key: value for key, value in TINY.items() if key in known} | {"epochs": 2}
    run, nothing = tmp_path / "run", tmp_path / "nothing"
    nothing.mkdir()
    with monkeypatch.context() as patched:
        patched.chdir(nothing)
        patched.setattr("tempfile.tempdir", str(nothing))
        patched.setattr(runs, "load", None)  # what was trained is not read again
        patched.setattr(Known, "load", None)
        models = [felrec.fit(SPLIT, name, **settings), felrec.train(SPLIT, name, run, settings)]
    left = [entry.name for entry in nothing.iterdir() if not entry.name.startswith("torchinductor")]  # torch's own
    assert left == []
    models.append(felrec.load(run))
    answers = []
    monkeypatch.setattr("felrec.fitted.time", SimpleNamespace(time=lambda: 0.0))  # all are asked at the same time
    for model in models:
        before = model.recommend(3, k=20)
        model.observe([(3, 4, LOG.times[-1] + 1), ("a new user", "a new item", LOG.times[-1] + 2)])
        answers.append((before, model.recommend("a new user", k=20), model.settings, model.fingerprint, model.clock))
    assert answers[0] == answers[1] == answers[2]


def test_scalars_for_tensorboard_need_a_run_directory() -> None:
    with pytest.raises(ConfigError, match=r"use felrec\.train"):
        felrec.fit(SPLIT, "popularity", tensorboard=True)


def test_recommendations_are_the_best_scores_without_what_the_user_had(model: FittedModel) -> None:
    user = LOG.user_ids.ids(LOG.users[:1])[0]
    known_events = LOG.events[: SPLIT.validation_end]
    had = set(LOG.item_ids.ids(known_events.items[known_events.users == LOG.users[0]]))
    assert had
    everything = model.recommend(user, k=1_000, exclude_seen=False)
    assert [score for _, score in everything] == sorted((score for _, score in everything), reverse=True)
    assert len(everything) == len(model.item_ids)
    unseen = model.recommend(user, k=1_000, exclude_seen=True)
    known = set(model.item_ids.ids(range(len(model.item_ids))))
    assert {item for item, _ in unseen} == known - had
    assert model.recommend(user, k=3, exclude_seen=False) == everything[:3]


def test_candidates_limit_the_answer(model: FittedModel) -> None:
    some = model.item_ids.ids(np.array([3, 1, 2]))
    answer = model.recommend("anybody", k=10, candidates=[*some, "no such item"])
    assert {item for item, _ in answer} == set(some)
    assert model.recommend("anybody", candidates=["no such item"]) == []


def test_new_users_and_items_are_there_at_once(model: FittedModel) -> None:
    later = LOG.times[-1]
    model.observe([("a new user", "a new item", later + 1), ("another", "a new item", later + 2)])
    assert "a new item" in [item for item, _ in model.recommend("a stranger", k=100)]
    assert "a new item" not in [item for item, _ in model.recommend("another", k=100, exclude_seen=True)]
    assert len(model.similar_items("a new item", k=4)) == 4
    assert "another" not in [user for user, _ in model.audience("a new item", k=1_000)]
    model.observe([])  # nothing happens


def test_similar_items_are_those_that_the_same_users_take() -> None:
    counting = felrec.load_pretrained()
    shops = [
        (f"{who} {n}", thing, n)
        for n in range(6)
        for who in ("cook", "smith")
        for thing in (f"{who}'s a", f"{who}'s b")
    ]
    counting.observe(sorted([*shops, ("cook 0", "spice", 7), ("lone", "gem", 8)], key=lambda event: event[2]))
    assert [item for item, _ in counting.similar_items("cook's a")] == ["cook's b", "spice"]
    scores = [score for _, score in counting.similar_items("cook's a")]
    assert scores == sorted(scores, reverse=True)
    assert len(counting.similar_items("cook's a", k=1)) == 1
    assert counting.similar_items("gem") == []  # its only user has had nothing else


def test_weights_without_users_take_in_a_whole_log() -> None:
    whole, one_by_one = felrec.load_pretrained(), felrec.load_pretrained()
    whole.observe(LOG)
    one_by_one.observe(zip(LOG.user_ids.ids(LOG.users), LOG.item_ids.ids(LOG.items), LOG.times, strict=True))
    user = LOG.user_ids.ids([0])[0]
    assert len(whole.item_ids) == LOG.n_items
    assert whole.clock == LOG.times[-1]
    assert whole.recommend(user, k=5) == one_by_one.recommend(user, k=5)


def test_what_comes_late_counts_as_of_the_newest_event() -> None:
    late, in_time = (felrec.fit(SPLIT, "felrec-s", epochs=1) for _ in range(2))
    late.observe([("a new user", "a new item", 5.0)])
    in_time.observe([("a new user", "a new item", in_time.clock)])
    assert late.clock == in_time.clock > 5.0
    states = late.recommender.state(), in_time.recommender.state()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_bad_events_and_questions_are_refused(model: FittedModel) -> None:
    before = len(model.user_ids)
    for times in ([5.0, 4.0], [-7e10, 0.0], [float("nan"), 1.0]):
        with pytest.raises(DataError, match="timestamps"):
            model.observe([("u", "i", times[0]), ("u", "i", times[1])])
    for event in (("u", "i"), ("u", None, 1.0), ("u", True, 1.0), ("u", "i", "2024-01-01"), ("u", "i", 1.7e12)):
        with pytest.raises(DataError, match=r"timestamp|event"):
            model.observe([event])  # type: ignore[list-item]
    assert len(model.user_ids) == before  # nothing was half taken in
    with pytest.raises(DataError, match="no events yet"):
        model.similar_items("no such item")
    with pytest.raises(ConfigError, match="at least 1"):
        model.recommend("u", k=0)
    with pytest.raises(ConfigError, match="no vectors"):
        felrec.fit(SPLIT, model="popularity").audience(1)


def test_a_report_names_what_it_has(model: FittedModel) -> None:
    report = felrec.evaluate(model, SPLIT)
    with pytest.raises(ConfigError, match=r"unknown metric 'hr10'; use one of .*hr@10"):
        report.metric("hr10")
    with pytest.raises(ConfigError, match=r"unknown partition 'new items'; use one of .*new_items"):
        report.metric("hr@10", "new items")


def test_evaluating_leaves_the_model_as_it_was(model: FittedModel) -> None:
    before = {name: tensor.clone() for name, tensor in model.recommender.state().items()}
    first = felrec.evaluate(model, SPLIT)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.recommender.state().items())
    model.observe([("a new user", 1, LOG.times[-1] + 1)])
    again = felrec.evaluate(model, SPLIT)
    assert first.to_json()["partitions"] == again.to_json()["partitions"]  # `kept` starts from the checkpoint
    fresh = {name: tensor.shape for name, tensor in model.recommender.state().items()}
    assert fresh["user_cache"][0] == before["user_cache"].shape[0] + 1


def test_misspelt_choices_are_refused(model: FittedModel) -> None:
    for choice in ({"protocol": "papper"}, {"cache": "full"}, {"exclude_seen": "perhaps"}):
        with pytest.raises(ConfigError, match="choose one of"):
            felrec.evaluate(model, SPLIT, **choice)  # type: ignore[arg-type]


def test_the_size_of_blocks_is_a_choice(model: FittedModel) -> None:
    usual, single = felrec.evaluate(model, SPLIT), felrec.evaluate(model, SPLIT, block=1)
    assert (usual.to_json()["block"], single.to_json()["block"]) == (256, 1)
    assert (usual.results.rank != single.results.rank).any()
    assert (felrec.evaluate(model, SPLIT, block=256).results.rank == usual.results.rank).all()
    assert felrec.evaluate(model, SPLIT, protocol="paper").block == 1_024
    with pytest.raises(ConfigError, match="--block 64: protocol paper always uses 1024 events"):
        felrec.evaluate(model, SPLIT, protocol="paper", block=64)
    with pytest.raises(ConfigError, match="--block 0: must be at least 1"):
        felrec.evaluate(model, SPLIT, block=0)


def test_a_reset_cache_is_filled_in_blocks_of_the_same_size(
    model: FittedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, observe = list[int](), model.recommender.observe

    def noted(block: Events) -> None:
        sizes.append(len(block))
        observe(block)

    monkeypatch.setattr(model.recommender, "observe", noted)
    felrec.evaluate(model, SPLIT, cache="reset", block=50)
    assert sizes == [50] * (len(LOG) // 50)


def test_another_log_needs_its_own_cache(model: FittedModel) -> None:
    other = felrec.synthetic_log(900, n_users=30, n_items=30, seed=9).log
    assert felrec.evaluate(model, other).cache == "reset"
    assert felrec.evaluate(model, other, cache="empty").cache == "empty"
    other_cut = felrec.split_log(LOG, 0.1, 0.3)  # part of its test is in the state: kept would leak
    assert felrec.evaluate(model, other_cut).cache == "reset"
    with pytest.raises(CheckpointError, match="--cache reset"):
        felrec.evaluate(model, other, cache="kept")


def test_only_scoring_can_be_changed_after_training(run: Path) -> None:
    assert felrec.load(run, settings={"neighbours": 3}).recommender.settings.neighbours == 3  # type: ignore[attr-defined]
    only = "inference_precision, neighbours, score_from"
    with pytest.raises(ConfigError, match=f"cannot be changed after training; only these can: {only}"):
        felrec.load(run, settings={"history_length": 4})


def test_precisions_are_saved_with_a_run_and_checked(tmp_path: Path) -> None:
    short = {"precision": "bfloat16", "inference_precision": "bfloat16"}
    felrec.train(SPLIT, "felrec-q", tmp_path / "q", {**TINY, **short})
    saved = json.loads((tmp_path / "q" / "manifest.json").read_text())
    assert saved["training"]["precision"] == saved["settings"]["inference_precision"] == "bfloat16"
    assert felrec.load(tmp_path / "q").recommender.settings.inference_precision == "bfloat16"  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="inference_precision='int8'"):
        felrec.train(SPLIT, "felrec-q", tmp_path / "other", {**TINY, "inference_precision": "int8"})


def test_same_seed_same_result_other_seed_other(tmp_path: Path) -> None:
    weights: list[dict[str, str]] = []
    for seed in (1, 1, 2):
        path = tmp_path / f"{len(weights)}"
        felrec.train(SPLIT, "felrec-p", path, {**TINY, "seed": seed})
        weights.append(json.loads((path / "manifest.json").read_text())["best"]["sha256"])
    assert weights[0] == weights[1]
    assert weights[0]["weights"] != weights[2]["weights"]


def test_decayed_popularity_chooses_its_half_life_on_validation(tmp_path: Path) -> None:
    chosen = felrec.train(SPLIT, "decayed-popularity", tmp_path / "a").settings["half_life"]
    hits = {}
    for half_life in (30.0, 100.0, 300.0, 1e3, 3e3, 1e4, 3e4, 1e5):
        felrec.train(SPLIT, "decayed-popularity", tmp_path / str(half_life), {"half_life": half_life})
        manifest = json.loads((tmp_path / str(half_life) / "manifest.json").read_text())
        hits[half_life] = manifest["best"]["metrics"]["hr@10"]
    assert hits[chosen] == max(hits.values())


def test_resuming_with_another_model_log_or_setting_is_refused(run: Path, tmp_path: Path) -> None:
    other = felrec.synthetic_log(900, n_users=30, n_items=30, seed=9).log
    with pytest.raises(CheckpointError, match="another log"):
        felrec.train(other, "felrec-q", run, TINY, resume=True)
    with pytest.raises(CheckpointError, match="a run of felrec-q"):
        felrec.train(SPLIT, "felrec-p", run, TINY, resume=True)
    with pytest.raises(ConfigError, match="width=8"):
        felrec.train(SPLIT, "felrec-q", run, {**TINY, "width": 16}, resume=True)
    assert felrec.train(SPLIT, "felrec-q", run, TINY, resume=True).name == "felrec-q"  # finished: loads


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no setting 'depth'"):
        felrec.train(SPLIT, "felrec-q", tmp_path / "x", {"depth": 3})
    with pytest.raises(ConfigError, match="width"):
        felrec.train(SPLIT, "felrec-q", tmp_path / "x", {"width": 9})
    with pytest.raises(ConfigError, match="unknown model"):
        felrec.train(SPLIT, "felrec-x", tmp_path / "x")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no such CUDA"):
            felrec.train(SPLIT, "felrec-q", tmp_path / "x", device="cuda")
    assert not (tmp_path / "x").exists()


def test_an_item_without_a_vector_has_no_audience() -> None:
    made = felrec.fit(SPLIT, "bpr-mf", epochs=1)
    new = int(SPLIT.log.items[: SPLIT.train_end].max()) + 1
    assert new < len(made.item_ids)
    item = made.item_ids.ids([new])[0]
    for ask in (made.audience, made.similar_items):
        with pytest.raises(DataError, match="bpr-mf cannot represent item"):
            ask(item)


def test_a_path_is_not_a_log() -> None:
    with pytest.raises(DataError, match=r"expected a log, not str; read files and frames with felrec\.read_log"):
        felrec.fit("events.csv")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="expected a log, not str"):
        felrec.split_log("events.csv")  # type: ignore[arg-type]


def test_the_name_of_the_shipped_weights_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="this name is reserved for the bundled weights"):
        felrec.train(SPLIT, "popularity", "pretrained")
    assert not (tmp_path / "pretrained").exists()


@pytest.mark.parametrize("name", ["felrec-s", "bpr-mf", "item-knn"])
def test_a_saved_model_is_loaded_as_it_was(name: str, tmp_path: Path) -> None:
    model = felrec.fit(SPLIT, name, epochs=1)
    model.save(tmp_path / "fresh")
    loaded = felrec.load(tmp_path / "fresh")
    user = LOG.user_ids.ids([0])[0]
    assert loaded.recommend(user, k=20) == model.recommend(user, k=20)
    assert repr(loaded) == repr(model)
    assert felrec.evaluate(loaded, SPLIT).metric("mrr") == felrec.evaluate(model, SPLIT).metric("mrr")
    with pytest.raises(CheckpointError, match="already contains a run"):
        model.save(tmp_path / "fresh")


@pytest.mark.parametrize("of", ["a run", "bundled weights"])
def test_what_a_saved_model_observed_is_saved_with_it(of: str, tmp_path: Path) -> None:
    model = felrec.load_pretrained() if of == "bundled weights" else felrec.fit(SPLIT, "felrec-s", epochs=1)
    later = LOG.times[-1]
    model.observe(LOG)
    model.observe([("a new user", "a new item", later + 1), ("a new user", "a new item", later + 2)])
    model.save(tmp_path / "saved")
    loaded = felrec.load(tmp_path / "saved")
    for exclude_seen in (False, True):
        answer = model.recommend("a new user", k=100, exclude_seen=exclude_seen)
        assert loaded.recommend("a new user", k=100, exclude_seen=exclude_seen) == answer
    assert loaded.clock == later + 2
    assert loaded.pairs["events"].sum() == model.pairs["events"].sum() + len(LOG) + 2
    assert len(loaded.pairs) == len(np.unique(loaded.pairs[["user", "item"]]))
    assert runs.cache_start(loaded, SPLIT) == "reset"  # it has seen the test part
    with pytest.raises(CheckpointError, match="another log"):
        felrec.evaluate(loaded, SPLIT, cache="kept")


def test_settings_of_scoring_are_saved(run: Path, tmp_path: Path) -> None:
    model = felrec.load(run, settings={"neighbours": 10})
    model.save(tmp_path / "near")
    assert felrec.load(tmp_path / "near").settings["neighbours"] == 10
    assert felrec.load(tmp_path / "near").recommend("anybody") == model.recommend("anybody")


def test_a_model_prints_as_a_short_table(model: FittedModel) -> None:
    rows = [line.split(maxsplit=1) for line in repr(model).splitlines()]
    assert rows[0] == ["model", "felrec-q"]
    assert rows[2] == ["users", str(len(model.user_ids))]
    assert rows[4][1].endswith(" UTC")
    assert repr(felrec.load_pretrained()).splitlines()[4].split() == ["newest", "event", "none"]
