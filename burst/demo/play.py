# SPDX-License-Identifier: MIT
"""Runs the demo, takes everything down, and reports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

from burst.demo.jobs import demo_jobs
from burst.demo.story import Story, burst_faults, say
from burst.errors import BurstError
from burst.extensions import StandIn, installed, load
from burst.flux.bindings import import_core
from burst.model.exit_status import shell_status

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PREFIX = "burst-demo-"
# A socket's path may have 107 bytes (unix(7)); followers need 60 below the directory.
_LONGEST = 46


class Interrupted(Exception):
    """The user asked by a signal for the demo to end."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum


def play(mode: str, *, flux: bool, as_json: bool) -> int:
    """Run the demo and return the exit status.

    Raises BurstError, before anything is started, if the demo cannot run.
    """
    if flux:
        _require_flux()
    began = time.monotonic()
    story = Story(_make_directory(), mode, None if flux else find_stand_in())
    failure, signum, followers, slots = _perform(story)
    if signum:
        shutil.rmtree(story.directory)
        say("burst demo: interrupted; all processes are ended, all files removed")
        return shell_status(-signum)
    files = _count(story.directory / "f")
    left = {"followers": followers, "slots": slots, "files": files}
    faults = _faults(story, failure, left)
    if faults:
        left["files"] = 1 + _count(story.directory)
    else:
        shutil.rmtree(story.directory)
    report(story, left, ok=not faults, as_json=as_json)
    for fault in faults:
        say(f"burst demo: ERROR: {fault}")
    if faults:
        say(f"burst demo: logs and settings are kept in {story.directory}")
        return 1
    say(f"burst demo: all went as it should, in {time.monotonic() - began:.1f} s")
    return 0


def _perform(story: Story) -> tuple[str, int, int, int]:
    """Return what failed, the signal that ended it, and how much was left.

    The last two numbers are the processes and the leased slots that were left.
    """
    failure, signum = "", 0
    handlers = {number: signal.signal(number, _interrupt) for number in _SIGNALS}
    try:
        story.tell()
    except (BurstError, OSError) as error:
        failure = str(error)
    except Interrupted as interrupted:
        signum = interrupted.signum
    finally:
        # Whatever was raised, no process that was started here may go on.
        left = _take_down(story)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return failure, signum, *left


def _take_down(story: Story) -> tuple[int, int]:
    """Take everything down, by SIGKILL after a second signal; return what was left."""
    left = 0, 0
    try:
        left = story.take_down()
    except Interrupted:
        say("everything is killed")
    except (BurstError, OSError) as error:
        say(f"burst demo: ERROR: {error}")
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    story.processes.kill_all()
    return left


def _interrupt(signum: int, _: FrameType | None) -> None:
    raise Interrupted(signum)


def _faults(story: Story, failure: str, left: dict[str, int]) -> list[str]:
    """Return a sentence for each thing that is not as it should be."""
    found = [failure] if failure else []
    if not failure:
        for job, row in zip(demo_jobs(story.mode), story.jobs, strict=True):
            found += filter(None, [job.fault(row)])
        found += burst_faults(story.bursts, story.mode)
    return found + [f"{left[what]} {what} were left" for what in left if left[what]]


def report(story: Story, left: dict[str, int], *, ok: bool, as_json: bool) -> None:
    """Print what happened and what was left, for people or for programs."""
    if not as_json:
        counts = f"{left['followers']} followers, {left['slots']} slots leased"
        text = f"{story.timelines}left: {counts}, {left['files']} files"
        sys.stdout.write(f"{text}\n")
        return
    keys = ("id", "provider", "ranks", "result", "timeline")
    found = {
        "ok": ok,
        "lead": story.lead,
        "mode": story.mode,
        "jobs": story.jobs,
        "bursts": [{key: burst[key] for key in keys} for burst in story.bursts],
        "left": left,
    }
    sys.stdout.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def find_stand_in() -> StandIn:
    """Return the installed stand-in for a lead, for hosts without Flux.

    Raises BurstError, ConfigError.
    """
    names = sorted(installed("burst.stand_ins"))
    if not names:
        raise BurstError(
            "no package with a stand-in for Flux is installed",
            "install flux-burst-orchestrator again, or use --flux",
        )
    found: StandIn = load("burst.stand_ins", names[0])
    return found


def _require_flux() -> None:
    if shutil.which("flux") is None:
        raise BurstError(
            "there is no flux on PATH",
            "install flux-core 0.84 or later, or put its bin directory on PATH;"
            " without --flux the demo needs none",
        )
    import_core()


def _make_directory() -> Path:
    """Make the demo's directory, which no other user can open."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) + len(f"/{_PREFIX}12345678") > _LONGEST:
        base = "/tmp"  # noqa: S108 - mkdtemp makes it private
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base)).resolve()


def _count(directory: Path) -> int:
    return sum(1 for _ in directory.rglob("*")) if directory.exists() else 0
