"""A long random walk: post, repeat, put, delete, ask, erase and restart, beside a model of what was acknowledged."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field

from attacks.target import Code, Row, Service
from attacks.verdict import Attack, Finding, judge

STEPS, SEED = 10_000, int(os.environ.get("FELREC_ATTACK_SEED", "1"))
USERS, ITEMS = [f"u{n}" for n in range(40)], [f"i{n}" for n in range(60)]
RESTARTS = 20  # how often the service is killed or stopped in a walk
GROWTH = 128.0  # megabytes


@dataclass
class Known:
    """What a service must know: the events of each user in order of ingestion, and the attributes of items."""

    events: dict[str, list[str]] = field(default_factory=dict)
    attributes: dict[str, str | None] = field(default_factory=dict)  # title; None: deleted
    posts: list[tuple[str, list[Row], Row]] = field(default_factory=list)  # key, body and receipt

    def count(self) -> int:
        """All events."""
        return sum(map(len, self.events.values()))

    def items(self) -> set[str]:
        """Items that have events."""
        return {item for items in self.events.values() for item in items}

    def take(self, rows: list[Row]) -> None:
        """Note acknowledged events."""
        for row in rows:
            self.events.setdefault(row["user"], []).append(row["item"])


@dataclass
class Walk:
    """One service and what it must know. `wrong` lists every contradiction."""

    service: Service
    known: Known
    random: random.Random
    statuses: Counter[int]
    wrong: list[str]

    def step(self) -> None:
        """One request, chosen at random, and what it must answer."""
        actions = (self.post, self.post, self.post, self.again, self.put, self.delete, self.ask, self.ask, self.erase)
        action = self.random.choice((*actions, self.history, self.item, self.odd))
        action()

    def send(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Row | None:
        """Send a request; its answer if it is 200. Only documented refusals are right."""
        answer = self.service.ask(method, path, body, headers)
        self.statuses[answer.status] += 1
        if answer.status >= 500:
            self.wrong.append(f"{answer.status} for {method} {path}")
        told: Row | None = answer.json() if answer.status == 200 else None
        return told

    def check(self, good: bool, what: str) -> None:
        """Note a contradiction."""
        if not good:
            self.wrong.append(what)

    def post(self) -> None:
        """Post events with a new key."""
        rows = [
            {"user": self.random.choice(USERS), "item": self.random.choice(ITEMS)}
            for _ in range(self.random.choice((1, 1, 2, 5, 30)))
        ]
        key = f"post-{len(self.known.posts)}-{self.random.random()}"
        told = self.send("POST", "/v1/interactions", rows, {"Idempotency-Key": key})
        if told is not None:
            self.check(told["accepted"] == len(rows), "a good event was not accepted")
            self.known.take(rows)
            self.known.posts.append((key, rows, told))

    def again(self) -> None:
        """Repeat an earlier post: the same receipt, and nothing is counted twice."""
        if self.known.posts:
            key, rows, receipt = self.random.choice(self.known.posts)
            told = self.send("POST", "/v1/interactions", rows, {"Idempotency-Key": key})
            self.check(told == receipt, "another receipt for the same post")

    def put(self) -> None:
        """Describe an item."""
        item, title = self.random.choice(ITEMS), f"title {self.random.randrange(1_000)}"
        if self.send("PUT", f"/v1/items/{item}", {"title": title, "tags": ["a", "b"]}) is not None:
            self.known.attributes[item] = title

    def delete(self) -> None:
        """Delete an item."""
        item = self.random.choice(ITEMS)
        there = self.is_item(item)
        status = self.service.ask("DELETE", f"/v1/items/{item}").status
        self.statuses[status] += 1
        self.check(
            status == (204 if there else 404), f"{status} for deleting an item that is {'' if there else 'not '}there"
        )
        if there:
            self.known.attributes[item] = None

    def is_item(self, item: str) -> bool:
        """Whether it was not deleted, and has events or attributes."""
        attributes = self.known.attributes
        return attributes[item] is not None if item in attributes else item in self.known.items()

    def ask(self) -> None:
        """Ask for recommendations: only items that are there."""
        told = self.send("GET", f"/v1/users/{self.random.choice([*USERS, 'stranger'])}/recommendations?k=100")
        if told is not None:
            shown = {item["id"] for item in told["items"]}
            self.check(
                all(map(self.is_item, shown)) and shown <= self.known.items(), "a deleted or unknown item is shown"
            )

    def erase(self) -> None:
        """Erase a user, seldom, so that there are some left."""
        user = self.random.choice(USERS)
        theirs = self.known.events.get(user)
        if self.random.random() < 0.8 and theirs:
            return
        told = self.send("DELETE", f"/v1/users/{user}")
        self.check((told is not None) == bool(theirs), "an erasure of someone unknown, or none of someone known")
        if told is not None and theirs:
            self.check(told["events"] == len(theirs), f"{told['events']} of {len(theirs)} events erased")
            gone = {*theirs} - {item for other, items in self.known.events.items() if other != user for item in items}
            del self.known.events[user]
            self._forget(gone)

    def _forget(self, items: set[str]) -> None:
        """Items that nobody else had: whether their attributes stay is the service's choice, so it is asked."""
        for item in items & self.known.attributes.keys():
            status = self.service.get(f"/v1/items/{item}").status
            if status == 404 and self.known.attributes[item] is not None:
                del self.known.attributes[item]

    def history(self) -> None:
        """A user's events, newest first."""
        user = self.random.choice(USERS)
        told = self.send("GET", f"/v1/users/{user}?limit=1000")
        theirs = self.known.events.get(user, [])
        shown = [] if told is None else [past["id"] for past in told["history"]]
        self.check(sorted(shown) == sorted(theirs[-1_000:]), f"{user}: {len(shown)} events, not {len(theirs)}")

    def item(self) -> None:
        """An item's title and number of events."""
        item = self.random.choice(ITEMS)
        told, there = self.send("GET", f"/v1/items/{item}"), self.is_item(item)
        self.check((told is not None) == there, f"an item is {'not ' if there else ''}there")
        if told is not None and there:
            self.check(told["title"] == self.known.attributes.get(item), "another title")

    def odd(self) -> None:
        """A request that is wrong."""
        body = self.random.choice(
            [{}, [], {"user": ""}, [{"user": "x", "item": None}], "x", {"user": "x", "item": "\ud800"}]
        )
        told = self.send("POST", "/v1/interactions", body)
        self.check(not told or not told["accepted"], "a bad event was accepted")


