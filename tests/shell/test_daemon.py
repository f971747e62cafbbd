# SPDX-License-Identifier: MIT
"""How a daemon begins, and begins again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from burst.config import LeadSettings, Seconds, Settings
from burst.daemon import Daemon
from burst.errors import LeadError, LeadGone, ServiceTaken, Unreadable
from tests.fakes import FakeLead


class LeadAtListen(FakeLead):
    """Calls `at_listen` when a daemon has begun."""

    at_listen: Callable[[], None]

    def listen(self, wake):
        self.at_listen()


class StartingLead(FakeLead):
    """Its broker takes connections, and has no resources yet."""

    def identity(self):
        raise Unreadable("resource.status: nobody serves it")


class AbsentLead(FakeLead):
    """There is no broker."""

    def identity(self):
        raise LeadGone("cannot connect")


class TakenLead(FakeLead):
    """Another daemon serves it."""

    def serve(self, handler, holder):
        raise ServiceTaken("another daemon serves this lead")


class GoingLead(FakeLead):
    """It is gone as soon as it is looked at."""

    def observe(self):
        raise LeadGone("the connection is lost")


def daemon_of(leads: list[FakeLead], reconnect: float = 60.0) -> Daemon:
    """Return a daemon that finds one lead after the other, and the last for ever."""
    left = iter(leads)

    def connector(_: str, __: str) -> FakeLead:
        return next(left, leads[-1])

    lead = LeadSettings(reconnect=Seconds(reconnect))
    settings = msgspec.structs.replace(Settings(), lead=lead)
    return Daemon(lambda: settings, None, connector)


@pytest.mark.parametrize("before", [[], [GoingLead()]], ids=["at first", "once gone"])
def test_a_lead_that_is_still_starting_is_waited_for(before: list[FakeLead]) -> None:
    starting, up = StartingLead(), LeadAtListen()
    daemon = daemon_of([*before, starting, up])
    up.at_listen = daemon.stop
    daemon.run()
    assert starting.closed
    assert up.closed


def test_a_lead_that_stays_away_is_given_up_with_what_was_wrong_with_it() -> None:
    daemon = daemon_of([StartingLead()], reconnect=0.0)
    with pytest.raises(LeadError, match=r"did not come back within 0s: resource\.st"):
        daemon.run()


def test_a_lead_that_is_not_there_at_first_is_not_waited_for() -> None:
    lead = AbsentLead()
    with pytest.raises(LeadGone):
        daemon_of([lead]).run()
    assert lead.closed


def test_a_lead_that_another_daemon_has_is_left_to_it() -> None:
    taken = TakenLead()
    with pytest.raises(ServiceTaken):
        daemon_of([GoingLead(), taken]).run()
    assert taken.closed


def test_a_daemon_that_is_told_to_stop_looks_no_longer() -> None:
    lead = StartingLead()
    daemon = daemon_of([lead])
    daemon.stop()
    daemon.run()
    assert lead.closed
