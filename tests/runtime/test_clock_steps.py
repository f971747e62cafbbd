# SPDX-License-Identifier: MIT
"""A step of the system clock moves the times of what is live, once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money.ledger import Entry, Payer, Share
from burst.core.money.money import Money
from burst.core.records import Records
from burst.errors import StoreError
from burst.model.burst import BurstId
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.runtime.clock import Clock, ClockMark, clock_offset
from burst.runtime.record_store import RecordStore
from tests.builders import T0, but
from tests.fakes import MemoryStore
from tests.lifecycles import LEASE, run

BEFORE = ClockMark("boot", T0)
LIVE = run("provision-start", "provision-finish", "online", "job-start", "grow")
LOST = run("provision-start", "provision-finish", "online", "lost")
LOST_BURST = BurstId("burst-2-lost")
ENDED = run("exception", "reaped")
HOLD = Hold(
    urgency=16, state=HoldState.HELD, since=T0, letting=T0 + 1, raised_since=T0 + 2
)
ENTRY = Entry(
    burst=BurstId("burst-0-aaaaaa"),
    provider="local",
    offer="small",
    nodes=2,
    price=Money(1),
    made=T0,
    reserved=Money(9),
    shares=(Share(Payer()),),
    until=T0 + 60,
    at=T0 + 5,
)


def leased(burst, name):
    lease = but(LEASE, id=BurstId(name), created=T0, end=T0 + 600)
    return but(burst, lease=lease)


RECORDS = Records(
    bursts={
        b.id: b
        for b in (
            leased(LIVE, "burst-0-aaaaaa"),
            leased(ENDED, "burst-1-b"),
            leased(LOST, LOST_BURST),
        )
    },
    holds={JobId(7): HOLD},
    entries={ENTRY.burst: ENTRY},
)


def stored() -> MemoryStore:
    """Return a store with the records as they were before the step."""
    made = MemoryStore()
    store = RecordStore(made)
    store.load(T0, clock=BEFORE)
    store.write(Records(), RECORDS)
    return made


@pytest.fixture
def disk() -> MemoryStore:
    made = stored()
    made.records["burst/burst-2-c"] = "{"
    return made


def load(disk: MemoryStore, mark: ClockMark) -> tuple[RecordStore, Records]:
    store = RecordStore(disk)
    return store, store.load(T0 + 9000, clock=mark)


def later(seconds: float) -> ClockMark:
    return ClockMark(BEFORE.boot, BEFORE.offset + seconds)


def ages(records: Records) -> list[float]:
    """Return the times of what is live."""
    live, hold = records.bursts[ENTRY.burst], records.holds[JobId(7)]
    entry = records.entries[ENTRY.burst]
    assert live.resize
    assert live.sums.started
    lost_since = records.bursts[LOST_BURST].lost_since
    assert lost_since
    return [
        *(lost_since, hold.raised_since),
        *(live.since, live.lease.created, live.lease.end, live.resize.since),
        *(live.sums.started, live.times[JobId(1)].submitted),
        *(hold.since, hold.letting, entry.made, entry.until, entry.at),
    ]


@given(st.floats(3.0, 1e6) | st.floats(-1e6, -3.0))
def test_what_is_live_is_as_old_as_before_and_what_is_over_stays(step: float) -> None:
    loaded = RecordStore(stored()).load(T0 + 3e6, clock=later(step))
    moved = [time - step for time in ages(loaded)]
    assert moved == pytest.approx(ages(RECORDS), abs=1e-3)
    assert loaded.bursts[BurstId("burst-1-b")] == RECORDS.bursts[BurstId("burst-1-b")]
    assert loaded.holds[JobId(7)].expired == 0.0


def test_it_is_written_with_the_next_change_and_moved_once(disk: MemoryStore) -> None:
    store, moved = load(disk, later(7200.0))
    written = dict(disk.records)
    store.write(moved, moved)
    assert disk.records == written, "there is nothing to write yet"
    again = load(disk, later(7200.0))[1]
    assert ages(again) == ages(moved)
    disk.full = True
    fewer = but(moved, holds={})
    with pytest.raises(StoreError):
        store.write(moved, fewer)
    disk.full = False
    store.write(moved, fewer)
    kept = load(disk, later(7200.0))[1]
    assert kept.bursts == moved.bursts
    assert not kept.holds
    assert "burst/burst-2-c" in kept.unreadable


@pytest.mark.parametrize(
    "mark",
    [later(1.0), ClockMark("another boot", T0 + 7200), ClockMark("", T0 + 7200)],
)
def test_what_is_no_step_moves_nothing(disk: MemoryStore, mark: ClockMark) -> None:
    assert ages(load(disk, mark)[1]) == ages(RECORDS)
    # Nor does a mark that cannot be read.
    disk.records["meta/clock"] = "[]"
    assert ages(load(disk, later(7200.0))[1]) == ages(RECORDS)


def test_what_passes_between_two_clocks_is_no_step() -> None:
    # It has no turn for seconds between the first two reads.
    readings = iter([10.0, 15.0, 20.0, 20.0])
    assert clock_offset(lambda: T0 + 20.0, lambda: next(readings)) == T0


def test_a_clock_tells_its_step() -> None:
    clock = Clock()
    assert clock.step() == 0.0
    mark = clock.mark
    clock.mark = ClockMark(mark.boot, mark.offset - 7200.0)
    assert clock.step() == pytest.approx(7200.0, abs=1.0)
    clock.mark = ClockMark("", mark.offset - 7200.0)
    assert clock.step() == pytest.approx(7200.0, abs=1.0)
