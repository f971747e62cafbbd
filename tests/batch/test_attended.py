# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path

import pytest

from burst.batch.attended import AttendedDaemon
from burst.batch.place import BatchPlace
from burst.batch.plan import Wish
from tests.cli.cli_harness import wait_until


@pytest.fixture
def place(tmp_path: Path) -> BatchPlace:
    place = BatchPlace.new(tmp_path)
    place.make(Wish(slots=()), b"")
    # Nobody is there: the daemon ends at once.
    place.settings.write_text('[lead]\nuri = "embedded:///nowhere"\n')
    return place


def test_a_daemon_that_fails_is_started_again_until_it_is_to_end(
    place: BatchPlace,
) -> None:
    told: list[str] = []
    daemon = AttendedDaemon(place, told.append, again_s=0.0)
    try:
        daemon.attend()
        wait_until(lambda: len(told) > 1, place.log.read_text)
    finally:
        daemon.end()
        daemon.kill()
    assert not daemon.is_running()
    assert told[0].startswith("the daemon ended with status 1: ")
    assert daemon.last_words() in told[0]
    assert not daemon.last_words().startswith("burst: ERROR")


def test_one_that_waits_to_be_started_again_can_be_ended(place: BatchPlace) -> None:
    told: list[str] = []
    daemon = AttendedDaemon(place, told.append)
    daemon.attend()
    wait_until(lambda: bool(told), "its end to be told")
    daemon.end()
    daemon.kill()
    assert daemon.wait(0.0)
    assert len(told) == 1


def test_one_that_said_nothing_has_no_last_words(place: BatchPlace) -> None:
    daemon = AttendedDaemon(place, print)
    daemon.end()
    daemon.kill()
    place.log.write_text("")
    assert daemon.last_words() == "it said nothing"
