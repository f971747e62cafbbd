# SPDX-License-Identifier: MIT
"""`burst lead batch`: a user bursts from an allocation of his own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

from tests.cli.desk import BURST, Said, wait_until
from tests.flux_instance import FLUX, MISSING, pids_with
from tests.support.fluxlead import broker_environment

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(240),
]

SETTINGS = {
    "daemon": {"cadence": "1s", "observe": "0.2s"},
    "deadlines": {"reap": "60s"},
}
WAIT = """\
flux submit --burst -N4 sleep 600
until [ "$(flux jobs -no {status})" = RUN ]; do sleep 0.2; done
touch up
sleep 600
"""


class Parent:
    """An instance of two brokers that knows nothing of bursts, and one user of it."""

    def __init__(self, rundir: Path) -> None:
        options = ("--test-size=2", f"--test-rundir={rundir}")
        with (rundir / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [FLUX, "start", *options, "sh", "-c", f"touch {rundir}/up; sleep inf"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=broker_environment(),
            )
        self.uri = f"local://{rundir}/local-0"
        self.log = rundir / "log"

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


class User:
    """Somebody with a directory, who types commands in it."""

    def __init__(self, parent: Parent, directory: Path) -> None:
        self.directory = directory
        self.base = directory / "data/burst/batch"
        self.local: dict[str, object] = {
            "type": "local",
            "cores": 2,
            "dir": str(directory / "followers"),
            # Followers have it, and so do all processes of the job.
            "environment": {"BURST_TEST": str(directory)},
        }
        self.tables: dict[str, object] = {
            **SETTINGS,
            "providers": {"local": self.local},
        }
        plain = broker_environment()
        self.environment = {
            **plain,
            "PATH": f"{Path(sys.executable).parent}:{plain['PATH']}",
            "FLUX_URI": parent.uri,
            "FLUX_URI_RESOLVE_LOCAL": "1",
            "XDG_DATA_HOME": str(directory / "data"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "BURST_TEST": str(directory),
        }

    def run(self, *words: str) -> Said:
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def flux(self, *words: str) -> str:
        return "\n".join(self.run(FLUX, *words).lines)

    def batch(self, *words: str, script: str = "", slots: str = "4") -> Said:
        (self.directory / "burst.toml").write_text(tomli_w.dumps(self.tables))
        told = ("--config", "burst.toml", "--slots", slots)
        if script:
            (self.directory / "script.sh").write_text(f"#!/bin/sh\n{script}")
            words = (*words, "script.sh")
        return self.run(BURST, "lead", "batch", *told, *words)

    def submit(self, *words: str, script: str) -> str:
        (job,) = self.batch(*words, script=script).lines
        return job

    def status(self, job: str) -> int:
        """Wait for the job's end, and return its exit status."""
        self.flux("job", "wait-event", "-t90", job, "clean")
        return self.run(FLUX, "job", "status", job).status

    def output(self) -> str:
        (path,) = self.directory.glob("flux-*.out")
        return path.read_text()

    def followers(self) -> set[int]:
        return {pid for pid in self.processes() if b"BURST_OWNER=" in environ(pid)}

    def processes(self) -> set[int]:
        return set(pids_with(f"BURST_TEST={self.directory}"))

    def left(self) -> list[Path]:
        """Return what is left of any lead and any follower."""
        places = (self.base, self.directory / "followers")
        return [path for place in places if place.exists() for path in place.iterdir()]

    def ends_clean(self) -> None:
        wait_until(lambda: not self.processes(), "all processes to end")
        assert self.left() == []

    def kill(self) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    rundir = Path(tempfile.mkdtemp(prefix="bp-", dir="/tmp"))
    parent = Parent(rundir)
    try:
        wait_until((rundir / "up").exists, parent.log.read_text)
        yield parent
    finally:
        parent.end()
        shutil.rmtree(rundir, ignore_errors=True)


