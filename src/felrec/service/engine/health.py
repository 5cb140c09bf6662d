"""The health of an engine, whether it writes itself or follows another process."""

from __future__ import annotations

from felrec.answers.statistics import Membership
from felrec.errors import StoreLost
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.committer import Commits, Committer
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Health
from felrec.store.protocol import Store

COLD = 5  # an item with fewer events is cold


def health_of(
    state: ServingState,
    store: Store,
    limits: Limits,
    exposure: Exposure,
    clock: SteadyClock,
    *,
    started: float,
    queue_depth: int,
    committer: Committer | None,  # None: another process writes
    membership: Membership | None = None,  # None: no other process may write
    unready: str | None = None,
) -> Health:
    """Status and statistics; never waits for the writer."""
    commits, trouble = committer.commits if committer else Commits(), store.trouble()
    events = state.index.item_events
    problem = str(trouble) if trouble else commits.problem
    if committer and committer.broken and membership is None:
        unready = "restart the service; its log says why"
    if isinstance(trouble, StoreLost):
        unready = "the files of its store were removed or replaced; put them back, then restart the service"
    return Health(
        ready=unready is None,
        unready=unready,
        durable=problem is None,
        problem=problem,
        model=state.model.name,
        events=state.events,
        journal=state.journal,
        users=state.users.known,
        items=state.items.known,
        described_items=len(state.attributes),
        users_limit=limits.users,
        items_limit=limits.items,
        memory_limit=limits.memory,
        cold_items=int(((events > 0) & (events < COLD)).sum()),
        queue_depth=queue_depth,
        queue_limit=limits.queue,
        clock=state.clock if state.events else 0.0,
        clock_problem=clock.problem(state.clock, limits.future_seconds),
        last_commit_ms=1_000 * commits.seconds,
        commits=commits.count,
        unsaved_blocks=committer.saver.unsaved if committer else 0,
        answers=exposure.work.answers,
        items_scored=exposure.work.items_scored,
        pruned=state.scorer.prunes,
        last_batch_ms=1_000 * commits.applied_seconds,
        store_bytes=store.size(),
        rebuilding=committer.rebuilding.running if committer else False,
        started=started,
        membership=membership,
    )
