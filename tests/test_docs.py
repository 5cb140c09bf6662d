"""The README and the pages: examples run, links and names exist, commands parse, settings are all listed."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from typer.main import get_command

import felrec
from felrec.cli import app
from felrec.config import TrainingSettings
from felrec.fitted import FittedModel
from felrec.registry import MODELS

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAV = re.findall(r":\s+(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return FENCE.findall(page.read_text())


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def run_python(page: Path, folder: Path) -> list[str]:
    """What each python block of a page prints; they share their names, as a reader's session does."""
    namespace: dict[str, Any] = {}
    printed = []
    with contextlib.chdir(folder):
        for language, code in blocks(page):
            if language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(code, str(page), "exec"), namespace)
                printed.append(out.getvalue())
    return printed


def test_the_readme_example_prints_what_the_readme_shows(tmp_path: Path) -> None:
    """But for what another processor does to the last digits of a sum: metrics a little, close items change places."""
    readme = ROOT / "README.md"
    (shown,) = [text for language, text in blocks(readme) if language == "text"]
    (printed,) = [text for text in run_python(readme, tmp_path) if text]
    metrics, known = re.compile(r"0\.\d{3}"), re.compile(r"song-\d+")
    assert [*map(float, metrics.findall(printed))] == pytest.approx([*map(float, metrics.findall(shown))], abs=0.02)
    assert known.sub("song-N", metrics.sub("N", printed)) == known.sub("song-N", metrics.sub("N", shown))
    before, after = printed.splitlines()[1:]
    assert after.startswith("['song-new', ")
    assert "song-new" not in before


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    printed = run_python(ROOT / "docs" / "tutorial.md", tmp_path)
    shown = next(text for _, text in blocks(ROOT / "docs" / "tutorial.md") if text.startswith("user,item,timestamp"))
    assert (tmp_path / "events.csv").read_text().splitlines()[:3] == shown.splitlines()[:3]
    assert "146 events of new items" in printed[1]
    assert printed[2].startswith("False\nTrue\n")


def test_the_page_of_the_library_runs_and_names_everything(tmp_path: Path) -> None:
    page = ROOT / "docs" / "library.md"
    printed = run_python(page, tmp_path)
    assert printed[1].count("Scored(") == 7
    assert (tmp_path / "item-knn.parquet").exists()
    methods = [name for name in vars(FittedModel) if inspect.isfunction(getattr(FittedModel, name))]
    for name in [*felrec.__all__, *methods]:
        assert name.startswith("_") or re.search(rf"`(felrec\.)?{name}\b", prose(page)), name


@every_page
def test_relative_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        if target.startswith(("http://", "https://")):
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(linked), f"{page.name} links to {target}"


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_navigation() -> None:
    assert sorted(NAV) == sorted(str(page.relative_to(ROOT / "docs")) for page in DOCS)


