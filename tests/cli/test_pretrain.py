"""`felrec pretrain`, and `pretrained` in place of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from felrec.training.checkpoint import RunDirectory

from .conftest import Felrec

Invoke = Callable[..., Result]
SMALL = ["--set", "width=8", "--set", "heads=2", "--set", "history_length=4", "--set", "near_items=8", "--epochs", "1"]


def test_weights_of_several_logs_work_on_another(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    named = tmp_path / "named.csv"
    named.write_text(log.read_text().replace("user,item,timestamp", "who,what,timestamp", 1))
    columns = ("--user-col", "who", "--item-col", "what")
    done = invoke("pretrain", named, "--synthetic", 2, "--events", 400, "--out", tmp_path / "w", *SMALL, *columns)
    assert f"the weights are in {tmp_path / 'w'}" in done.stdout
    assert "felrec-s: epoch 1/1" in done.stderr + done.stdout
    said = invoke("evaluate", tmp_path / "w", log).stdout
    assert "felrec-s: protocol online, cache reset" in said
    assert re.search(r"total +150 +100.0 %", said)


def test_pretrained_names_the_bundled_weights(log: Path, invoke: Invoke) -> None:
    assert "felrec-s: protocol online, cache reset" in invoke("evaluate", "pretrained", log).stdout
    assert "cache empty" in invoke("evaluate", "pretrained", log, "--cache", "empty").stdout


def test_a_seed_is_the_same_however_it_is_given(tmp_path: Path, invoke: Invoke) -> None:
    made = ["pretrain", "--synthetic", 1, "--events", 400, *SMALL]
    invoke(*made, "--seed", 3, "--out", tmp_path / "option")
    invoke(*made, "--set", "seed=3", "--out", tmp_path / "setting")
    option, setting = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("option", "setting"))
    assert option == setting


def test_a_pretraining_that_was_killed_is_no_run(tmp_path: Path, felrec: Felrec, log: Path) -> None:
    begun = tmp_path / "begun"
    RunDirectory.create(begun, {"model": "felrec-s", "settings": {}, "training": {}, "logs": [], "finished": False})
    for arguments in (
        ("evaluate", begun, log),
        ("recommend", begun, "--user", "1"),
        ("train", log, "--out", begun, "--resume"),
    ):
        done = felrec(*arguments)
        assert done.returncode == 2
        assert "is an unfinished pretraining; continue it with felrec pretrain --resume" in done.stderr
