# SPDX-License-Identifier: MIT
"""A lead that is given another `[access]` while the daemon runs."""

import logging
from concurrent.futures import Future
from typing import Any

import pytest

from burst.errors import LeadGone, Unreadable
from burst.model.lead import GuestAccess
from burst.runtime.session import Session
from burst.wakeup import WakeUp
from tests.builders import but, identity, settings, whole
from tests.fakes import FakeLead
from tests.support.waiting import wait_until

OWNER, GUEST = 1000, 1234
OPEN = GuestAccess(allow_guest_user=True)
NOW = {"daemon": {"cadence": "1s"}}


class Reloaded(FakeLead):
    """Raises what it is given when its access is read."""

    trouble: Exception | None = None

    def read_access(self) -> GuestAccess:
        if self.trouble is not None:
            raise self.trouble
        return self.known.access

    def open_to_guests(self) -> None:
        self.known = but(self.known, access=OPEN, queues={"night": ()})


def begin() -> tuple[Reloaded, Session]:
    lead = Reloaded(known=identity(owner_userid=OWNER))
    return lead, Session(lead, settings(**NOW), WakeUp(), Future)


def tick_until(session: Session, holds: Any) -> None:
    def seen() -> bool:
        session.tick(0.05)
        return bool(holds())

    wait_until(seen, "the access to be read")


def test_its_users_are_guests_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    lead, session = begin()
    session.tick(0.0)
    assert not session.engine.snapshot.world.identity.is_guest(GUEST)
    lead.open_to_guests()
    tick_until(session, lambda: session.engine.snapshot.world.identity.access == OPEN)
    assert session.engine.snapshot.world.identity.is_guest(GUEST)
    job = lead.submit(whole(3), userid=GUEST)
    tick_until(session, lambda: job in lead.memos)
    assert caplog.text.count("the lead's [access]") == 1
    session.close()


def test_settings_that_were_read_before_do_not_bring_it_back() -> None:
    lead, session = begin()
    making = session.make_config(settings(**NOW))
    made = making.result()
    lead.open_to_guests()
    tick_until(session, lambda: session.engine.snapshot.world.identity.access == OPEN)
    session.replace(made)
    seen = session.engine.snapshot.world.identity
    assert (seen.access, seen.queues) == (OPEN, {"night": ()})
    session.close()


def test_what_cannot_be_read_is_asked_for_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lead, session = begin()
    lead.trouble = Unreadable("config.get: no answer")
    tick_until(session, lambda: "no answer; the daemon asks again" in caplog.text)
    lead.open_to_guests()
    lead.trouble = None
    tick_until(session, lambda: session.engine.snapshot.world.identity.access == OPEN)
    session.close()


def test_a_lead_that_is_gone_ends_the_session() -> None:
    lead, session = begin()
    lead.trouble = LeadGone("it is gone")
    with pytest.raises(LeadGone):
        tick_until(session, lambda: False)
    session.close()
