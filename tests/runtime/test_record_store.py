# SPDX-License-Identifier: MIT
import pytest

from burst.core.provider_health import FailureRecord, Health
from burst.core.records import Records, unread_leases
from burst.errors import StoreError
from burst.model.burst import BurstId
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.runtime.record_store import RecordStore
from tests.builders import T0, but
from tests.core.ticks import hold
from tests.fakes import MemoryStore
from tests.lifecycles import LEASE, WHOLE_WAY, leased, run

RECORDS = Records(
    bursts={LEASE.id: run(*WHOLE_WAY[:5])},
    holds={JobId(7): hold(HoldState.HELD)},
    health={"local": Health(rows={"offer/small": FailureRecord(2, T0)})},
)


def test_what_was_written_is_read_again():
    store = MemoryStore()

    assert RecordStore(store).write(Records(), RECORDS) == 4

    assert RecordStore(store).load(T0 + 100) == RECORDS
    assert set(store.records) == {
        "meta/schema",
        "burst/burst-0-aaaaaa",
        "job/burst-0-aaaaaa/1",
        "hold/7",
        "provider/local",
    }


def test_only_what_changed_is_written():
    store = MemoryStore()
    ledger = RecordStore(store)
    ledger.write(Records(), RECORDS)
    after = Records(bursts=RECORDS.bursts, holds={}, health=dict(RECORDS.health))

    assert ledger.write(RECORDS, RECORDS) == 0
    assert ledger.write(RECORDS, after) == 1

    assert store.writes == 2
    assert "hold/7" not in store.records


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("burst/burst-0-bad", "{", "not a burst record"),
        ("burst/burst-0-bad", '{"version":9}', "not a burst record"),
        ("burst/burst-0-other", None, "its key is burst-0-other"),
        ("hold/7", "[]", "not a hold record"),
        ("hold/x", '{"urgency":1,"state":"held","since":0}', "invalid literal"),
        ("provider/p", '{"failed":"many"}', "Expected `object`"),
    ],
)
def test_a_record_that_cannot_be_read_is_listed_and_kept(key, text, why):
    store = MemoryStore()
    RecordStore(store).write(Records(), RECORDS)
    store.records[key] = text or store.records["burst/burst-0-aaaaaa"]
    before = dict(store.records)

    records = RecordStore(store).load(T0 + 100)

    assert why in records.unreadable[key]
    assert LEASE.id in records.bursts
    assert store.records == {**before, "meta/schema": "1"}


def test_records_of_packages_are_theirs():
    store = MemoryStore({"novel/x": "{"})
    ledger = RecordStore(store)
    records = ledger.load(T0)
    ledger.write(records, RECORDS)

    assert records.unreadable == {}
    assert store.records["novel/x"] == "{"


def test_what_another_version_wrote_is_not_guessed_at():
    store = MemoryStore()
    RecordStore(store).write(Records(), RECORDS)
    key = "burst/burst-0-aaaaaa"
    store.records[key] = store.records[key].replace('"version":2', '"version":3')
    records = RecordStore(store).load(T0)
    told = "record of version 3; this program reads version 2"
    assert told in records.unreadable[key]
    assert unread_leases(records) == [key]
    for schema in "2", "x":
        newer = RecordStore(MemoryStore({"meta/schema": schema}))
        with pytest.raises(StoreError, match="run the version of burst that wrote it"):
            newer.load(T0)


def test_records_from_the_future_count_from_now():
    """As a daemon wrote them while the clock was ahead: deadlines end all the same.

    A burst that is idle and lost a rank, one that grows, a job that was released, and
    one that left its burst and has all other times of a hold.
    """
    now = T0 - 500
    store = MemoryStore()
    idle = run(*WHOLE_WAY[:4], "job-finish", "idle", "lost")
    other = leased(run(*WHOLE_WAY[:4]), id=BurstId("burst-1-bbbbbb"))
    (times,) = other.times.values()
    released = {JobId(1): but(times, released=T0)}
    other = but(other, times=released)
    grows = leased(run(*WHOLE_WAY[:4], "grow"), id=BurstId("burst-2-cccccc"))
    left = but(hold(HoldState.HELD), expired=T0, letting=T0, raised_since=T0)
    written = Records(bursts={each.id: each for each in (idle, other, grows)})
    written = but(written, holds={JobId(7): left})
    RecordStore(store).write(Records(), written)

    found = RecordStore(store).load(now)

    burst = found.bursts[LEASE.id]
    assert burst.since == burst.idle_since == burst.lost_since == now
    assert found.bursts[other.id].times[JobId(1)].released == now
    resize = found.bursts[grows.id].resize
    assert resize is not None
    assert resize.since == resize.called == now
    of_hold = found.holds[JobId(7)]
    assert of_hold.since == of_hold.expired == now
    assert of_hold.letting == of_hold.raised_since == now