@pytest.fixture
def user(parent: Parent) -> Iterator[User]:
    directory = Path(tempfile.mkdtemp(prefix="bu-", dir="/tmp"))
    user = User(parent, directory)
    try:
        yield user
    finally:
        user.run(FLUX, "cancel", "--all", "--quiet")
        user.kill()
        shutil.rmtree(directory)


@pytest.mark.parametrize(("nodes", "status"), [(1, 0), (2, 3)])
def test_a_job_larger_than_the_allocation_runs_in_it(
    user: User, nodes: int, status: int
) -> None:
    script = f"""\
        flux getattr size
        flux run -N{nodes} true && echo own: $FLUX_ENCLOSING_ID $1
        flux submit --wait --quiet --burst --burst-wait=0 -N4 --output=inner \\
            flux getattr hostname
        cat inner
        exit {status}
    """
    (user.directory / "script.sh").write_text(f"#!/bin/sh\n{script}")
    (job,) = user.batch(f"-N{nodes}", "-t", "10m", "script.sh", "word").lines
    assert user.status(job) == status
    said = user.output().splitlines()
    assert said[:2] == [str(nodes + 4), f"own: {job} word"]
    assert {f"burst-0-{number}" for number in range(4)} <= set(said)
    user.ends_clean()


def test_it_is_found_from_the_parent(user: User) -> None:
    job = user.submit("-N2", "--job-name=mine", script="touch up; sleep 600")
    wait_until((user.directory / "up").exists, "the script to run")
    assert user.flux("jobs", "-no", "{name} {status}", job) == "mine RUN"
    assert user.flux("uri", job).startswith("local:///")
    assert user.flux("proxy", job, "flux", "getattr", "size") == "6"
    assert "burst-0  2-5" in user.flux("proxy", job, "flux", "burst", "status")
    assert "mine" in user.flux("pstree")
    user.flux("cancel", job)
    user.status(job)
    user.ends_clean()


@pytest.mark.parametrize("how", ["cancel", "time limit"])
def test_nothing_is_left_of_one_that_is_ended(user: User, how: str) -> None:
    words = () if how == "cancel" else ("-t", "12s")
    job = user.submit("-N1", *words, script=WAIT)
    wait_until((user.directory / "up").exists, user.output)
    assert len(user.followers()) >= 4
    if how == "cancel":
        user.flux("cancel", job)
    assert user.status(job) != 0
    user.ends_clean()


def test_what_one_leaves_that_was_killed_is_swept_from_outside(user: User) -> None:
    job = user.submit("-N1", script=WAIT)
    wait_until((user.directory / "up").exists, "the burst")
    (place,) = user.base.iterdir()
    assert user.run(BURST, "lead", "sweep").lines == [f"{place}: its job is not over"]
    followers = user.followers()
    # As a container's or a cgroup's end would.
    for pid in user.processes() - followers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert user.status(job) != 0
    assert user.followers()
    said = user.run(BURST, "lead", "sweep")
    assert said.lines == [f"{place}: nothing is left"]
    assert "burst: taking down burst-0-" in said.stderr
    user.ends_clean()
    nothing = ["nothing is left of any lead"]
    assert user.run(BURST, "lead", "sweep").lines == nothing


@pytest.mark.parametrize("mode", ["queue", "scheduler"])
def test_jobs_come_in_as_the_settings_say(user: User, mode: str) -> None:
    user.tables["intake"] = {"mode": mode}
    script = """\
        job=$(flux submit --burst --burst-wait=0 -N4 flux getattr hostname)
        flux run -n1 echo passed
        flux job wait-event -t60 $job clean
        flux module list | grep -o 'sched-[a-z]*'
        flux jobs -ano '{nodelist} {status}'
    """
    if mode == "queue":
        script = script.replace(" --burst-wait=0", "")
    job = user.submit("-N1", script=script)
    assert user.status(job) == 0, user.output()
    said = user.output()
    assert "passed" in said
    assert "burst-0-[0-3] COMPLETED" in said, said
    assert ("sched-burst" in said) == (mode == "scheduler")
    user.ends_clean()


