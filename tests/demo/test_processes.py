# SPDX-License-Identifier: MIT
import os
import signal
import sys
import threading
import time

import pytest

from burst.demo.processes import MARK, Processes, find, kill_all
from burst.demo.stop import Interrupted, Stop
from burst.errors import BurstError
from tests.demo.scratch import pids_with, short_directory

DEADLINE_S = 30.0
URI = "local:///nowhere"


@pytest.fixture
def directory():
    with short_directory() as path:
        yield path


@pytest.fixture
def stop():
    with Stop() as found:
        yield found


@pytest.fixture
def started(directory, stop):
    return Processes(directory, stop)


def wait_until(condition):
    ends = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def interrupt_when(condition):
    """Send this process SIGINT from a thread, once the condition holds."""

    def run():
        wait_until(condition)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_command_gets_the_uri_and_the_mark_and_nothing_that_leads_elsewhere(
    started, directory, monkeypatch
):
    monkeypatch.setenv("FLUX_HANDLE_ROLEMASK", "2")
    monkeypatch.setenv("BURST_CONFIG", "/elsewhere")
    started = Processes(directory, Stop())

    names = started.run(("env",), URI).splitlines()

    assert f"FLUX_URI={URI}" in names
    assert f"{MARK}={directory}" in names
    assert not any(n.startswith(("FLUX_HANDLE", "BURST_CONFIG")) for n in names)


def test_a_command_that_fails_is_an_error_with_what_it_said(started):
    with pytest.raises(BurstError, match=r"^sh -c .*: status 3: no such job$"):
        started.run(("sh", "-c", "echo no such job >&2; exit 3"), URI)


def test_a_command_that_hangs_is_ended_with_what_it_started(directory, stop):
    started = Processes(directory, stop, patience=0.2)

    with pytest.raises(BurstError, match=r"no end within 0.2 s"):
        started.run(("sh", "-c", "sleep 1000; true"), URI)

    wait_until(lambda: not pids_with(str(directory)))


def test_an_interruption_ends_the_command_that_is_under_way(started, directory):
    thread = interrupt_when(lambda: pids_with(str(directory)))

    with pytest.raises(Interrupted):
        started.run(("sleep", "1000"), URI)

    thread.join()
    wait_until(lambda: not pids_with(str(directory)))


def test_one_that_ended_is_reported_with_its_last_words(started):
    started.start("lead-0", ("sh", "-c", "echo one; echo two; exit 4"))

    with pytest.raises(BurstError, match="lead-0 ended with status 4: one / two"):
        wait_until(started.check)


def test_one_that_ended_without_a_word_is_reported_too(started):
    started.start("lead-0", ("false",))

    with pytest.raises(BurstError, match="status 1: it said nothing"):
        wait_until(started.check)


def test_one_in_the_background_is_ended_by_a_signal(started, directory):
    script = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0));"
    script += "print('up', flush=True); signal.pause()"
    started.start("daemon", (sys.executable, "-c", script))
    wait_until(lambda: started.last_words("daemon") == "up")

    started.end("daemon", grace=DEADLINE_S)

    assert find({MARK: str(directory)}) == []
    started.end("daemon", grace=DEADLINE_S)
    started.check()


STUBBORN = ("sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done")


def test_one_that_does_not_end_is_killed_after_its_grace(started):
    started.start("daemon", STUBBORN)
    wait_until(lambda: started.last_words("daemon") == "up")

    started.end("daemon", grace=0.1)

    started.check()


def test_a_second_interruption_does_not_wait_for_the_grace(started, stop):
    started.start("daemon", STUBBORN)
    wait_until(lambda: started.last_words("daemon") == "up")
    stop.end_story()
    os.kill(os.getpid(), signal.SIGINT)

    started.end("daemon", grace=1e6)

    started.check()


def test_all_with_the_mark_are_found_and_killed_and_no_others(started, directory):
    marks = {MARK: str(directory), "BURST_OWNER": "lead-0-12345678"}
    started.start("one", STUBBORN)
    started.start("two", ("env", "-i", "BURST_OWNER=lead-0-12345678", "sleep", "1000"))
    started.start("other", ("env", "-i", f"{MARK}={directory}-2", "sleep", "1000"))
    wait_until(lambda: started.last_words("one") == "up")
    wait_until(lambda: find({"BURST_OWNER": "lead-0-12345678"}))
    wait_until(lambda: find({MARK: f"{directory}-2"}))

    kill_all(marks)

    assert find(marks) == []
    assert len(find({MARK: f"{directory}-2"})) == 1
    for name in ("one", "two", "other"):
        started.end(name, grace=DEADLINE_S)


def test_what_cannot_be_killed_in_time_is_an_error(started, directory):
    started.start("one", STUBBORN)
    wait_until(lambda: started.last_words("one") == "up")

    with pytest.raises(BurstError, match="do not end, even killed"):
        kill_all({MARK: str(directory)}, patience=-1.0)

    started.end("one", grace=0.0)


def test_what_cannot_be_read_is_not_ours(tmp_path):
    for pid, content in (("10", b"A=1\0B=2\0"), ("11", b"A=11\0"), ("12", b"XA=1\0")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "environ").write_bytes(content)
    (tmp_path / "13").mkdir()
    (tmp_path / "self").mkdir()

    assert find({"A": "1"}, tmp_path) == [10]
    assert find({"A": "2", "B": "2"}, tmp_path) == [10]
