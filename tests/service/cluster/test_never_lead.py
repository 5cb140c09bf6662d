"""A process that only follows: it answers, accepts writes, and never becomes the writer."""

from __future__ import annotations

import time
from dataclasses import replace

from members import QUICK, follows, members, open_member, role, wait_until

from felrec.data.events import EventColumns
from places import Place


def test_a_member_that_may_not_lead_leaves_writing_to_others(place: Place) -> None:
    with members(place, 1) as (writer,):
        reader = open_member(place, replace(QUICK, may_lead=False))
        try:
            given = EventColumns.of(["ada", "bob"], ["tea", "jam"], [1e9, 1e9])
            assert reader.submit(given).result(30).events == 2
            wait_until(lambda: follows(reader, writer))
            writer.close()
            time.sleep(2 * QUICK.lease_seconds)  # any other member would have the lease by now
            assert role(reader) == "reader"
            assert reader.recommend("ada", 5).items
        finally:
            reader.close(drain=False)
