"""What each model took: epochs, CPU minutes, and CPU seconds per million events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from felrec.experiments.markdown import NONE, MarkdownTable, number
from felrec.experiments.runner import Result

MILLION = 1_000_000


def costs(results: Sequence[Result]) -> dict[str, dict[str, Any]]:
    """By trial, one for each run: trials that share a run were trained once."""
    first = {result.run: result for result in reversed(results)}
    return {result.trial.name: _cost(result) for result in results if first[result.run] is result}


def cost_table(found: dict[str, dict[str, Any]]) -> MarkdownTable:
    """The same as a table."""
    columns = (
        *("model", "epochs (best)", "gradients from", "train events", "lr"),
        *("CPU min planned", "CPU min used", "and to search lr", "train, s per million events", "test, s per million"),
    )
    rows = [
        (
            name,
            f"{c['epochs']} ({c['best_epoch']}){', then diverged' if c['diverged'] else ''}" if c["epochs"] else NONE,
            NONE if c["trained_share"] is None else f"{100 * c['trained_share']:.0f} %",
            f"{c['train_events']:,}",
            NONE if c["lr"] is None else f"{c['lr']:g}",
            number(c["planned_cpu_minutes"], 1),
            number(c["cpu_minutes"], 1),
            number(c["search_cpu_minutes"], 1),
            number(c["train_seconds_per_million"], 1),
            number(c["evaluate_seconds_per_million"], 1),
        )
        for name, c in found.items()
    ]
    caption = "Training and its cost in CPU time (a model without gradients: of taking the log in and choosing)"
    return MarkdownTable(caption, columns, rows)


def _cost(result: Result) -> dict[str, Any]:
    manifest, plan, cost = result.manifest, result.plan, result.cost
    events = manifest["split"]["train_end"]
    searched = sum(tried["cpu_seconds"] for tried in result.search.values()) if result.search else None
    learned = cost["train_events"] if plan else events
    return {
        "epochs": len(manifest.get("epochs", [])) or None,
        "best_epoch": manifest["best"]["epoch"] or None,
        "trained_share": plan.trained_share if plan else None,
        "train_events": events,
        "lr": manifest["training"]["lr"] if plan else None,
        "planned_cpu_minutes": plan.seconds / 60 if plan and plan.seconds else None,
        "cpu_minutes": (cost["train_seconds"] + cost["validation_seconds"]) / 60,
        "search_cpu_minutes": None if searched is None else searched / 60,
        "train_seconds_per_million": cost["train_seconds"] / learned * MILLION,
        "evaluate_seconds_per_million": _evaluation(result),
        "search": result.search,
        "diverged": manifest.get("diverged"),
    }


def _evaluation(result: Result) -> float | None:
    """As tested, or as measured before training where the test also replayed the log."""
    if result.report.cache == "kept":
        return result.test_seconds / len(result.report.results.events) * MILLION
    speed = result.plan.speed if result.plan else None
    return speed.validated_event * MILLION if speed else None
