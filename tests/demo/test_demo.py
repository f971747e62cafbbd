# SPDX-License-Identifier: MIT
"""The demo as a user starts it: as a process, from the shell."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from burst.core.burst_story import STAGES
from burst.demo.play import report
from burst.demo.story import Story
from burst.model.jobid import parse_jobid
from burst.model.ranks import parse_hostlist
from tests.demo.scratch import short_directory
from tests.support.marked import pids_with
from tests.support.waiting import HANG_S, wait_until

HOSTS = {
    "burst-0": set(parse_hostlist("burst-0-[0-3]")),
    "burst-1": set(parse_hostlist("burst-1-[0-3]")),
}


@pytest.fixture
def home():
    with short_directory() as directory:
        yield directory


@pytest.fixture
def start(home):
    """Return what starts `burst demo`, with all its files below the directory."""
    started = []
    (home / "t").mkdir()
    own = {**os.environ, "TMPDIR": str(home / "t"), "PYTHONUTF8": "1"}
    # A site may set it, and then no output is left for the end.
    own.pop("PYTHONUNBUFFERED", None)

    def run(*options, **variables):
        command = [sys.executable, "-m", "burst", "demo", *options]
        demo = subprocess.Popen(
            command,
            cwd=home,
            env=own | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        started.append(demo)
        return demo

    yield run
    for demo in started:
        demo.kill()
        demo.communicate()


def finish(demo):
    output, errors = demo.communicate(timeout=HANG_S)
    return demo.returncode, output, errors


def is_clean(home):
    return not any((home / "t").iterdir()) and pids_with(str(home / "t")) == []


def check_story(found, lead, mode):
    """Assert what `burst demo --json` prints of all but the jobs that pass others."""
    assert list(found) == ["ok", "lead", "mode", "jobs", "bursts", "left"]
    assert found["ok"] is True
    assert (found["lead"], found["mode"]) == (lead, mode)
    assert found["left"] == {"followers": 0, "slots": 0, "files": 0}
    jobs = found["jobs"]
    assert all(list(job) == ["id", "nodes", "state", "output"] for job in jobs)
    assert len({parse_jobid(job["id"]) for job in jobs}) == len(jobs)
    assert [(job["nodes"], job["state"]) for job in jobs[:4]] == [
        (2, "completed"),
        (4, "completed"),
        (2, "completed"),
        (9, "canceled"),
    ]
    own, large, small, huge = (job["output"].split() for job in jobs[:4])
    assert sorted(own) == ["lead-0", "lead-1"]
    assert sorted(large) == sorted(HOSTS["burst-0"])
    assert len(set(small)) == 2
    assert set(small) <= HOSTS["burst-1"]
    assert huge == []
    assert [burst["ranks"] for burst in found["bursts"]] == ["2-5", "6-7"]
    for burst, slot in zip(found["bursts"], HOSTS, strict=True):
        assert list(burst) == ["id", "provider", "ranks", "result", "timeline"]
        assert re.fullmatch(rf"{slot}-[0-9a-f]{{6}}", burst["id"])
        assert (burst["provider"], burst["result"]) == ("local", "completed")
        check_timeline(burst["timeline"], mode)


def check_timeline(timeline, mode):
    held = () if mode == "hold" else ("hold",)
    assert list(timeline) == [stage for stage in STAGES if stage not in held]
    assert timeline["submit"] == 0.0
    in_order = ("submit", "provision", "joined", "online", "started", "finished")
    for earlier, later in itertools.pairwise(in_order):
        assert timeline[earlier] <= timeline[later]
    # The lead's clock and the daemon's are read apart.
    assert timeline["finished"] < timeline["drained"] <= timeline["reaped"]


def test_the_whole_story_on_the_embedded_lead(start, home):
    status, output, errors = finish(start("--json"))

    assert status == 0, errors
    check_story(json.loads(output), "embedded", "hold")
    check_progress(errors.splitlines())
    assert is_clean(home)


def check_progress(lines):
    """Assert that each command was shown, and how it ended."""
    typed = [line.split()[1:4] for line in lines if line.startswith("$ ")]
    assert typed[0] == ["burst", "lead", "init"]
    assert typed.count(["burst", "embedded", "submit"]) == 4
    assert ["burst", "embedded", "cancel"] in typed
    assert any("it needs 9 nodes; offers have that many" in li for li in lines)
    last = r"burst demo: all went as it should, in \d+\.\d s"
    assert re.fullmatch(last, lines[-1])
    assert all(line.isprintable() for line in lines)


def test_for_people_it_reports_the_timelines(home, capsys):
    story = Story(home, "hold", None)
    story.timelines = "$ burst explain burst-0-aaaaaa\nburst-0-aaaaaa: inactive\n\n"

    report(story, {"followers": 0, "slots": 1, "files": 2}, ok=False, as_json=False)

    left = "left: 0 followers, 1 slots leased, 2 files\n"
    assert capsys.readouterr().out == story.timelines + left


@pytest.mark.flux
def test_the_whole_story_on_flux_where_local_jobs_pass_one_that_waits(start, home):
    status, output, errors = finish(start("--flux", "--mode", "scheduler", "--json"))

    assert status == 0, errors
    found = json.loads(output)
    check_story(found, "flux", "scheduler")
    passing = found["jobs"][4:]
    states = [(job["nodes"], job["state"]) for job in passing]
    assert states == [(2, "completed"), (1, "completed")]
    assert sorted(passing[0]["output"].split()) == ["lead-0", "lead-1"]
    assert is_clean(home)


def test_mode_scheduler_is_for_flux_only(start):
    status, _, errors = finish(start("--mode", "scheduler"))

    assert status == 2
    assert "--mode scheduler needs --flux" in errors


def read_until(demo, words):
    """Read what the demo tells, up to a line with these words."""
    told = []
    for line in demo.stderr:
        told.append(line)
        if re.search(words, line):
            return
    raise AssertionError("".join(told))


def test_an_interruption_takes_everything_down(start, home):
    demo = start()
    read_until(demo, r"burst-0-\w+: ")
    demo.send_signal(signal.SIGINT)

    status, output, errors = finish(demo)

    assert status == 128 + signal.SIGINT
    assert output == ""
    assert errors.endswith(
        "burst demo: interrupted; all processes are ended, all files removed\n"
    )
    assert "ERROR" not in errors
    assert is_clean(home)


def broken(home, script):
    """Return a PYTHONPATH with which every Python of the demo runs this first."""
    (home / "p").mkdir()
    (home / "p" / "sitecustomize.py").write_text(
        "import os, subprocess, sys\n"
        "def is_broker(prefix):\n"
        "    return any(word.startswith(prefix) for word in sys.orig_argv)\n"
        + textwrap.dedent(script)
    )
    return {"PYTHONPATH": str(home / "p")}


def test_followers_that_do_not_start_fail_the_demo_and_it_says_why(start, home):
    script = """
        if "follower" in sys.orig_argv and is_broker("burst-"):
            os.write(2, b"broken on purpose")
            os._exit(3)
        """
    status, output, errors = finish(start("--json", **broken(home, script)))

    found = json.loads(output)
    assert status == 1
    assert found["ok"] is False
    assert found["bursts"][0]["result"] == "failed"
    assert found["left"]["followers"] == 0
    assert found["left"]["slots"] == 0
    error, kept = errors.splitlines()[-2:]
    assert re.fullmatch(
        r"burst demo: ERROR: burst-0-\w+ failed: burst-0-\d exited with status 3:"
        r" broken on purpose",
        error,
    )
    place = Path(kept.removeprefix("burst demo: logs and settings are kept in "))
    assert place.parent == home / "t"
    assert {"lead-0.log", "lead-1.log", "daemon.log", "burst.toml"} <= {
        path.name for path in place.iterdir()
    }
    assert found["left"]["files"] == 1 + sum(1 for _ in place.rglob("*"))
    assert pids_with(str(home / "t")) == []


def test_a_lead_that_ends_fails_the_demo_and_what_outlives_it_is_killed(start, home):
    script = """
        if is_broker("lead-0"):
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
            os.write(2, b"no luck")
            os._exit(7)
        """
    status, output, errors = finish(start("--json", **broken(home, script)))

    found = json.loads(output)
    assert status == 1
    assert "burst demo: ERROR: lead-0 ended with status 7: no luck\n" in errors
    assert "burst demo: ERROR: 1 followers were left\n" in errors
    assert found["jobs"] == found["bursts"] == []
    assert found["left"]["followers"] == 1
    assert pids_with(str(home / "t")) == []


def test_without_flux_the_demo_on_flux_says_what_to_do(start, home):
    status, output, errors = finish(start("--flux", PATH=str(home)))

    assert status == 1
    assert output == ""
    assert errors.startswith(
        "burst: ERROR: there is no flux on PATH; install flux-core"
    )
    assert is_clean(home)


def test_a_second_interruption_kills_what_the_first_waits_for(home, start):
    demo = start()
    read_until(demo, "the bursts run")
    demo.send_signal(signal.SIGINT)
    read_until(demo, "everything is taken down")
    demo.send_signal(signal.SIGINT)

    status, _, errors = finish(demo)

    assert status == 130, errors
    assert is_clean(home)


def test_where_nobody_reads_any_more_everything_is_taken_down_all_the_same(home, start):
    demo = start()
    demo.stderr.readline()
    demo.stderr.close()
    demo.stderr = None
    # One is the demo itself.
    wait_until(lambda: len(pids_with(str(home / "t"))) > 1, "its first broker")
    demo.terminate()

    assert finish(demo)[0] == 128 + signal.SIGTERM

    assert is_clean(home)
