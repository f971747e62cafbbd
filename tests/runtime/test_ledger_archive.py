# SPDX-License-Identifier: MIT
"""Bursts that were settled are found again, each once, long after."""

import logging
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from burst.core.money.accounts import KEPT_SETTLED
from burst.core.money.ledger import Costs, Payer, SettledBurst, Share
from burst.core.money.money import UNIT, Money
from burst.errors import StoreError
from burst.model.burst import BurstId
from burst.model.jobid import JobId, format_f58
from burst.runtime.ledger_archive import (
    NAME,
    LedgerArchive,
    LedgerArchiver,
    archive_path,
)
from burst.runtime.side_threads import SideThreads
from tests.builders import T0, but, identity
from tests.runtime.asking import GUEST, Asking
from tests.support.waiting import wait_until

DAY = 86400.0


def row(number: int, made: float = T0) -> SettledBurst:
    """A burst that cost a unit, for one job of the same number."""
    return SettledBurst(
        burst=BurstId(f"burst-0-{number:06}"),
        provider="local",
        offer="nodes",
        nodes=1,
        price=Money(UNIT),
        made=made + number,
        ended=made + number + 1,
        reserved=Money(UNIT),
        costs=Costs(work=Money(UNIT)),
        shares=(Share(Payer(GUEST), JobId(number + 1), 1.0),),
    )


@pytest.fixture
def archive(tmp_path: Path) -> LedgerArchive:
    return LedgerArchive(tmp_path / NAME)


@pytest.fixture
def archiver(archive: LedgerArchive) -> Iterator[LedgerArchiver]:
    found = LedgerArchiver(archive, retry=0.05)
    yield found
    found.close()


def by_burst(*rows: SettledBurst) -> dict[BurstId, SettledBurst]:
    return {each.burst: each for each in rows}


def test_rows_are_read_as_they_were_written_the_latest_first(
    archive: LedgerArchive,
) -> None:
    assert archive.read(0.0).rows == []
    archive.add([row(1), row(2)])
    archive.add([row(3)])
    assert archive.read(0.0) == ([row(3), row(2), row(1)], 0)
    assert archive.read(T0 + 2).rows == [row(3), row(2)]
    assert archive.read(0.0, most=1) == ([row(3)], 2)
    assert stat.S_IMODE(archive.path.stat().st_mode) == 0o600
    # A row that cannot be read is counted.
    with sqlite3.connect(archive.path) as database:
        spoil = "UPDATE settled SET row = '{' WHERE burst = ?"
        database.execute(spoil, (row(1).burst,))
    database.close()
    assert archive.read(0.0) == ([row(3), row(2)], 1)


def test_a_row_is_there_once_and_an_id_that_is_used_again_is_another_burst(
    archive: LedgerArchive,
) -> None:
    for _ in range(2):
        archive.add([row(1)])
    assert archive.read(0.0).rows == [row(1)]
    later = row(1, T0 + 3000 * DAY)
    archive.add([row(1), later])
    assert archive.read(0.0).rows == [later, row(1)]


def test_a_directory_of_the_daemons_user_alone_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    archive = LedgerArchive(tmp_path / "state" / "ledger.sqlite")
    archive.add([row(1)])
    (tmp_path / "state").chmod(0)
    # Root may search any directory.
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        archive.check()
    finally:
        os.seteuid(before)
    (tmp_path / "state").chmod(0o700)


