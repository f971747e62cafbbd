# SPDX-License-Identifier: MIT
"""What bursts cost, and how long an idle one stays."""

import pytest

from burst.core import lifecycle
from burst.core.cost import cost, per_hour, seconds_until_drain, totals
from burst.core.money import ledger
from burst.core.money.ledger import Use, open_entry
from burst.core.plan.slots import find_slots
from burst.core.records import Records
from burst.model.burst import Burst
from burst.model.event import Event
from tests.builders import T0, but, identity, settings
from tests.lifecycles import LEASE, leased

HOUR = 3600.0


def made(*events: tuple[float, str]) -> Burst:
    """A burst of two nodes at 0.5 an hour, made at T0; events in hours after that."""
    lease = but(LEASE, created=T0, price=0.5)
    burst = lifecycle.begin(lease, {}, T0)
    contexts = {
        "online": {"ranks": "2-3"},
        "exception": {"type": "failed", "note": "so"},
    }
    for hours, name in events:
        event = Event(T0 + hours * HOUR, name, contexts.get(name, {}))
        burst = lifecycle.apply(burst, event)
    assert not burst.quarantined
    return burst


ASKED = (1.0, "provision-start")
UP = (ASKED, (1.5, "provision-finish"), (2.0, "online"))


def test_it_costs_from_when_its_provider_is_asked_until_it_is_gone() -> None:
    planned, asked = made(), made(ASKED)
    gone = made(ASKED, (2.0, "exception"), (3.0, "reaped"))
    at = T0 + 5 * HOUR
    assert LEASE.nodes == 2
    assert (per_hour(planned), cost(Records(), planned, at)) == (0.0, 0.0)
    assert (per_hour(asked), cost(Records(), asked, at)) == (1.0, 4.0)
    assert (per_hour(gone), cost(Records(), gone, at)) == (0.0, 2.0)
    with_fee = leased(asked, fee=0.25)
    assert (per_hour(with_fee), cost(Records(), with_fee, at)) == (1.25, 5.0)
    assert cost(Records(), asked, T0) == 0.0, "a clock that was set back"


def test_what_is_booked_is_what_it_costs() -> None:
    """Of nodes by which it grows the ledger counts those that are there."""
    burst, now = made(*UP), T0 + 3 * HOUR
    entry = open_entry(burst.lease, now, {}, T0)
    entry = ledger.count(entry, Use("boot"), T0 + HOUR, joined=False)
    entry = ledger.count(entry, Use("idle"), T0 + 2 * HOUR, joined=True)
    grows = ledger.resize(entry, 4, T0 + 2 * HOUR)
    grows = ledger.count(grows, Use("idle", absent=2), T0 + 2 * HOUR, joined=True)
    booked = Records(entries={burst.id: grows})
    assert cost(booked, burst, now) == 2.0
    settled = ledger.settle(grows, now)
    assert cost(Records(settled={burst.id: settled}), burst, now + HOUR) == 2.0


@pytest.mark.parametrize(
    ("idle", "hours", "left"),
    [("2h", 3.0, HOUR), ("2h", 4.0, 0.0), ("2h", 4.1, None), ("inf", 3.0, None)],
)
def test_an_idle_burst_has_so_long(idle: str, hours: float, left: float | None) -> None:
    burst, known = made(*UP, (2.0, "idle")), settings(deadlines={"idle": idle})
    assert seconds_until_drain(burst, known, T0 + hours * HOUR) == left


def test_an_idle_burst_has_less_where_it_costs_less_to_make_it_again() -> None:
    burst = but(made(*UP, (2.0, "idle")), keep_idle=1800.0)
    for idle, left in (("2h", 1800.0), ("inf", 1800.0), ("10m", 600.0)):
        known = settings(deadlines={"idle": idle})
        assert seconds_until_drain(burst, known, T0 + 2 * HOUR) == left


def test_a_burst_that_is_busy_or_not_up_is_not_about_to_go() -> None:
    for burst in (made(*UP), made(ASKED), made(*UP, (2.0, "idle"), (2.1, "busy"))):
        assert seconds_until_drain(burst, settings(), T0) is None


def rows(*states: str, isolated: str | None = None) -> list[dict[str, object]]:
    its = {"nodes": 2, "per_hour": 1.05, "cost": 7.1, "isolated": isolated}
    return [{"state": state, **its} for state in states]


def test_totals_are_of_live_bursts_and_of_what_there_can_be() -> None:
    slots = find_slots(identity("lead-0,burst-0-[0-3],burst-1-[0-3]"))
    found = totals(rows("online", "reap", "inactive"), slots, settings())
    assert found == {"nodes": 4, "of": 8, "per_hour": 2.1, "cost": 14.2}
    limited = settings(limits={"max_nodes": 6})
    assert totals(rows("online"), slots, limited)["of"] == 6
    smaller = totals(rows("online"), [], settings())
    assert smaller["of"] == smaller["nodes"]
    alone = rows("online", isolated="job")
    assert totals(alone, slots, settings())["of"] is None
    assert totals(alone, slots, limited)["of"] == 6
    assert totals([], slots, settings())["nodes"] == 0
