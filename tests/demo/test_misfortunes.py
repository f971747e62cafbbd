# SPDX-License-Identifier: MIT
"""What may go wrong in the story: each is said, and nothing is left but the logs."""

import contextlib
import io
import json
import os
import signal
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from burst.demo.kinds import Embedded
from burst.demo.place import make_place
from burst.demo.play import play
from burst.demo.processes import Processes
from burst.demo.record import Left
from burst.demo.setup import Setup
from burst.demo.stop import Stop
from burst.demo.story import Story
from burst.demo.tidy import tidy
from burst.demo.view import PlainView
from burst.errors import BurstError
from tests.demo.scratch import pids_with, short_directory


@pytest.fixture
def home(monkeypatch):
    with short_directory() as directory:
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        yield directory


@pytest.fixture
def played(home, capsys):
    """Return a function that plays a demo: status, object, what was said."""

    def run(kind):
        status = play(kind, home / "demo.svg", as_json=True)
        said = capsys.readouterr()
        return status, json.loads(said.out), said.err

    yield run
    assert pids_with(str(home)) == []


def words(script):
    return ("sh", "-c", script)


class NoLead(Embedded):
    """Its lead ends at once."""

    def brokers(self, files):
        return {**super().brokers(files), "lead-0": words("echo no luck; exit 7")}


class NoLuckWithPorts(Embedded):
    """Its port is taken, for so many times."""

    def __init__(self, times):
        self.times = times
        self.asked = 0

    def brokers(self, files):
        self.asked += 1
        if self.asked > self.times:
            return super().brokers(files)
        taken = words("echo cannot listen on this port; exit 1")
        return {**super().brokers(files), "lead-0": taken}


class FailingJobs(Embedded):
    """Its jobs fail."""

    show_host = ("false",)


class SomethingStays(Embedded):
    """Something that its lead starts does not end with it."""

    def brokers(self, files):
        brokers = super().brokers(files)
        lead = 'setsid sleep 1000 & exec "$@"'
        return {**brokers, "lead-0": ("sh", "-c", lead, "sh", *brokers["lead-0"])}


class LeadDies(Embedded):
    """Its lead is killed when somebody lists its jobs."""

    def __init__(self, home):
        self.home = home

    def read_jobs(self, text):
        for pid in pids_with(str(self.home)):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if b"lead-0" in words:
                    os.kill(pid, signal.SIGKILL)
        return super().read_jobs(text)


class LeadHangs(Embedded):
    """Its lead does not come up, and does not end either."""

    def brokers(self, files):
        return {**super().brokers(files), "lead-0": ("sleep", "1000")}


class WrongHosts(Embedded):
    """Its jobs print something else."""

    show_host = ("echo", "elsewhere")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (NoLead(), "lead-0 ended with status 7: no luck"),
        (NoLuckWithPorts(3), "lead-0 ended with status 1: cannot listen on this port"),
    ],
)
def test_a_lead_that_does_not_come_up_is_the_end(played, kind, error):
    status, found, said = played(kind)

    assert status == 1
    assert f"burst demo: ERROR: {error}\n" in said
    assert found["jobs"] == found["bursts"] == []


def test_a_port_that_was_just_taken_is_exchanged_for_another(played):
    status, found, said = played(NoLuckWithPorts(1))

    assert status == 0, said
    assert found["ok"] is True


def test_jobs_that_fail_fail_the_demo(played):
    status, found, said = played(FailingJobs())

    assert status == 1
    assert "ended as failed\n" in said
    assert found["left"]["slots"] == 0


def test_what_outlives_the_demo_is_counted_and_killed(played):
    status, found, said = played(SomethingStays())

    assert status == 1
    assert found["left"]["followers"] == 1
    assert "burst demo: ERROR: 1 followers were left\n" in said


def test_jobs_that_ran_elsewhere_are_a_fault_each(played):
    status, found, said = played(WrongHosts())

    assert status == 1
    assert found["ok"] is False
    assert said.count("ran on elsewhere") == 3


def test_a_lead_that_dies_is_named_with_what_it_held(played, home):
    status, found, said = played(LeadDies(home))

    assert status == 1
    assert "burst demo: ERROR: lead-0 ended with status -9" in said
    assert found["left"]["followers"] == 0


def test_a_step_that_takes_too_long_is_named(home):
    with Stop() as stop:
        place = make_place()
        setup = Setup(
            kind=LeadHangs(),
            place=place,
            processes=Processes(place.directory, stop),
            view=PlainView("title", Console(file=io.StringIO())),
            stop=stop,
        )
        story = Story(setup, patience=0.5)
        with pytest.raises(
            BurstError, match=r"^the embedded lead starts.*within 0.5 s"
        ):
            story.tell()
        left = tidy(setup, story)

    assert left == Left(0, 0, 0)
    assert story.acts == ()
