"""Help, version, start-up without heavy imports, and docs/cli.md."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from felrec.version import __version__

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["train", "--help"], ["serve", "--help"], ["keys", "list"], ["datasets"], ["inspect", "LOG"]],
)
def test_starts_without_torch(arguments: list[str], log: Path) -> None:
    real = [str(log) if argument == "LOG" else argument for argument in arguments]
    code = f"""
import sys
from felrec.cli import main
try:
    main({real!r})
except SystemExit as end:
    assert end.code == 0, end.code
heavy = {{"torch", "matplotlib", "pandas", "fastapi", "uvicorn", "apsw"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout or "no keys yet" in done.stderr


def test_version(felrec) -> None:  # type: ignore[no-untyped-def]
    assert felrec("--version").stdout == f"felrec {__version__}\n"


def test_no_command_shows_the_commands(felrec) -> None:  # type: ignore[no-untyped-def]
    done = felrec()
    assert done.returncode == 0
    for name in ("datasets", "models", "inspect", "train", "evaluate", "compare", "recommend", "serve", "keys", "demo"):
        assert f"\n  {name} " in done.stdout


def test_reference_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    reference = import_module("generate_cli").reference

    assert (ROOT / "docs" / "cli.md").read_text() == reference(), "run python docs/generate_cli.py"


def test_a_closed_pipe_makes_no_traceback() -> None:
    code = "from felrec.cli import main; main(['datasets'])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
