"""The TypeScript client: generated from a running service's own document, compiled, and used against it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

import needs

SOURCE = Path(__file__).resolve().parents[2] / "clients" / "typescript"


@pytest.mark.slow
def test_the_generated_client_talks_to_the_service(url: str, tmp_path: Path) -> None:
    npm = needs.program("npm")
    if not (SOURCE / "node_modules").is_dir():
        needs.missing("the packages of the TypeScript client are not installed; run tests/install_node.sh")
    client = tmp_path / "typescript"
    shutil.copytree(SOURCE, client, ignore=shutil.ignore_patterns("node_modules", "dist", "schema.ts", "openapi.json"))
    (client / "node_modules").symlink_to(SOURCE / "node_modules")
    (client / "openapi.json").write_text(httpx.get(f"{url}/openapi.json").text)
    for command in ([npm, "run", "generate"], [npm, "run", "build"], ["node", "dist/test/service.js", url]):
        done = subprocess.run(command, cwd=client, text=True, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "all good\n"
