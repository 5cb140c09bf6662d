"""The files in deploy/: valid by the schemas of Kubernetes and compose, and they call commands that exist."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import needs
from felrec.cli import app

needs.package("kubernetes_validate")
needs.package("check_jsonschema")

DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yml"))
VERSIONS = "1.28.0", "1.37.0"  # of Kubernetes: an old one, and the newest that the validator knows
PROGRAM = "/opt/felrec/bin/felrec"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_manifests_are_valid(path: Path, version: str) -> None:
    from kubernetes_validate import validate

    for document in documents(path):
        validate(document, version, strict=True)


def test_the_validator_sees_a_mistake() -> None:
    from kubernetes_validate import ValidationError, validate

    document = documents(DEPLOY / "kubernetes" / "readers.yml")[0]
    document["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(ValidationError, match="readynessProbe"):
        validate(document, VERSIONS[0], strict=True)


def compose_check(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_compose_file_is_valid(tmp_path: Path) -> None:
    path = DEPLOY / "compose.yml"
    checked = compose_check(path)
    assert checked.returncode == 0, checked.stdout
    (tmp_path / "compose.yml").write_text(path.read_text().replace("replicas: 3", "replica: 3"))
    assert "replica" in compose_check(tmp_path / "compose.yml").stdout


def containers() -> Iterator[tuple[str, list[str]]]:
    """The words after `felrec` of everything that is started, by the name of its file."""
    for path in MANIFESTS:
        for document in documents(path):
            for one in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
                yield path.name, [*one.get("command", [PROGRAM, "serve"])[1:], *one.get("args", ())]
    for name, service in documents(DEPLOY / "compose.yml")[0]["services"].items():
        if service["image"] == "felrec":
            yield f"compose.yml: {name}", [*service.get("entrypoint", [PROGRAM, "serve"])[1:], *service["command"]]
    for path in sorted(DEPLOY.glob("felrec*.service")):
        for line in path.read_text().splitlines():
            if line.startswith(f"ExecStart={PROGRAM} "):
                yield path.name, shlex.split(line)[1:]


STARTED = dict(containers())


@pytest.mark.parametrize("name", STARTED)
def test_options_exist(name: str) -> None:
    command, *words = STARTED[name]
    parameters = get_command(app).commands[command].params  # type: ignore[attr-defined]
    known = {option for parameter in parameters for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_everything_is_looked_at() -> None:
    assert {"readers.yml", "writers.yml", "consumer.yml", "compose.yml: felrec", "compose.yml: consumer"} <= set(
        STARTED
    )
    assert {"felrec.service", "felrec@.service", "felrec-consume.service"} <= set(STARTED)


def test_readers_and_writers_differ_only_in_who_may_write() -> None:
    readers, writers = (documents(DEPLOY / "kubernetes" / f"{name}.yml")[0] for name in ("readers", "writers"))
    pods = [one["spec"]["template"]["spec"] for one in (readers, writers)]
    reader, writer = (pod["containers"][0] for pod in pods)
    assert reader["args"] == [*writer["args"], "--never-lead"]
    assert {**reader, "args": ()} == {**writer, "args": ()}


def test_services_and_budgets_select_pods() -> None:
    pods = [
        document["spec"]["template"]["metadata"]["labels"]
        for path in MANIFESTS
        for document in documents(path)
        if document["kind"] == "Deployment"
    ]
    for path in MANIFESTS:
        for document in documents(path):
            if document["kind"] in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
                spec = document["spec"]
                wanted = spec.get("selector", spec.get("podSelector"))
                wanted = wanted.get("matchLabels", wanted)
                assert any(wanted.items() <= labels.items() for labels in pods), document["metadata"]["name"]
