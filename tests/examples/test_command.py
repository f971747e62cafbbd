# SPDX-License-Identifier: MIT
"""The programs in examples/command keep the rules of `burst provider check`."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_command.provider import CommandProvider
from burst_command.settings import CommandSettings

from burst.config import convert, load
from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    Transient,
)
from burst.model.finding import Level
from burst.provider import BurstSpec, Phase
from burst.testing import example_lead, example_spec
from tests.examples import batch_programs
from tests.support.fluxlead import short_directory
from tests.support.own_name import needs_name
from tests.support.waiting import wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "command"
PBS = ("qsub", "qselect", "qstat", "qdel", "pbsdsh")
LSF = ("bsub", "bjobs", "bkill", "blaunch")
# qsub takes no job of a user without a name.
by_pbs = functools.partial(pytest.param, "pbs", marks=needs_name)
BY_PBS = by_pbs()
MACHINES = ["m1", "m2", "m3"]


class World:
    """PBS, LSF and machines, all of them this host."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs = path / "jobs"
        self.jobs.mkdir()
        (path / "bin").mkdir()
        for name in (*PBS, *LSF, "ssh"):
            words = [sys.executable, "-IS", batch_programs.__file__, str(path), name]
            file = path / "bin" / name
            file.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            file.chmod(0o755)

    def ask(self, name: str, word: str, asked: dict[str, Any]) -> str:
        """Return what the example of that name prints."""
        argv = [sys.executable, str(EXAMPLES / f"burst-{name}"), word]
        given = json.dumps(asked)
        done = subprocess.run(
            argv, input=given, text=True, stdout=subprocess.PIPE, check=True
        )
        return done.stdout

    def provider(self, name: str, **changes: Any) -> CommandProvider:
        """Return one by the example of that name."""
        arguments: dict[str, Any] = {}
        if name == "ssh":
            arguments = {"machines": MACHINES, "taken": str(self.path / "taken")}
        settings = CommandSettings(
            program=(sys.executable, str(EXAMPLES / f"burst-{name}")),
            dir=str(self.path / "shared"),
            cores=4,
            max_nodes=3,
            arguments=arguments,
        )
        settings = msgspec.structs.replace(settings, **changes)
        return CommandProvider("site", settings, "check-1")

    def add_ending(self, name: str) -> None:
        """Have a batch system list a job that is ending and cannot be ended."""
        job = self.jobs / "0"
        job.mkdir()
        (job / "name").write_text(name)
        (job / "ends").touch()

    def take(self, machine: str, text: str) -> None:
        """Have a machine taken, as burst-ssh notes it."""
        (self.path / "taken").mkdir(exist_ok=True)
        (self.path / "taken" / machine).symlink_to(text)

    def spec(self, nodes: int) -> BurstSpec:
        """Return a burst whose followers find no lead, and end soon."""
        return example_spec(example_lead(self.path), 0, "nodes", nodes)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with short_directory() as path:
        monkeypatch.setenv("PATH", f"{path}/bin:/usr/bin:/bin")
        yield World(path)


