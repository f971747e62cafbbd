# SPDX-License-Identifier: MIT
"""Starting, waiting for and ending the processes of a demo."""

import os
import sys

import pytest

from burst.demo.play import find_stand_in
from burst.demo.processes import MARK, Processes
from burst.demo.story import Story
from burst.errors import BurstError
from tests.demo.scratch import short_directory
from tests.support.waiting import wait_until


@pytest.fixture
def processes():
    with short_directory() as directory:
        made = Processes(directory)
        yield made
        made.kill_all()


def test_a_command_has_the_mark_and_nothing_that_names_another_lead(
    processes, monkeypatch
):
    monkeypatch.setenv("FLUX_URI", "local:///elsewhere")
    monkeypatch.setenv("BURST_CONFIG", "/elsewhere")
    processes = Processes(processes._directory)
    printed = processes.run(["env"]).stdout.splitlines()
    assert any(line.startswith(f"{MARK}=") for line in printed)
    assert not [line for line in printed if "elsewhere" in line]


def test_burst_need_not_be_on_path(processes):
    processes.environment["PATH"] = os.path.dirname(sys.executable) + "/no"
    assert "burst, version" in processes.run(["burst", "--version"]).stdout


def test_a_command_that_hangs_is_ended(processes):
    with pytest.raises(BurstError, match=r"sleep 99: did not end within 0\.2 s"):
        processes.run(["sleep", "99"], limit_s=0.2)
    assert processes.marked() == []


def test_what_ended_by_itself_is_told_with_its_last_words(processes):
    processes.start("broker", ["sh", "-c", "echo one; echo two; exit 3"])

    def checked() -> bool:
        processes.check()
        return False

    # A process that is ending has no mark any more, and no status yet.
    with pytest.raises(BurstError, match="broker ended with status 3: one / two"):
        wait_until(checked, "it to be told")


def test_what_ignores_sigterm_is_killed(processes):
    processes.start("stubborn", ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    processes.start("kind", ["sleep", "99"])
    # A process that is just started may have no mark to read yet.
    wait_until(lambda: len(processes.marked()) >= 2, "both to have the mark")
    processes.end("kind", 5.0)
    processes.end("stubborn", 0.2)
    processes.end("unknown", 0.2)
    processes.kill_all()
    # Its own `sleep` may have had no mark just then, and ends by itself.
    assert processes.await_end(20.0) == 0


def test_a_lead_that_does_not_come_up_is_waited_for_no_longer_than_said():
    with short_directory() as directory:
        story = Story(directory, "hold", find_stand_in(), limit_s=0.0)
        with pytest.raises(BurstError, match=r"the lead .* not within 0 s"):
            story.tell()
        assert story.take_down() == (0, 0)
