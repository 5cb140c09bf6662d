"""Attacks on the ranking by a holder of a write key."""

from __future__ import annotations

from attacks.load import made_up_events
from attacks.target import Code
from attacks.verdict import Attack, Finding, judge

USERS, MOST = 200, 5


def push(code: Code) -> Finding:
    """One user takes a new item many times in one post."""
    checks = []
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all(made_up_events(2_000 if code.quick else 18_000, users=USERS))
        for events in (10, 100):
            item = f"pushed-{events}"
            status = service.post([{"user": f"pusher-{events}", "item": item}] * events).status
            shown = sum(item in service.top(f"u{n}") for n in range(USERS))
            checks.append((f"{events} events ({status}): in the top 10 of {shown} of {USERS} users", shown <= MOST))
    return judge(*checks)


ATTACKS = (
    Attack(
        "push",
        "one post of 10 and of 100 events by one user for a new item, after 18,000 events of others",
        f"in the top 10 of ≤ {MOST} of {USERS} users",
        push,
        300,
    ),
)