@pytest.mark.parametrize("name", [BY_PBS, "lsf", "ssh"])
def test_it_keeps_the_rules(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = world.path / "started"
    started.mkdir()
    monkeypatch.chdir(started)
    found = world.provider(name).check(lambda _: None, beat=0.1)
    assert [each for each in found if each.level is not Level.OK] == []
    assert len(found) == 5
    assert not list(world.jobs.iterdir())
    assert not list(started.iterdir()), "no file of a job's output"


@pytest.mark.parametrize(
    ("name", "says", "error"),
    [
        by_pbs("qsub: would exceed limit on resource ncpus", InsufficientCapacity),
        by_pbs("Connection refused", Transient),
        by_pbs("qsub: Unknown queue", Refused),
        ("lsf", "Job slot limit has been reached", InsufficientCapacity),
        ("lsf", "LSF is down. Please wait ...", Transient),
    ],
)
def test_a_job_that_is_not_taken(
    world: World, name: str, says: str, error: type[Exception]
) -> None:
    (world.path / "refuses").write_text(says)
    with pytest.raises(error, match=says):
        world.provider(name).provision(world.spec(2))


@needs_name
def test_a_pbs_without_gpus_is_a_mistake_in_the_settings(world: World) -> None:
    provider = world.provider("pbs", gpus=1)
    with pytest.raises(Refused, match="Unknown resource"):
        provider.provision(world.spec(2))


def test_there_are_no_more_machines_than_there_are(world: World) -> None:
    provider = world.provider("ssh")
    world.take("m2", "other.site.burst-9 burst-9-0 /x/start")
    world.take("m3", "other.site.burst-9 burst-9-1 /x/start")
    with pytest.raises(InsufficientCapacity):
        provider.provision(world.spec(2))
    assert provider.observe()[0].phase is Phase.PENDING


def test_a_machine_that_is_away_is_taken_until_it_answers(world: World) -> None:
    provider, spec = world.provider("ssh"), world.spec(1)
    world.take("m1", f"check-1.site.{spec.burst_id} {spec.hosts[0]} /x/start")
    away = world.path / "m1-is-away"
    away.touch()
    [status] = provider.observe()
    assert (status.phase, status.why) == (Phase.RUNNING, "m1: it does not answer")
    provider.reap(spec.burst_id)
    assert (world.path / "taken" / "m1").is_symlink()
    away.unlink()
    provider.reap(spec.burst_id)
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def test_a_machine_that_is_away_keeps_no_other_from_its_end(world: World) -> None:
    """Each takes some seconds, and the program has a minute."""
    for machine in ("m1", "m2"):
        world.take(machine, f"check-1.site.burst-0 {machine} /x/start")
    (world.path / "m1-waits").write_text("m2")
    arguments = {"machines": MACHINES, "taken": str(world.path / "taken")}
    asked = {"name": "check-1.site.burst-0", "arguments": arguments}
    world.ask("ssh", "end", asked)
    assert not list((world.path / "taken").iterdir())


def test_one_machine_that_does_not_answer_for_a_moment_ends_no_burst(
    world: World,
) -> None:
    start = world.path / "start"
    start.write_text("sleep 1000 & wait\n")
    for number, machine in enumerate(["m1", "m2"]):
        world.take(machine, f"check-1.site.burst-0 burst-0-{number} {start}")
    away = world.path / "m2-is-away"
    away.touch()
    asked = {"arguments": {"machines": MACHINES, "taken": f"{world.path}/taken"}}
    script = ["sh", str(start), "burst-0-0"]
    with subprocess.Popen(script, start_new_session=True) as first:
        try:
            [row] = json.loads(world.ask("ssh", "list", asked))
            away.unlink()
            [later] = json.loads(world.ask("ssh", "list", asked))
        finally:
            os.killpg(first.pid, signal.SIGKILL)
    runs = {"host": "burst-0-0", "state": "running"}
    why = "it does not answer"
    assert (row["state"], row["why"]) == ("running", f"m2: {why}")
    silent = {"host": "burst-0-1", "state": "running", "why": why}
    assert row["nodes"] == [runs, silent]
    why = "nothing runs there"
    assert (later["state"], later["why"]) == ("failed", f"m2: {why}")
    lost = {"host": "burst-0-1", "state": "failed", "lost": why}
    assert later["nodes"] == [runs, lost]


def test_free_machines_are_asked_at_once(world: World) -> None:
    """A few that are off would take up the time of the program one by one."""
    start, log = world.path / "start", world.path / "log"
    start.write_text("sleep 60 & wait\n")
    (world.path / "m1-is-away").touch()
    (world.path / "m2-waits").write_text("m3")
    burst = {"name": "check-1.site.burst-0", "hosts": ["burst-0-0"]}
    arguments = {"machines": MACHINES, "taken": str(world.path / "taken")}
    asked = {**burst, "start": str(start), "log": str(log), "arguments": arguments}
    world.ask("ssh", "begin", asked)
    assert [file.name for file in (world.path / "taken").iterdir()] == ["m2"]
    world.ask("ssh", "end", asked)


def test_a_machine_that_cannot_tell_what_runs_stays_taken(world: World) -> None:
    """As one without pgrep: what it prints, such as a banner, is no answer."""
    provider, spec = world.provider("ssh"), world.spec(1)
    world.take("m1", f"check-1.site.{spec.burst_id} {spec.hosts[0]} /x/a start")
    (world.path / "m1-has-no-pgrep").touch()
    provider.reap(spec.burst_id)
    assert provider.observe()[0].why == "m1: it does not answer"
    (world.path / "m1-has-no-pgrep").unlink()
    assert provider.observe()[0].why == "m1: nothing runs there"


def test_a_directory_may_have_any_name(world: World) -> None:
    """As its path is in the expression by which a machine's script is found."""
    settings = {"dir": str(world.path / "c++ (1)[2]")}
    found = world.provider("ssh", **settings).check(lambda _: None, beat=0.1)
    assert [each for each in found if each.level is not Level.OK] == []


@pytest.mark.parametrize("name", [BY_PBS, "lsf"])
def test_a_second_job_of_a_burst_does_nothing(world: World, name: str) -> None:
    """As after an answer that was lost, where the first job is listed only later."""
    start = world.path / "start"
    start.write_text(f"echo $$ >> {world.path}/started\nexec sleep 1000\n")
    burst = {"name": "check-1.site.burst-0", "arguments": {}}
    asked = {"hosts": ["burst-0-0"], "cores": 4, "gpus": 0, "seconds": 60}
    asked |= {"start": str(start), "log": str(world.path / "log"), **burst}
    for _ in range(2):
        world.ask(name, "begin", asked)
        [row] = json.loads(world.ask(name, "list", burst))
        assert (row["name"], row["state"]) == (burst["name"], "running")
    log, started = world.path / "log", world.path / "started"
    wait_until(lambda: log.exists() and "mkdir" in log.read_text(), "the second to end")
    wait_until(lambda: started.exists() and started.read_text(), "the first to start")
    world.ask(name, "end", burst)
    wait_until(lambda: world.ask(name, "list", burst) == "[]\n", "the first to end")
    assert len(started.read_text().splitlines()) == 1


@pytest.mark.parametrize("name", [BY_PBS, "lsf"])
def test_a_job_that_cannot_be_ended_any_more_keeps_no_other(
    world: World, name: str
) -> None:
    start = world.path / "start"
    start.write_text("exec sleep 1000\n")
    burst = {"name": "check-1.site.burst-0", "arguments": {}}
    asked = {"hosts": ["burst-0-0"], "cores": 4, "gpus": 0, "seconds": 60}
    asked |= {"start": str(start), "log": str(world.path / "log"), **burst}
    world.ask(name, "begin", asked)
    world.add_ending(f"burst.{burst['name']}")
    with contextlib.suppress(subprocess.CalledProcessError):
        world.ask(name, "end", burst)
    wait_until(lambda: not (world.jobs / "1").exists() or ended(world, "1"), "an end")


@pytest.mark.parametrize("name", [BY_PBS, "lsf"])
def test_a_job_that_is_ended_before_it_has_started_followers_starts_none(
    world: World, name: str
) -> None:
    start = world.path / "start"
    start.write_text("exec sleep 1000\n")
    # The job calls mkdir before it starts followers: it is ended then.
    mkdir = world.path / "bin" / "mkdir"
    mkdir.write_text('#!/bin/sh\n/bin/mkdir "$@"\nexec kill -TERM $PPID\n')
    mkdir.chmod(0o755)
    burst = {"name": "check-1.site.burst-0", "arguments": {}}
    asked = {"hosts": ["burst-0-0"], "cores": 4, "gpus": 0, "seconds": 60}
    asked |= {"start": str(start), "log": str(world.path / "log"), **burst}
    world.ask(name, "begin", asked)
    wait_until(lambda: ended(world, "1"), "an end")
    assert Path(f"{start}.begun").exists()


def ended(world: World, job: str) -> bool:
    """Tell whether a job has ended."""
    return not batch_programs.runs(int((world.jobs / job / "group").read_text()))


@needs_name
def test_a_job_of_pbs_that_is_ending_has_failed_and_is_let_end(world: World) -> None:
    """Each job that ends is in this state first, so it is no deletion by others."""
    burst = {"name": "check-1.site.burst-0", "arguments": {}}
    world.add_ending(f"burst.{burst['name']}")
    [row] = json.loads(world.ask("pbs", "list", burst))
    told = {"state": "failed", "why": "its job has ended"}
    assert row == {"name": burst["name"], **told}
    world.ask("pbs", "end", burst)


@needs_name
@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("qstat: Unknown Job Id 5.server", None),
        ("qstat: 5.server Job has finished, use -x or -H to obtain", None),
        ("qstat: Unknown Job Id 5.server\nConnection refused", Transient),
        # It was killed before it had printed all.
        ("", Transient),
    ],
)
def test_a_job_of_pbs_that_ends_before_it_is_read_is_left_out(
    world: World, says: str, error: type[ProviderError] | None
) -> None:
    world.add_ending("burst.check-1.site.burst-0")
    (world.path / "ended").write_text(says)
    provider = world.provider("pbs")
    if error is None:
        assert len(provider.observe()) == 1
        return
    with pytest.raises(error):
        provider.observe()