def walk(code: Code) -> Finding:
    steps, restarts = (300, 3) if code.quick else (STEPS, RESTARTS)
    known, chance, statuses, wrong = Known(), random.Random(SEED), Counter[int](), list[str]()
    peaks: list[float] = []
    with code.folder() as folder:
        store = folder / "store.sqlite"
        for part in range(restarts):
            with code.serving(store) as service:
                walker = Walk(service, known, chance, statuses, wrong)
                walker.check(service.stats()["events"] == known.count(), "events differ after a restart")
                for _ in range(steps // restarts):
                    walker.step()
                peaks.append(service.peak())
                if part % 2:
                    service.kill()
                else:
                    service.stop()
        verified = code.run("verify", store).returncode
    return judge(
        (f"seed {SEED}: {statuses.total():,} answers, {restarts} restarts, {known.count():,} events left", True),
        (f"{len(wrong)} contradictions{': ' if wrong else ''}{', '.join(wrong[:3])}", not wrong),
        (f"statuses {', '.join(f'{n:,} × {status}' for status, n in sorted(statuses.items()))}", True),
        (f"peak memory {peaks[0]:.0f} → {max(peaks):.0f} MB", max(peaks) - peaks[0] <= GROWTH),
        (f"verify exits with {verified}", verified == 0),
    )


ATTACKS = (
    Attack(
        "fuzz",
        f"{STEPS:,} random requests with {RESTARTS} restarts, half of them kill -9, beside a model",
        "no 5xx, nothing lost, no contradiction, memory bounded",
        walk,
        600,
    ),
)