def test_what_is_wrong_with_the_file_is_told(archive: LedgerArchive) -> None:
    elsewhere = LedgerArchive(archive.path / "no" / "directory")
    with pytest.raises(StoreError, match="move the file away"):
        elsewhere.add([row(1)])
    # Nothing can be written yet, and nothing is wrong; root may write any file.
    elsewhere.check()
    with pytest.raises(StoreError, match="let the daemon's user write there, or move"):
        LedgerArchive(archive.path.parent).check()
    archive.path.write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match="not a database"):
        archive.add([row(1)])
    archive.path.unlink()
    with sqlite3.connect(archive.path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    for used in (lambda: archive.read(0.0), lambda: archive.add([row(1)])):
        with pytest.raises(StoreError, match="has version 99"):
            used()


def test_nothing_was_archived_where_the_disk_was_full_from_the_first_write_on(
    archive: LedgerArchive,
) -> None:
    archive.read(0.0)
    assert not os.path.lexists(archive.path), "who only reads makes no file"
    archive.path.touch()
    assert archive.read(0.0).rows == []
    archive.add([row(1)])
    assert archive.read(0.0).rows == [row(1)]


def test_it_is_in_the_lead_s_state() -> None:
    lead = but(identity(), uri="local:///run/flux/local")
    assert archive_path(lead) == Path("/run/flux") / NAME
    kept = but(lead, statedir="/var/lib/flux")
    assert archive_path(kept) == Path("/var/lib/flux") / NAME


def test_the_usual_lead_of_tests_has_no_place_for_one() -> None:
    """A test that wants one names a directory of its own."""
    archive = LedgerArchive(archive_path(identity()))
    with pytest.raises(StoreError, match="cannot be written: No such file"):
        archive.add([])


def test_what_is_on_record_is_archived_beside_the_ticks(
    archiver: LedgerArchiver, archive: LedgerArchive
) -> None:
    archiver.keep(by_burst(row(1), row(2)))
    wait_until(lambda: len(archiver.archived) == 2, "two rows")
    assert archiver.archived[row(1).burst] == row(1).made
    archiver.keep(by_burst(row(2), row(3)))
    wait_until(lambda: row(3).burst in archiver.archived, "the third row")
    assert archiver.archived.keys() == {row(2).burst, row(3).burst}
    assert len(archive.read(0.0).rows) == 3


def test_a_disk_that_fails_is_told_once_and_tried_again(
    archiver: LedgerArchiver, archive: LedgerArchive, caplog: pytest.LogCaptureFixture
) -> None:
    archive.path.mkdir()
    with caplog.at_level(logging.INFO):
        archiver.keep(by_burst(row(1)))
        wait_until(lambda: caplog.messages, "it to be told")
        archiver.keep(by_burst(row(1), row(2)))
        assert archiver.archived == {}
        archive.path.rmdir()
        wait_until(lambda: len(archiver.archived) == 2, "them to be archived")
    failed, again = caplog.messages
    assert failed.startswith("bursts that were settled are not archived: ")
    assert again == "bursts that were settled are archived again"


def test_it_ends_while_the_disk_fails(archive: LedgerArchive) -> None:
    archive.path.mkdir()
    archiver = LedgerArchiver(archive, retry=3600.0)
    archiver.keep(by_burst(row(1)))
    archiver.close()
    assert archiver.archived == {}


@pytest.fixture
def asking(archiver: LedgerArchiver) -> Asking:
    """A daemon that has settled five bursts more than stay on record."""
    asking = Asking(prices={"local.nodes": 3600.0})
    many = map(row, range(KEPT_SETTLED + 5))
    for each in many:
        text = msgspec.json.encode(each).decode()
        asking.sim.lead.disk.records[f"settled/{each.burst}"] = text
    asking.sim.beside = SideThreads(archiver=archiver)
    asking.sim.boot()
    asking.sim.tick()
    return asking


def on_disk(asking: Asking) -> int:
    keys = asking.sim.lead.disk.records
    return sum(key.startswith("settled/") for key in keys)


def jobs(asking: Asking, **asked: object) -> list[str]:
    found = asking.ask("cost", by="job", since="1970-01-01", **asked)
    return [each["name"] for each in found["rows"]]


ALL = {format_f58(JobId(n + 1)) for n in range(KEPT_SETTLED + 5)}


def test_rows_leave_the_store_once_they_are_archived_and_are_shown_once(
    asking: Asking, archiver: LedgerArchiver
) -> None:
    wait_until(lambda: archiver.archived, "the archive")
    # The daemon dies here, between the two: the next one writes them again.
    assert on_disk(asking) == KEPT_SETTLED + 5
    assert sorted(jobs(asking)) == sorted(ALL)
    asking.sim.boot()
    asking.sim.tick(2)
    assert on_disk(asking) == KEPT_SETTLED
    assert sorted(jobs(asking)) == sorted(ALL)
    recent = asking.ask("cost", by="job")
    assert len(recent["rows"]) == KEPT_SETTLED
    with pytest.raises(Exception, match="2026-02-31 is not a day"):
        asking.ask("cost", by="job", since="2026-02-31")
