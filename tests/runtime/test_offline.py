# SPDX-License-Identifier: MIT
"""In a daemon's place for a moment."""

import os
import threading
from collections.abc import Mapping

import pytest

from burst.config import Settings, parse
from burst.core.records import Records
from burst.errors import BurstError, Denied, LeadError, LeadGone, Transient
from burst.lead import JobFailures
from burst.model.burst import BurstId
from burst.model.fsd import format_fsd
from burst.model.hold import Hold, HoldState, decode_hold
from burst.model.jobid import JobId
from burst.model.lead import GuestAccess
from burst.model.request import BurstPreferences
from burst.runtime.offline import (
    read_orphans,
    read_records_snapshot,
    read_snapshot,
    release_held_jobs,
)
from burst.runtime.record_store import RecordStore
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from tests.builders import NODE, T0, burst_spec, identity, whole
from tests.fakes import FakeLead
from tests.support.waiting import growing_limits


def lead_with_holds(*urgencies: int, lead: FakeLead | None = None) -> FakeLead:
    lead = lead or FakeLead()
    jobs = [lead.submit(whole(1), urgency=0) for _ in urgencies]
    holds = {
        job: Hold(urgency=urgency, state=HoldState.HELD, since=T0)
        for job, urgency in zip(jobs, urgencies, strict=True)
    }
    ledger = RecordStore(lead.store())
    ledger.load(T0)
    ledger.write(Records(), Records(holds=holds))
    return lead


def recorded(lead: FakeLead, job: int) -> HoldState:
    return decode_hold(lead.disk.records[f"hold/{job}"]).state


def test_held_jobs_get_their_urgency_back_and_are_never_held_again() -> None:
    lead = lead_with_holds(16, 7)
    free, failures = release_held_jobs(lead, None)
    assert (free, failures) == ([1, 2], {})
    assert [job.urgency for job in lead.jobs.values()] == [16, 7]
    assert recorded(lead, 1) is recorded(lead, 2) is HoldState.TAKEN_BACK


def test_jobs_that_a_rule_marked_are_shown_and_released_too() -> None:
    lead = lead_with_holds(16, 7)
    lead.unmarked = set(lead.jobs)
    assert read_records_snapshot(lead, Settings()).records.holds.keys() == {1, 2}
    seen = read_snapshot(lead, Settings(), {}).world.lead
    assert seen is not None
    assert seen.jobs.keys() == {1, 2}
    assert release_held_jobs(lead, [JobId(1)]) == ([1], {})
    assert recorded(lead, 2) is HoldState.HELD


def test_what_cannot_be_released_is_told_and_stays_on_record_as_held() -> None:
    class SecondEnds(FakeLead):
        def release(self, urgencies: Mapping[JobId, int]) -> JobFailures:
            self.finish(JobId(2))
            failures: JobFailures = super().release(urgencies)
            return failures

    lead = lead_with_holds(16, 7, lead=SecondEnds())
    # A job that is not held is refused before anything is done.
    with pytest.raises(BurstError, match="burst knows no job ƒA: it has ended"):
        release_held_jobs(lead, [JobId(1), JobId(9)])
    assert lead.jobs[JobId(1)].urgency == 0
    free, failures = release_held_jobs(lead, None)
    assert (free, dict(failures)) == ([1], {2: "not pending"})
    assert recorded(lead, 2) is HoldState.HELD


def test_jobs_that_were_submitted_held_without_a_daemon_are_shown_and_released() -> (
    None
):
    lead = lead_with_holds(7, 7)
    lead.finish(JobId(2))
    new = lead.submit(whole(1), urgency=0, preferences=BurstPreferences(urgency=12))
    held = read_records_snapshot(lead, Settings()).records.holds
    assert {job: hold.urgency for job, hold in held.items()} == {1: 7, new: 12}

    assert release_held_jobs(lead, None) == ([1, new], {})
    assert lead.jobs[new].urgency == 12
    assert recorded(lead, new) is HoldState.TAKEN_BACK


def test_jobs_on_record_are_released_though_the_lead_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lead = lead_with_holds(16)
    lead.unreadable = True
    assert release_held_jobs(lead, None) == ([1], {})
    assert recorded(lead, 1) is HoldState.TAKEN_BACK
    assert "the lead cannot be read: job manager is reloading" in caplog.text
    lead.gone = True
    with pytest.raises(LeadGone):
        release_held_jobs(lead, None)


def test_who_asks_meanwhile_is_told_that_this_is_no_daemon() -> None:
    lead = lead_with_holds()
    release_held_jobs(lead, None)
    with pytest.raises(LeadError, match="this lead, as burst release is running"):
        lead.call("status", {})


def test_records_are_told_under_the_owner_tag_that_a_daemon_has() -> None:
    def owner(**table: str) -> str:
        settings = parse({"lead": table}, "x")
        return read_records_snapshot(FakeLead(), settings).world.identity.owner

    assert owner() == FakeLead().identity().owner
    assert owner(owner="site-a") == "site-a"
    # It is the Service's, which only a pod can ask for: no other is told in its place.
    assert owner(owner="service") == ""


def test_a_provider_that_cannot_answer_is_named() -> None:
    provider = FakeProvider("one")
    provider.next_observe_error = ValueError("odd")
    settings = parse({"providers": {"one": {"type": "fake"}}}, "x")
    with pytest.raises(BurstError, match="provider one: observe: ValueError: odd"):
        read_snapshot(FakeLead(), settings, {"one": provider})


def test_a_provider_that_hangs_is_named_in_time() -> None:
    provider = FakeProvider("one")
    provider.hang = released = threading.Event()
    settings = parse({"providers": {"one": {"type": "fake"}}}, "x")
    with pytest.raises(BurstError, match="provider one: offers: no answer"):
        read_snapshot(FakeLead(), settings, {"one": provider}, 0.2)
    released.set()


def test_orphans_are_found_although_a_provider_fails_and_another_hangs() -> None:
    cloud, owner = FakeCloud(), FakeLead().known.owner
    providers = {
        name: FakeProvider(name, FakeSettings(shape=NODE), owner, cloud)
        for name in ("hangs", "fails", "works")
    }
    providers["hangs"].hang = released = threading.Event()
    spec = burst_spec(BurstId("burst-1-0rphan"), "burst-1-0")
    providers["works"].provision(spec)
    for limit in growing_limits():
        providers["fails"].next_observe_error = Transient("no route to host")
        found, failed = read_orphans(FakeLead(), providers, limit)
        if failed.keys() == {"hangs", "fails"} and found:
            break
    released.set()

    assert [(orphan.provider, orphan.burst) for orphan in found] == [
        ("works", "burst-1-0rphan")
    ]
    assert failed == {
        "hangs": f"no answer within {format_fsd(limit)}",
        "fails": "no route to host",
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="Flux gives root alone other rights")
def test_root_is_not_told_of_another_users_orphans() -> None:
    theirs = identity(owner_userid=1, access=GuestAccess(allow_root_owner=True))
    with pytest.raises(Denied, match="; run it as daemon: runuser") as info:
        read_orphans(FakeLead(known=theirs), {})
    assert "started" not in str(info.value)
