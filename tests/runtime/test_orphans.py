# SPDX-License-Identifier: MIT
"""Orphans take the same way as bursts: deleted until nothing of them is left."""

import threading

import pytest

from burst.core.orphans import Orphan, find_orphans
from burst.core.provider_health import Outcome
from burst.core.records import Records
from burst.errors import Refused, Transient
from burst.model.burst import BurstId
from burst.runtime.last_call import describe_reap
from burst.runtime.reap_bursts import answer_within, reap_until_gone
from burst.testing import FakeProvider
from tests.builders import burst_spec, but
from tests.sim import Sim
from tests.support.waiting import HANG_S

ORPHAN = BurstId("burst-1-0rphan")


def leave(s):
    """Have something exist that bears our tag and has no record."""
    s.provider.provision(burst_spec(ORPHAN, "burst-1-0", "burst-1-1"))


def with_orphan():
    """Return a daemon that knows of one."""
    s = Sim.at_rest()
    s.joins = False
    leave(s)
    s.until(lambda: bool(s.engine.snapshot.orphans))
    return s


def reaps(s):
    return sum(call.method == "reap" for call in s.provider.calls)


def test_it_is_deleted_until_nothing_is_left_whatever_fails(caplog):
    caplog.set_level("INFO")
    s = with_orphan()
    s.provider.ends_after = 3
    s.provider.next_reap_error = Transient("busy")
    # Never without a person's request.
    s.tick(61)
    assert not reaps(s)
    s.engine.reap_orphans(s.engine.snapshot.orphans)
    s.tick(30)

    assert s.cloud.bursts == {}
    assert s.engine.snapshot.orphans == ()
    said = [record.getMessage() for record in caplog.records]
    about = f"{ORPHAN} of provider local"
    assert [text for text in said if text.startswith(about)] == [
        f"{about} cannot be deleted yet: busy",
        f"{about} is being deleted",
        f"{about} is gone",
    ]
    # The first failed, the last hears that it is gone.
    assert 3 <= reaps(s) <= 6


def test_what_came_of_it_is_known():
    s = with_orphan()
    s.provider.listed_still = 30
    s.engine.reap_orphans(s.engine.snapshot.orphans)
    s.tick(5)

    (call,) = s.engine.snapshot.reaps.values()
    assert call.outcome is Outcome.NOT_FOUND
    # It is listed for a while yet, and is not asked for all the time.
    before = reaps(s)
    s.tick(10)
    assert reaps(s) == before


def test_a_refusal_to_delete_it_is_paced_and_disables_the_provider():
    s = with_orphan()
    s.engine.reap_orphans(s.engine.snapshot.orphans)
    for _ in range(120):
        s.provider.next_reap_error = Refused("no right to delete")
        s.tick()
    assert reaps(s) == 7
    assert s.records.health["local"].disabled == "no right to delete"


def test_what_has_a_live_record_by_now_is_not_deleted():
    """As after `run-burst`, or of a record that could not be read for a moment."""
    s = Sim.at_rest()
    s.run_job()
    it = Orphan("local", s.burst.id, "it has no record", s.burst.lease.hosts)
    s.engine.reap_orphans([it])
    s.tick(5)
    assert not reaps(s)


def test_what_has_a_live_record_is_nobodys_orphan():
    s = Sim.at_rest(deadlines={"idle": "5s"})
    job = s.run_job()
    world = s.engine.snapshot.world
    other = {**world.providers, "second": world.providers["local"]}
    seen = but(world, providers=other)
    records = s.records

    assert find_orphans(records, seen, s.now) == ()
    found = find_orphans(Records(), seen, s.now)
    assert {orphan.provider for orphan in found} == {"local", "second"}
    s.end_job(job)
    later = but(world.providers["local"], read_at=s.burst.since + 1)
    shown = but(world, providers={"local": later})
    assert find_orphans(s.records, shown, s.now)


def test_without_a_daemon_a_passing_fault_is_not_the_end():
    s = Sim()
    leave(s)
    s.provider.next_reap_error = Transient("busy", retry_after=0.01)
    told: list[str] = []

    def tell(key, call):
        told.append(describe_reap(key, call))

    assert reap_until_gone([("local", ORPHAN)], {"local": s.provider}, tell, 20.0) == {}
    assert s.cloud.bursts == {}
    assert told[0].endswith("busy")
    assert told[-1].endswith("is gone")

    class Stubborn(FakeProvider):
        def reap(self, burst_id):
            raise KeyError(burst_id)

    left = reap_until_gone([("local", ORPHAN)], {"local": Stubborn()}, tell, 0.5)
    assert left == {ORPHAN: f"KeyError: '{ORPHAN}'"}


def test_a_provider_that_hangs_does_not_keep_others_from_deleting():
    s, hanging = Sim(), FakeProvider()
    leave(s)
    hanging.hang = threading.Event()
    first, second = BurstId("burst-0-first"), BurstId("burst-0-second")
    told: list[str] = []

    def tell(key, call):
        told.append(describe_reap(key, call))

    bursts = [("hangs", first), ("hangs", second), ("works", ORPHAN)]
    left = reap_until_gone(
        bursts, {"hangs": hanging, "works": s.provider}, tell, 20.0, call_limit=0.3
    )
    assert left == {
        first: "reap did not return within 300ms",
        second: "not tried, as a call of provider hangs did not return",
    }
    assert s.cloud.bursts == {}
    assert f"{ORPHAN} of provider works is gone" in told
    assert told[-1] == (
        f"{first} of provider hangs cannot be deleted yet: reap did not return"
        " within 300ms"
    )
    # Its answer comes too late.
    hanging.hang.set()


def test_a_list_that_does_not_come_is_an_error():
    hangs = FakeProvider()
    assert answer_within(hangs.list_all, HANG_S, "provider hangs: list_all") == []
    hangs.next_list_all_error = Refused("no right to list")
    with pytest.raises(Refused, match="no right to list"):
        answer_within(hangs.list_all, HANG_S, "provider hangs: list_all")
    hangs.hang = threading.Event()
    with pytest.raises(Transient, match="hangs: list_all: no answer within 100ms"):
        answer_within(hangs.list_all, 0.1, "provider hangs: list_all")
    hangs.hang.set()
