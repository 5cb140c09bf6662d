"""Files and folders that appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from felrec.files import publish, remove_folder, write_atomically
from killed import KilledError


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    for text in ("first", "zweitens: ü"):
        write_atomically(tmp_path / "a.json", text)
        assert (tmp_path / "a.json").read_text(encoding="utf-8") == text
    write_atomically(tmp_path / "secret", "x", private=True)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json", "secret"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "a", "old")

    def dies(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KilledError):
        write_atomically(tmp_path / "a", "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]


def test_a_folder_is_published_and_removed(tmp_path: Path) -> None:
    (tmp_path / "draft" / "inner").mkdir(parents=True)
    (tmp_path / "draft" / "inner" / "file").write_text("x")
    publish(tmp_path / "draft", tmp_path / "done")
    assert (tmp_path / "done" / "inner" / "file").read_text() == "x"
    remove_folder(tmp_path / "done")
    assert list(tmp_path.iterdir()) == []
