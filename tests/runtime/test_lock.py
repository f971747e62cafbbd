# SPDX-License-Identifier: MIT
"""A daemon that takes over reads the records once it holds the lead's service."""

import os
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from burst.errors import Denied
from burst.lead import admit_all
from burst.model.lead import GuestAccess
from burst.runtime.connect import require_owner
from burst.runtime.session import Session
from burst.wakeup import WakeUp
from tests.builders import identity, settings, whole
from tests.fakes import FakeLead
from tests.sim import Sim


class TakenOver(FakeLead):
    """Calls `at_serve` just before a daemon has its service."""

    at_serve: Callable[[], None]

    def serve(self, handler, holder, admit=admit_all):
        self.at_serve()
        super().serve(handler, holder, admit)


def test_what_the_other_daemon_wrote_last_is_known_and_no_slot_is_leased_twice():
    lead = TakenOver()
    before = Sim.at_rest(lead)

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


ROOTS_TOO = GuestAccess(allow_guest_user=True, allow_root_owner=True)


def test_root_is_no_daemon_of_another_users_instance() -> None:
    """Though Flux gives root the rights of the owner."""
    for owner in 1, 2**32 - 2:
        known = identity(owner_userid=owner, access=ROOTS_TOO)
        with pytest.raises(Denied, match=r"this is uid 0: .*; run it as"):
            require_owner(known, 0)


@pytest.mark.parametrize(
    ("owner", "access", "user"),
    [
        (0, ROOTS_TOO, 0),
        (1000, ROOTS_TOO, 1000),
        (None, ROOTS_TOO, 0),
        # By ssh, which root or somebody else may have typed.
        (1000, GuestAccess(), 0),
        (1000, ROOTS_TOO, 7),
    ],
)
def test_all_others_are_judged_by_flux(owner, access, user) -> None:
    require_owner(identity(owner_userid=owner, access=access), user)


def test_a_daemon_that_may_not_start_serves_nothing() -> None:
    other = identity(owner_userid=1, access=ROOTS_TOO)
    lead = FakeLead(known=other)
    session = Session(lead, settings(), WakeUp(), Future)
    if os.geteuid():
        session.start()
    else:
        with pytest.raises(Denied):
            session.start()
    assert hasattr(lead, "handler") == bool(os.geteuid())
    session.close()
