"""The small distribution of the client: built, installed into an empty environment, and used there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[2]
USE = """
import importlib.util, sys
from felrec.client import Client
for name in ("torch", "numpy", "polars", "pydantic", "felrec.fitted", "felrec.service"):
    assert importlib.util.find_spec(name) is None, name
with Client(sys.argv[1]) as shop:
    assert shop.record([("small", "x"), {"user": "small", "item": "y"}]).accepted == 2
    print(shop.user("small").events, len(shop.recommend("small", k=3).items))
"""


@pytest.mark.slow
def test_the_client_installs_and_works_without_torch(url: str, tmp_path: Path) -> None:
    needs.package("setuptools")
    site = empty_environment(tmp_path / "venv")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*install, "--target", str(site), copied(tmp_path)], text=True, capture_output=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    (installed,) = metadata.distributions(name="felrec-client", path=[str(site)])
    assert installed.requires == ["httpx>=0.28"]
    link_with_dependencies("httpx", site)
    python = next((tmp_path / "venv").glob("*/python"))
    used = subprocess.run([python, "-c", USE, url], text=True, capture_output=True, timeout=60, cwd=tmp_path, env={})
    assert used.returncode == 0, used.stderr
    assert used.stdout.split() == ["2", "3"]


def empty_environment(folder: Path) -> Path:
    """The folder of packages of a new environment that has none."""
    venv.create(folder, with_pip=False)
    return next(folder.rglob("site-packages"))


def copied(folder: Path) -> str:
    """A copy of the source, so that the build leaves nothing in the checkout."""
    shutil.copytree(ROOT / "src" / "felrec", folder / "src" / "felrec")
    shutil.copytree(ROOT / "clients" / "python", folder / "clients" / "python")
    return str(folder / "clients" / "python")


def link_with_dependencies(name: str, site: Path) -> None:
    """Link a distribution of this environment and all that it needs into another one: no test needs a network."""
    found = metadata.distribution(name)
    for top in {file.parts[0] for file in found.files or ()} - {".."}:
        target = site / top
        if not target.exists():
            target.symlink_to(Path(str(found.locate_file(top))))
    for needed in found.requires or ():
        required = re.split(r"[^\w.-]", needed)[0]
        missing = not list(metadata.distributions(name=required, path=[str(site)]))
        if ";" not in needed and missing:
            link_with_dependencies(required, site)
