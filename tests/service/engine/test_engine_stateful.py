"""Whatever is done to an engine, in whatever order, it knows what a list of events and a dictionary would know."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from felrec.answers.types import Receipt
from felrec.errors import NotFound
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.replaying import replay_store
from felrec.store.sqlite import SqliteStore
from stores import contents_of, fitted, open_engine, post, rebuilt, state_of

USERS, ITEMS, TAGS = ("ada", "bob", "cy", "dee"), ("tea", "milk", "salt", "rice", "plum", "kale"), ("red", "new")
TIMES = st.integers(1_000, 1_050).map(float)  # few, so that events tie and come late
EVENTS = st.lists(st.tuples(st.sampled_from(USERS), st.sampled_from(ITEMS), TIMES), min_size=1, max_size=8)
ATTRIBUTES = st.builds(
    Attributes,
    st.sampled_from([None, "A title"]),
    st.sets(st.sampled_from(TAGS)).map(tuple),
    st.booleans(),
    **dict.fromkeys(("available_from", "expires", "variant_of"), st.none()),
)
Event = tuple[str, str, float]  # user, item, time


class EngineMachine(RuleBasedStateMachine):
    """An engine and its plain twin."""

    model = "felrec-s"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "0"
        self.engine = self.opened()
        self.events: list[Event] = []  # in the order in which they were ingested
        self.attributes: dict[str, Attributes | None] = {}  # None: the item was deleted
        self.receipts: list[Receipt] = []  # of posts, whose number is their key

    def opened(self) -> Engine:
        return open_engine(self.path, fitted(self.model))

    def teardown(self) -> None:
        self.engine.close()
        self.folder.cleanup()

    @rule(events=EVENTS)
    def post(self, events: list[Event]) -> None:
        self.receipts.append(self.send(events, len(self.receipts)))
        self.events += sorted(events, key=lambda event: event[2])
        assert self.receipts[-1].accepted == len(events)
        assert self.receipts[-1].events == len(self.events)

    @precondition(lambda self: self.receipts)
    @rule(data=st.data())
    def post_again(self, data: st.DataObject) -> None:
        key = data.draw(st.integers(0, len(self.receipts) - 1))
        assert self.send([("eve", "never ingested", 2_000.0)], key) == self.receipts[key]

    def send(self, events: list[Event], key: int) -> Receipt:
        return post(self.engine, events, IdempotencyKey(str(key), b"the same body"))

    @rule(item=st.sampled_from(ITEMS), attributes=ATTRIBUTES)
    def put(self, item: str, attributes: Attributes) -> None:
        self.engine.put_item(item, attributes).result()
        self.attributes[item] = attributes

    @rule(item=st.sampled_from(ITEMS))
    def delete(self, item: str) -> None:
        if self.is_item(item):
            self.engine.delete_item(item).result()
            self.attributes[item] = None
        else:
            with pytest.raises(NotFound):
                self.engine.delete_item(item).result()

    @rule(user=st.sampled_from(USERS))
    def erase(self, user: str) -> None:
        theirs = self.items_of(user)
        if not theirs:
            with pytest.raises(NotFound):
                self.engine.erase_user(user).result()
            return
        self.events = [event for event in self.events if event[0] != user]
        erasure = self.engine.erase_user(user).result()
        shared = {*theirs} & {item for _, item, _ in self.events}
        assert (erasure.events, erasure.items_rewritten) == (len(theirs), len(shared))
        assert erasure.items_removed == len({*theirs} - shared)
        for item in {*theirs} - shared:  # the item is gone, with what the platform said of it
            self.attributes.pop(item, None)

    @rule()
    def rebuild(self) -> None:
        self.engine._ingest.run(lambda: [*rebuilt(self.engine)]).result()

    @rule()
    def restart(self) -> None:
        state = state_of(self.engine)
        self.engine.close()
        self.engine = self.opened()
        assert state_of(self.engine) == state

    @rule()
    def replay(self) -> None:
        self.engine.close()
        old, self.path = self.path, self.path.with_name(str(int(self.path.name) + 1))
        with SqliteStore(self.path) as new:
            replay_store(contents_of(old), fitted(self.model), new, None)
        self.engine = self.opened()

    def items_of(self, user: str) -> list[str]:
        return [item for name, item, _ in self.events if name == user]

    def is_item(self, item: str) -> bool:
        """Whether it was not deleted, and has events or attributes."""
        return self.attributes.get(item, Attributes()) is not None and (
            item in self.attributes or any(item == one for _, one, _ in self.events)
        )

    def recommendable(self) -> dict[str, Attributes]:
        """Items with events that are neither deleted nor marked as unavailable."""
        known = {item: self.attributes.get(item, Attributes()) for _, item, _ in self.events}
        return {item: of for item, of in known.items() if of is not None and of.available}

    @invariant()
    def the_numbers_agree(self) -> None:
        health, users, items = (
            self.engine.health(),
            {*(u for u, _, _ in self.events)},
            {*(i for _, i, _ in self.events)},
        )
        assert (health.ready, health.durable) == (True, True)
        assert (health.events, health.journal) == (len(self.events), len(self.events))
        assert (health.users, health.items) == (len(users), len(items))
        assert health.clock == max((time for _, _, time in self.events), default=0.0)

    @invariant()
    def users_and_histories_agree(self) -> None:
        known = {user.id: user.events for user in self.engine.search_users("", 100)}
        assert known == {user: len(self.items_of(user)) for user in USERS if self.items_of(user)}
        for user in known:
            history = [(user, past.id, past.timestamp) for past in self.engine.user(user).history]
            assert history == [event for event in self.events if event[0] == user][::-1]

    @invariant()
    def items_and_attributes_agree(self) -> None:
        counts = {item: sum(item == one for _, one, _ in self.events) for item in ITEMS}
        listed = {item.id: item.events for item in self.engine.search_items("", 100)}
        assert listed == {item: n for item, n in counts.items() if n and self.is_item(item)}
        for item in ITEMS:
            if self.is_item(item):
                info = self.engine.item(item)
                assert Attributes(info.title, info.tags, info.available) == self.attributes.get(item, Attributes())
                assert info.events == counts[item]
            else:
                with pytest.raises(NotFound):
                    self.engine.item(item)

    @invariant()
    def only_what_may_be_recommended_is(self) -> None:
        items = self.recommendable()
        for user in (*USERS, "a stranger"):
            assert self.recommended(user) == {*items}
            assert self.recommended(user, exclude_seen=True) == {*items} - {*self.items_of(user)}
        for tag in TAGS:
            tagged = {item.id for item in self.engine.recommend("ada", 100, tags=[tag], exclude_seen=False).items}
            assert tagged == {item for item, of in items.items() if tag in of.tags}

    def recommended(self, user: str, exclude_seen: bool = False) -> set[str]:
        answer = self.engine.recommend(user, 100, exclude_seen=exclude_seen)
        assert answer.known == bool(self.items_of(user))
        return {item.id for item in answer.items}


class RepeatMachine(EngineMachine):
    """The same with a model that cannot forget: erasing a user rebuilds it."""

    model = "repeat"


# A failure is shown as it was found, some ten steps: to look for a shorter one would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
EngineMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None, phases=PHASES)
RepeatMachine.TestCase.settings = EngineMachine.TestCase.settings
TestFELRecS = EngineMachine.TestCase
TestRepeat = RepeatMachine.TestCase