def test_where_the_daemon_cannot_serve_the_script_is_not_run(user: User) -> None:
    user.tables["lead"] = {"address": "node"}
    user.tables["deadlines"] = {"address": "1s"}
    job = user.submit("-N1", script="touch up")
    assert user.status(job) == 1
    said = user.output()
    assert "does not serve, so the script was not run: followers could not re" in said
    assert not (user.directory / "up").exists()
    user.ends_clean()


def test_a_node_that_cannot_start_ends_the_job_and_says_why(user: User) -> None:
    job = user.submit("-N2", "--address", "no host", script="touch up")
    assert user.status(job) != 0
    events = user.flux("job", "eventlog", job)
    assert "rank 0: not a host name or address: 'no host'" in events
    user.ends_clean()


def test_a_dry_run_prints_the_jobspec_and_does_nothing(user: User) -> None:
    words = ("-N2", "--output=out.{{id}}", "-t5m", "--dry-run")
    spec = json.loads(user.batch(*words, script="true").stdout)
    (task,) = spec["tasks"]
    assert task["command"][-3:] == [str(task["command"][5]), "--", "{{tmpdir}}/script"]
    system = spec["attributes"]["system"]
    assert system["duration"] == 300
    assert system["files"]["script"]["data"] == "#!/bin/sh\ntrue"
    assert not {"BURST_LEAD_BATCH", "FLUX_CLI_PLUGINPATH"} & set(system["environment"])
    assert user.left() == []


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        (
            ("-N1", "none.sh"),
            "",
            "flux-batch: ERROR: No such file or directory: 'none.sh'",
        ),
        (("-N1", "plain.sh"), "echo hi", "plain.sh does not appear to start with '#!'"),
        (("-N1", "--conf=x=1", "plain.sh"), "#!/bin/sh", "leave --conf out"),
        (
            ("-N1", "--nosuch", "plain.sh"),
            "#!/bin/sh",
            "unrecognized arguments: --nosuch",
        ),
        (("plain.sh",), "#!/bin/sh", "Number of slots to allocate must be specified"),
        (("-N3", "plain.sh"), "#!/bin/sh", "-N3: this instance has 2 nodes; ask for"),
        (("-N0", "plain.sh"), "#!/bin/sh", "-N0: a lead has at least one own node"),
        (
            ("-N1", "--slots=0", "plain.sh"),
            "#!/bin/sh",
            "--slots 0: nothing could ever join",
        ),
    ],
)
def test_what_cannot_be_is_told_and_leaves_nothing(
    user: User, words: tuple[str, ...], text: str, told: str
) -> None:
    (user.directory / "plain.sh").write_text(text)
    said = user.batch(*words)
    assert said.status
    assert told in said.stderr
    assert said.stdout == ""
    assert user.left() == []


def test_settings_that_cannot_work_are_refused_before_the_job_waits(user: User) -> None:
    user.local["cores"] = "many"
    error = user.batch("-N1", script="true").error
    assert error.startswith("providers.local: cores: Expected whole number")
    user.local["enabled"] = False
    error = user.batch("-N1", script="true").error
    assert error.startswith("burst.toml: no provider is enabled, so nobody would bring")
    (user.directory / "script.sh").write_text("#!/bin/sh")
    words = ("lead", "batch", "-N1", "--slots=1", "script.sh")
    user.environment["HOME"] = str(user.directory)
    error = user.run(BURST, *words).error
    assert error.startswith("there are no settings, so nobody would bring nodes; name")


def test_without_an_instance_it_says_so(user: User) -> None:
    user.environment["FLUX_URI"] = "local:///tmp/none/local"
    error = user.batch("-N1", script="true").error
    assert error.startswith("there is no Flux instance to submit to: ")
    assert error.endswith("works, or set FLUX_URI")
    assert user.left() == []
