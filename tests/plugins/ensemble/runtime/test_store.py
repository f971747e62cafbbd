# SPDX-License-Identifier: MIT
"""The records of ensembles in the lead's store."""

from __future__ import annotations

import msgspec
import pytest
from burst_ensemble.core.record import (
    EnsembleRecord,
    EnsembleRecords,
    EnsembleStart,
    EnsembleState,
    MemberBook,
)
from burst_ensemble.runtime.store import EnsembleStore

from burst.errors import StoreError, Unreadable
from tests.fakes import MemoryStore


def ensemble(name: str, spent: float = 0.0) -> EnsembleRecords:
    """An ensemble with a book of one member."""
    return EnsembleRecords(
        states={name: EnsembleState(record=EnsembleRecord(name=name, started=1.0))},
        starts={name: EnsembleStart(tables={"name": name}, userid=100)},
        books={f"{name}/a": MemberBook(settled=spent)},
    )


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
    assert store.read() == EnsembleRecords()
    assert store.change(lambda _: ensemble("sweep")) == ensemble("sweep")
    assert disk.records.keys() == {
        *("burst/x", "ensemble/sweep", "ensemble-start/sweep"),
        "ensemble-book/sweep/a",
    }
    assert EnsembleStore(disk).read() == ensemble("sweep")
    store.change(lambda _: EnsembleRecords())
    assert disk.records == {"burst/x": "the daemon's"}


def test_only_what_changed_is_written() -> None:
    disk = MemoryStore()
    store = EnsembleStore(disk)
    store.change(lambda _: ensemble("sweep"))
    store.change(lambda known: known)
    assert disk.writes == 1
    disk.records.clear()
    book = {"sweep/a": MemberBook(settled=2.0)}
    store.change(lambda known: msgspec.structs.replace(known, books=book))
    assert disk.records.keys() == {"ensemble-book/sweep/a"}


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


def test_a_record_that_cannot_be_read_is_told_and_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = MemoryStore()
    EnsembleStore(disk).change(lambda _: ensemble("sweep"))
    disk.records["ensemble-start/sweep"] = "{"
    before = dict(disk.records)
    store = EnsembleStore(disk)
    assert store.read().states == {}
    assert "record ensemble-start/sweep cannot be read" in caplog.text
    store.change(lambda known: known)
    assert disk.records == before
    store.change(lambda _: ensemble("sweep", spent=3.0))
    assert EnsembleStore(disk).read() == ensemble("sweep", spent=3.0)
