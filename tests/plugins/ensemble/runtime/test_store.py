# SPDX-License-Identifier: MIT
"""The records of ensembles in the lead's store."""

from __future__ import annotations

import msgspec
import pytest
from burst_ensemble.algorithm import SUBMIT_MOST
from burst_ensemble.config.spec import EnsembleSpec, MemberSpec
from burst_ensemble.core.record import (
    KNOWN_MOST,
    Ensemble,
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    MemberRecord,
    plain_duration,
)
from burst_ensemble.runtime.store import EnsembleStore

from burst.config import Seconds
from burst.errors import StoreError, Unreadable
from burst.lead import MAX_VALUE_BYTES
from burst.model.jobid import JobId
from tests.fakes import MemoryStore


def ensemble(name: str, spent: float = 0.0) -> EnsembleRecords:
    """An ensemble with a member."""
    member = MemberRecord(
        started=1.0, spent=spent, jobs={JobId(7): KnownJob("md", 1, started=2.0)}
    )
    record = EnsembleRecord(name=name, started=1.0, members={"a": member})
    spec = EnsembleSpec(
        name=name, grow_window=Seconds(1 / 3), members=(MemberSpec(name="a"),)
    )
    return {name: Ensemble(EnsembleStart(spec=spec, userid=100), record)}


def encoded(value: object) -> str:
    """A value of the store."""
    return msgspec.json.encode(value, enc_hook=plain_duration).decode()


class Unsure(MemoryStore):
    """A store that says of a write that it does not know whether it was kept."""

    keeps: bool | None = None

    def write(self, changes):
        if self.keeps is None or self.keeps:
            super().write(changes)
        if self.keeps is not None:
            raise Unreadable("no answer")


def test_what_is_kept_is_read_again_and_what_is_gone_is_deleted() -> None:
    disk = MemoryStore({"burst/x": "the daemon's"})
    store = EnsembleStore(disk)
    assert store.read() == {}
    assert store.change(lambda _: ensemble("sweep")) == ensemble("sweep")
    kinds = ("ensemble-member", "ensemble-jobs")
    its = {f"{kind}/sweep/a" for kind in kinds}
    its |= {"ensemble-run/sweep", "ensemble-start/sweep"}
    assert disk.records.keys() == {"burst/x", *its}
    assert EnsembleStore(disk).read() == ensemble("sweep")
    store.change(lambda _: {})
    assert disk.records == {"burst/x": "the daemon's"}


def test_only_what_changed_is_written() -> None:
    disk = MemoryStore()
    store = EnsembleStore(disk)
    store.change(lambda _: ensemble("sweep"))
    store.change(lambda _: ensemble("sweep"))
    EnsembleStore(disk).change(lambda known: known)
    assert disk.writes == 1
    disk.records.clear()
    store.change(lambda _: ensemble("sweep", 3.0))
    assert disk.records.keys() == {"ensemble-member/sweep/a"}


def test_a_step_that_outlives_its_session_writes_nothing() -> None:
    """The next session has read the records, and may have changed them."""
    disk = MemoryStore()
    old = EnsembleStore(disk)
    old.change(lambda _: ensemble("sweep"))
    old.close()
    EnsembleStore(disk).change(lambda _: ensemble("sweep", spent=3.0))
    with pytest.raises(StoreError, match="the session with the lead ends"):
        old.change(lambda _: ensemble("sweep", spent=1.0))
    assert EnsembleStore(disk).read() == ensemble("sweep", spent=3.0)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_write_without_an_answer_is_repeated_by_the_next(*, keeps: bool) -> None:
    disk = Unsure()
    store = EnsembleStore(disk)
    store.change(lambda _: ensemble("old"))
    disk.keeps = keeps
    with pytest.raises(Unreadable):
        store.change(lambda _: ensemble("new"))
    assert store.read() == ensemble("old")
    disk.keeps = None
    store.change(lambda known: known)
    assert EnsembleStore(disk).read() == ensemble("old")


def test_what_is_done_is_kept_for_the_run_of_which_it_is() -> None:
    store = EnsembleStore(MemoryStore())
    first = store.change(lambda _: ensemble("sweep"))["sweep"]

    def spend(record: EnsembleRecord) -> EnsembleRecord:
        return record.with_member("a", spent=7.0)

    store.change_run(first.start, spend)
    assert store.read()["sweep"].record == spend(first.record)
    anew = store.change(lambda _: ensemble("sweep"))
    store.change_run(first.start, spend)
    assert store.read() == anew
    store.change(lambda _: {})
    store.change_run(first.start, spend)
    assert store.read() == {}


def test_an_ensemble_that_is_started_again_replaces_its_earlier_record() -> None:
    """The record was left, as the ensemble could not be read; another's stays."""
    disk = MemoryStore()
    for name in ("sweep", "other"):
        disk.records[f"ensemble-start/{name}"] = '{"userid": 100, "tables": {}}'
    before = dict(disk.records)
    store = EnsembleStore(disk)
    assert store.read() == {}
    assert store.unread == {"sweep", "other"}
    store.change(lambda _: ensemble("sweep", 99.0))
    assert EnsembleStore(disk).read() == ensemble("sweep", 99.0)
    store.change(lambda _: {})
    left = "ensemble-start/other"
    assert disk.records == {left: before[left]}


def test_a_member_without_a_record_is_not_taken_for_a_new_one() -> None:
    disk = MemoryStore()
    EnsembleStore(disk).change(lambda _: ensemble("sweep"))
    del disk.records["ensemble-member/sweep/a"]
    store = EnsembleStore(disk)
    assert store.read() == {}
    assert store.unread == {"sweep"}


def test_a_member_with_all_jobs_that_it_may_have_fits_a_value() -> None:
    """Its jobs have the longest names, and times with all digits."""
    job = KnownJob("n" * 63, 10_000_000, "finish", *([1732960000.123456] * 3))
    jobs = {JobId(2**62 + n): job for n in range(KNOWN_MOST + SUBMIT_MOST)}
    one = ensemble("sweep")["sweep"]
    disk = MemoryStore()
    EnsembleStore(disk).change(
        lambda _: {"sweep": Ensemble(one.start, one.record.with_member("a", jobs=jobs))}
    )
    sizes = [len(text) for text in disk.records.values()]
    assert max(sizes) > MAX_VALUE_BYTES / 2, "and the store has not refused it"


@pytest.mark.parametrize("text", ["{", '{"userid": 1, "tables": {}}'])
def test_a_record_that_cannot_be_read_is_told_and_stays(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = MemoryStore()
    EnsembleStore(disk).change(lambda _: ensemble("sweep"))
    disk.records["ensemble-start/sweep"] = text
    before = dict(disk.records)
    store = EnsembleStore(disk)
    assert store.read() == {}
    assert "ensemble sweep cannot be read from its records" in caplog.text
    store.change(lambda known: known)
    assert disk.records == before
    store.change(lambda _: ensemble("sweep", spent=3.0))
    assert EnsembleStore(disk).read() == ensemble("sweep", spent=3.0)
