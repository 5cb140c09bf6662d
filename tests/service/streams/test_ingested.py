"""Consumers that die, are paused, and servers that forget: each entry is ingested once."""

from __future__ import annotations

import copy
from collections import Counter
from random import Random

import pytest

from felrec.service.streams.ingested import Id, Ingested

ENTRIES = [(1_000 + n // 3, n % 3) for n in range(60)]


class Group:
    """What a Redis server knows of a consumer group."""

    def __init__(self) -> None:
        self.last: Id = (0, 0)
        self.pending: dict[Id, int] = {}  # and to which consumer it was given

    def deliver(self, consumer: int, most: int) -> list[Id]:
        given = [entry for entry in ENTRIES if entry > self.last][:most]
        self.last = given[-1] if given else self.last
        self.pending.update(dict.fromkeys(given, consumer))
        return given


class World:
    """A group, a store with a note, and consumers that each have a batch in hand and do one small thing at a time."""

    def __init__(self, seed: int, consumers: int) -> None:
        self.random = Random(seed)
        self.group, self.saved = Group(), Group()
        self.note: str | None = None
        self.appended: Counter[Id] = Counter()
        self.hands: list[list[Id]] = [[] for _ in range(consumers)]
        self.steps: list[tuple[str | None, list[Id], list[Id], str] | None] = [None] * consumers

    def read(self, consumer: int) -> None:
        most = self.random.randint(1, 6)
        own = [entry for entry, owner in self.group.pending.items() if owner == consumer]
        others = [entry for entry, owner in self.group.pending.items() if owner != consumer]
        if own and self.random.random() < 0.5:
            self.hands[consumer] = own[:most]
        elif others and self.random.random() < 0.3:  # also of consumers that are only slow
            self.hands[consumer] = self.random.sample(others, min(most, len(others)))
            self.group.pending.update(dict.fromkeys(self.hands[consumer], consumer))
        else:
            self.hands[consumer] = self.group.deliver(consumer, most)
        self.steps[consumer] = None

    def compare(self, consumer: int) -> None:
        before = Ingested.of_note(self.note)
        known = [entry for entry in self.hands[consumer] if entry in before or entry <= self.group.last]
        fresh = [entry for entry in known if entry not in before]
        after = before.after(fresh, self.group.last, self.group.pending, (0, 0)).to_note()
        self.steps[consumer] = self.note, fresh, known, after

    def append_and_acknowledge(self, consumer: int) -> None:
        step = self.steps[consumer]
        if step is None:
            return
        expected, fresh, known, after = step
        if fresh and self.note != expected:
            self.steps[consumer] = None  # compare again
            return
        if fresh:
            self.note = after
            self.appended.update(fresh)
        if self.random.random() < 0.8:  # else it dies in between
            for entry in known:
                self.group.pending.pop(entry, None)
        self.hands[consumer], self.steps[consumer] = [], None

    def save(self, _: int) -> None:
        self.saved = copy.deepcopy(self.group)

    def restart(self, _: int) -> None:
        self.group = copy.deepcopy(self.saved)

    def die(self, consumer: int) -> None:
        self.hands[consumer], self.steps[consumer] = [], None


@pytest.mark.parametrize("consumers", [1, 2, 4])
def test_each_entry_is_ingested_once(consumers: int) -> None:
    for seed in range(25):
        world = World(seed, consumers)
        often = [world.read, world.compare, world.append_and_acknowledge] * 8
        actions = [*often, world.die, world.save, world.restart]
        for _ in range(400):
            world.random.choice(actions)(world.random.randrange(consumers))
        for _ in range(1_200):  # all goes well again
            world.random.choice(often)(world.random.randrange(consumers))
        assert world.appended == Counter(ENTRIES), seed
        assert all(entry in Ingested.of_note(world.note) for entry in ENTRIES)
        assert len(Ingested.of_note(world.note).missing) == 0


def test_entries_that_were_deleted_are_forgotten() -> None:
    before = Ingested((9, 0), frozenset({(3, 0), (5, 0)}))
    assert before.after([(10, 0)], (10, 0), [], first=(4, 0)).missing == {(5, 0)}
