# SPDX-License-Identifier: MIT
"""Takes everything down, in order and in any case, and counts what is left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress

from burst.config import load
from burst.core.report import status
from burst.demo import processes
from burst.demo.place import count_below
from burst.demo.processes import MARK
from burst.demo.record import Left
from burst.demo.setup import Setup
from burst.demo.stop import Stop
from burst.demo.story import Story
from burst.errors import BurstError
from burst.model.jobid import format_f58
from burst.runtime.connect import connect
from burst.runtime.offline import read_snapshot

# From SIGTERM to SIGKILL. The daemon reaps what there is, which takes a drain and a
# follower's grace; brokers wait for one another.
_DAEMON_S = 15.0
_BROKER_S = 10.0
# What was told to end is given so long to be gone.
_GONE_S = 2.0
_STEP_S = 0.05


def tidy(setup: Setup, story: Story) -> Left:
    """End jobs, daemon and lead, and kill what is left after that.

    Returns what was left before. The directory is the caller's to remove.
    """
    setup.stop.end_story()
    story.say("everything is taken down")
    _cancel_jobs(setup, story)
    setup.processes.end("daemon", _DAEMON_S)
    slots = _count_leased(setup, story)
    story.close()
    for host in ("lead-1", "lead-0"):
        setup.processes.end(host, _BROKER_S)
    marks = {MARK: str(setup.place.directory)}
    if story.owner:
        marks["BURST_OWNER"] = story.owner
    followers = _wait_for_end(marks, setup.stop)
    files = count_below(setup.place.followers)
    processes.kill_all(marks)
    return Left(followers, slots, files)


def _cancel_jobs(setup: Setup, story: Story) -> None:
    """End jobs, since nothing is reaped under a job that runs."""
    for job in story.unfinished:
        argv = (*setup.kind.user, "cancel", format_f58(job))
        # It may have ended meanwhile, and the lead may be what has failed: then the
        # brokers' end is the job's.
        with suppress(BurstError):
            setup.processes.run(argv, story.uri)


def _count_leased(setup: Setup, story: Story) -> int:
    """Read the records that the daemon left; without a lead, what it said last."""
    if not story.slots:
        return 0
    try:
        settings = load(setup.place.settings)
        with closing(connect(story.uri, settings.intake.attribute)) as lead:
            seen = read_snapshot(lead, settings)
            slots = status(seen.records, seen.world, (), seen.now)["slots"]
    except BurstError:
        slots = story.slots
    return sum(slot["state"] == "leased" for slot in slots)


def _wait_for_end(marks: Mapping[str, str], stop: Stop) -> int:
    """Return how many processes with these marks do not end by themselves."""
    ends = time.monotonic() + _GONE_S
    while True:
        left = len(processes.find(marks))
        if not left or time.monotonic() > ends or stop.hurried:
            return left
        time.sleep(_STEP_S)