@pytest.mark.parametrize("name", [BY_PBS, "lsf"])
def test_a_job_lasts_until_what_it_has_started_has_ended(
    world: World, name: str
) -> None:
    """A batch system kills what is left of a job once its script has ended."""
    start, told = world.path / "start", world.path / "told"
    leave = world.path / "leave"
    start.write_text(
        f"trap 'echo told > {told}' TERM; echo started > {world.path}/started\n"
        f"until [ -e {leave} ]; do sleep 0.05; done\n"
    )
    burst = {"name": "check-1.site.burst-0", "arguments": {}}
    asked = {"hosts": ["burst-0-0"], "cores": 4, "gpus": 0, "seconds": 60}
    asked |= {"start": str(start), "log": str(world.path / "log"), **burst}
    world.ask(name, "begin", asked)
    wait_until((world.path / "started").exists, "the follower")
    [job] = world.jobs.iterdir()
    script = Path("/proc", (job / "group").read_text(), "stat")
    world.ask(name, "end", burst)
    wait_until(told.exists, "the signal")
    for _ in range(20):
        assert script.read_text().rpartition(")")[2].split()[0] not in "ZX"
        time.sleep(0.05)
    leave.touch()
    wait_until(lambda: world.ask(name, "list", burst) == "[]\n", "the job to end")


@pytest.mark.parametrize("name", [BY_PBS, "lsf"])
def test_other_jobs_are_passed_over(world: World, name: str) -> None:
    assert world.provider(name).list_all() == []


def test_its_settings_are_read() -> None:
    settings = load(EXAMPLES / "burst.toml")
    for name, table in settings.providers.items():
        options = convert(CommandSettings, table.options, "x")
        assert options.program == (f"/etc/flux/burst-{name}",)
        assert (EXAMPLES / f"burst-{name}").exists()


def test_the_programs_are_short() -> None:
    for file in EXAMPLES.glob("burst-*"):
        assert len(file.read_text().splitlines()) <= 80, file
