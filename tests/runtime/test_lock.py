# SPDX-License-Identifier: MIT
"""A daemon that takes over reads the records once it holds the lead's service."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from burst.runtime.session import Session
from burst.wakeup import WakeUp
from tests.builders import settings, whole
from tests.fakes import FakeLead
from tests.sim import Sim


class TakenOver(FakeLead):
    """Calls `at_serve` just before a daemon has its service."""

    at_serve: Callable[[], None]

    def serve(self, handler, holder):
        self.at_serve()
        super().serve(handler, holder)


def test_what_the_other_daemon_wrote_last_is_known_and_no_slot_is_leased_twice():
    lead = TakenOver()
    before = Sim(lead)
    before.tick(2)

    def last_tick():
        lead.submit(whole(4))
        before.tick()

    lead.at_serve = last_tick
    after = Session(lead, settings(), WakeUp(), Future)
    assert not after.engine.snapshot.records.bursts

    after.start()

    assert after.engine.snapshot.records.bursts.keys() == {before.burst.id}
    after.tick(0.0)
    known = after.engine.snapshot.records
    assert known.bursts.keys() == {before.burst.id}
    assert known.holds.keys() == before.engine.snapshot.records.holds.keys()
    after.close()