def command_lines(page: Path) -> list[list[str]]:
    """The `$ felrec …` lines of a page's consoles, as arguments."""
    consoles = [text.replace("\\\n", " ") for language, text in blocks(page) if language == "console"]
    lines = re.findall(r"^\$ felrec(?: (.*))?$", "\n".join(consoles), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def resolve(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words name, and the words after it."""
    command: Any = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@every_page
def test_command_lines_parse(page: Path) -> None:
    for line in command_lines(page):
        command, rest = resolve(line)
        assert not hasattr(command, "commands") or all(word.startswith("-") for word in rest), f"no command: {line}"
        command.make_context(command.name, list(rest)).close()  # raises on what does not exist
        if command.name == "train":
            check_settings(line)


def check_settings(line: list[str]) -> None:
    kind = MODELS[line[line.index("--model") + 1] if "--model" in line else "felrec-s"]
    given = [line[at + 1].partition("=")[0] for at, word in enumerate(line) if word == "--set"]
    assert set(given) <= {*kind.settings.model_fields, *TrainingSettings.model_fields}, line


@every_page
def test_commands_and_options_in_the_prose_exist(page: Path) -> None:
    known = get_command(app)
    spans = re.findall(r"`felrec ([^`]+)`", prose(page))
    for words in map(str.split, spans):
        command, rest = resolve(words)
        assert command is not known or words[0].startswith("--"), f"{page.name}: felrec {' '.join(words)}"
        assert {word for word in rest if word.startswith("-")} <= options(command), f"{page.name}: {words}"
    every = set().union(*(options(command) for command in all_commands(known)))
    alone = re.findall(r"`(--[a-z-]+)", prose(page))
    others = {"--logdir", "--data"} if page.name in ("train.md", "parity.md") else set()
    assert set(alone) <= every | others, page.name


def options(command: Any) -> set[str]:
    return {"--help", *(name for parameter in command.params for name in parameter.opts)}


def all_commands(command: Any) -> list[Any]:
    return [command, *(found for sub in getattr(command, "commands", {}).values() for found in all_commands(sub))]


PAPER = (ROOT / "docs" / "paper.md").read_text()
NAMED = re.findall(r"^\| .* \| ([^|]+) \| `(src/felrec/[\w/]+\.py)` \|$", PAPER, re.MULTILINE)


@pytest.mark.parametrize("page", [ROOT / "docs" / "paper.md", ROOT / "docs" / "architecture.md", *PAGES[:2]], ids=str)
def test_files_that_are_named_exist(page: Path) -> None:
    for name in named_files(page):
        assert (ROOT / name).exists() or (ROOT / "src" / "felrec" / name).exists(), name


def named_files(page: Path) -> list[str]:
    return re.findall(r"`([\w/]+/\w+\.(?:py|toml|txt))`", prose(page))


def test_there_are_links_commands_and_files_to_check() -> None:
    """A pattern that finds nothing would make the tests above pass whatever the pages say."""
    assert sum(len(links(page)) for page in PAGES) > 50
    assert sum(len(command_lines(page)) for page in PAGES) > 30
    assert sum(len(named_files(page)) for page in PAGES) > 30


def test_names_of_the_paper_page_exist() -> None:
    assert len(NAMED) > 30
    for names, file in NAMED:
        module = importlib.import_module(file.removeprefix("src/").removesuffix(".py").replace("/", "."))
        for name in re.findall(r"`([\w.]+)`", names):
            assert has(module, name), f"{file} has no {name}"


def has(module: Any, name: str) -> bool:
    owner, _, attribute = name.partition(".")
    found = getattr(module, owner, None)
    if not attribute or found is None:
        return found is not None
    if issubclass(found, BaseModel):
        return attribute in found.model_fields
    return hasattr(found, attribute) or f"self.{attribute}" in inspect.getsource(found)


def spelled_as_given(default: object) -> str:
    """As one gives it with --set."""
    if isinstance(default, list):
        return ",".join(default)
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_every_setting_is_listed_with_its_default() -> None:
    """Each section of the page that has a table of settings is that of one kind of settings."""
    sections = (ROOT / "docs" / "howto" / "train.md").read_text().split("\n### ")
    listed = [dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", text, re.MULTILINE)) for text in sections]
    kinds: set[type[BaseModel]] = {TrainingSettings, *(kind.settings for kind in MODELS.values())}
    for fields in (kind.model_fields for kind in kinds):
        defaults = {name: field.default for name, field in fields.items()}
        spelled = {name: spelled_as_given(default) for name, default in defaults.items()}
        assert not spelled or spelled in listed, spelled


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_outside(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    for file in [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.css")]:
        outside = re.search(r"""(<link[^>]*href|src)=["'](https?:)?//|url\(["']?(https?:)?//""", file.read_text())
        assert outside is None, f"{file.name}: {outside}"


def test_the_walks_name_functions_that_are_there() -> None:
    """Every step of the walks in the architecture page, `file.py`: `function`, exists."""
    steps = re.findall(r"`([\w/]+\.py)`:\s+`(\w+)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(steps) > 30
    for file, name in steps:
        assert re.search(rf"(def|class) {name}\b", (ROOT / "src" / "felrec" / file).read_text()), (file, name)


def test_walks_are_short() -> None:
    """At most 15 files each."""
    walks = re.split(r"^## ", (ROOT / "docs" / "architecture.md").read_text(), flags=re.MULTILINE)
    walks = [walk for walk in walks if re.match(r"One (event|training|evaluation)", walk)]
    assert len(walks) == 3
    for walk in walks:
        numbered = walk[walk.index("\n1. ") : walk.index(" files.")]
        files = set(re.findall(r"`([\w/]+\.py)`:", numbered))
        assert f"{len(files)} files." in walk
        assert len(files) <= 15
