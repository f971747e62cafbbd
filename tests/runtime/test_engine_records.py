# SPDX-License-Identifier: MIT
"""An engine whose records are to stay small, and of which one may be spoilt."""

import logging
from collections.abc import Mapping

import pytest

from burst.config import LimitSettings
from burst.core.actions import DrainBurst, ProvisionBurst
from burst.core.lifecycle import apply, begin
from burst.core.provider_health import FailureRecord, Health
from burst.core.records import RecordChanges
from burst.core.tick import result_of
from burst.errors import StoreError
from burst.model.burst import Burst, BurstId, State
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.runtime.stored_records import StoredRecords
from tests.builders import T0, but, whole
from tests.fakes import MemoryStore
from tests.lifecycles import LEASE
from tests.sim import Sim

HUGE = "x" * 2_000_000


def huge(name: str) -> Burst:
    """A burst whose lease alone is more than a store takes."""
    lease = but(LEASE, id=BurstId(name), provider=HUGE)
    return begin(lease, {JobId(7): T0}, T0)


def put(tx: RecordChanges, burst: Burst) -> None:
    """Put a burst on record."""
    tx.bursts[burst.id] = burst
    tx.events.append((burst.id, Event(T0, "submit")))


def test_a_new_burst_whose_record_is_too_large_is_not_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sim = Sim.at_rest()
    new = huge("burst-0-ffffff")

    def command(tx):
        put(tx, new)
        tx.actions += [ProvisionBurst(new.id), DrainBurst(frozenset({2}), "x")]
        return "done"

    with caplog.at_level(logging.INFO):
        answer = sim.engine.post(command)
        sim.tick()
    assert answer.result() == "done"
    assert new.id not in sim.records.bursts
    assert not [call for call in sim.provider.calls if call.method == "provision"]
    assert "records larger than 1048576 bytes: burst/burst-0-ffffff" in caplog.text
    assert sim.lead.drained == {2: "x"}
    # Others go on.
    sim.run_job()


def test_one_that_cannot_be_encoded_beside_one_that_is_too_large() -> None:
    class Odd(MemoryStore):
        def write(self, changes: Mapping[str, str | None]) -> None:
            if any(key.startswith("burst/") for key in changes):
                raise UnicodeEncodeError("utf-8", "x", 0, 1, "not allowed")
            super().write(changes)

    records = StoredRecords(Odd(), T0, LimitSettings())
    other = but(LEASE, id=BurstId("burst-1-ffffff"))
    bursts = huge("burst-0-ffffff"), begin(other, {JobId(8): T0}, T0)
    tx = RecordChanges(records.now, T0)
    for burst in bursts:
        put(tx, burst)
    tx.actions.append(ProvisionBurst(other.id))
    with pytest.raises(StoreError, match="cannot be encoded: UnicodeEncodeError"):
        records.keep(result_of(tx), T0)
    assert records.trouble is not None


def test_a_record_that_grew_too_large_spoils_its_own_burst_only() -> None:
    sim = Sim.at_rest()
    first = sim.run_job()
    known = sim.burst

    def command(tx):
        event = Event(T0, "lost", {"ranks": "2", "why": HUGE})
        put(tx, apply(tx.bursts[known.id], event))
        tx.health = {"local": Health(rows={"method/reap": FailureRecord(why=HUGE)})}
        tx.outputs = {known.id: HUGE}

    sim.engine.post(command)
    sim.tick()
    records = sim.records
    assert records.bursts[known.id].quarantined.startswith("its record would be too")
    assert not records.health
    assert not records.outputs
    second = sim.lead.submit(whole(4))
    sim.until(lambda: second in sim.lead.running())
    assert sim.lead.jobs[first].state is JobState.RUN
    # A daemon that starts again has the record as it was.
    sim.boot()
    assert sim.records.bursts[known.id].state is State.ONLINE


def test_a_record_of_a_job_that_cannot_be_read_quarantines_its_burst_only() -> None:
    sim = Sim.at_rest()
    jobs = [sim.lead.submit(whole(4)) for _ in range(2)]
    sim.until(lambda: sim.lead.running() == jobs)
    spoilt, other = sim.bursts
    (job,) = spoilt.jobs
    key = f"job/{spoilt.id}/{job}"
    sim.lead.disk.records[key] = "{"
    sim.lead.disk.records["job/burst-9-aaaaaa/7"] = '{"submitted":1.0}'
    sim.boot()
    records = sim.records
    assert records.bursts[spoilt.id].quarantined.startswith(f"record {key}: not a")
    assert not records.bursts[other.id].quarantined
    assert (
        records.unreadable["job/burst-9-aaaaaa/7"] == "there is no record of its burst"
    )
