# SPDX-License-Identifier: MIT
from __future__ import annotations

from pathlib import Path

import pytest

from burst.batch.batch_plan import LeadRequest
from burst.batch.daemon_supervisor import DaemonSupervisor
from burst.batch.lead_directory import LeadDirectory
from tests.support.waiting import wait_until


@pytest.fixture
def place(tmp_path: Path) -> LeadDirectory:
    place = LeadDirectory.new(tmp_path)
    place.make(LeadRequest(slots=()), b"")
    # Nobody is there: the daemon ends at once.
    place.settings.write_text('[lead]\nuri = "embedded:///nowhere"\n')
    return place


def test_a_daemon_that_fails_is_started_again_until_it_is_to_end(
    place: LeadDirectory,
) -> None:
    told: list[str] = []
    daemon = DaemonSupervisor(place, told.append, again_s=0.0)
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


def test_one_that_waits_to_be_started_again_can_be_ended(place: LeadDirectory) -> None:
    told: list[str] = []
    daemon = DaemonSupervisor(place, told.append)
    daemon.attend()
    wait_until(lambda: bool(told), "its end to be told")
    daemon.end()
    daemon.kill()
    assert daemon.wait(0.0)
    assert len(told) == 1


def test_one_that_said_nothing_has_no_last_words(place: LeadDirectory) -> None:
    daemon = DaemonSupervisor(place, print)
    daemon.end()
    daemon.kill()
    place.log.write_text("")
    assert daemon.last_words() == "it said nothing"
