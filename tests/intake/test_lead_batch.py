# SPDX-License-Identifier: MIT
"""`burst lead batch`: a user bursts from an allocation of his own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from burst.flux.lead import connect
from tests.cli.cli_harness import BURST
from tests.intake.allocation import Parent, User, open_parent, open_user
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

WAIT = """\
flux submit --burst -N4 sleep 600
flux job wait-event -q $(flux jobs -no {id}) start
touch up
sleep 600
"""


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    with open_parent() as parent:
        yield parent


@pytest.fixture
def user(parent: Parent) -> Iterator[User]:
    with open_user(parent) as user:
        yield user


def test_a_job_larger_than_the_allocation_runs_in_it_as_the_settings_say(
    user: User,
) -> None:
    user.tables["intake"] = {"mode": "scheduler"}
    script = """\
        flux getattr size
        flux run -N2 true && echo own: $FLUX_ENCLOSING_ID $1
        flux submit --wait --quiet --burst --burst-wait=0 -N4 --output=inner \\
            flux getattr hostname
        cat inner
        flux module list | grep -o 'sched-[a-z]*'
        exit 3
    """
    (user.directory / "script.sh").write_text(f"#!/bin/sh\n{script}")
    (job,) = user.batch("-N2", "-t", "1h", "script.sh", "word").lines
    assert user.status(job) == 3
    said = user.output().splitlines()
    assert said[:2] == ["6", f"own: {job} word"]
    assert {f"burst-0-{number}" for number in range(4)} <= set(said)
    assert "sched-burst" in said
    user.ends_clean()


def test_it_is_found_from_the_parent_and_canceled_there(user: User) -> None:
    job = user.submit("-N2", "-t1h", "--job-name=mine", script=WAIT)
    wait_until((user.directory / "up").exists, user.output)
    with closing(connect(user.flux("uri", job))) as lead:
        ends = lead.identity().ends
    r = json.loads(user.flux("job", "info", job, "R"))
    assert ends == r["execution"]["expiration"] > 0, "leases end by that"
    assert user.flux("jobs", "-no", "{name} {status}", job) == "mine RUN"
    assert user.flux("uri", job).startswith("local:///")
    assert user.flux("proxy", job, "flux", "getattr", "size") == "6"
    assert "burst-0  2-5" in user.flux("proxy", job, "flux", "burst", "status")
    assert "mine" in user.flux("pstree")
    assert len(user.followers()) >= 4
    user.flux("cancel", job)
    user.status(job)
    user.ends_clean()


def test_what_one_leaves_that_was_killed_is_swept_from_outside(user: User) -> None:
    job = user.submit("-N1", script=WAIT)
    wait_until((user.directory / "up").exists, "the burst")
    (place,) = user.base.iterdir()
    assert user.run(BURST, "lead", "sweep").lines == [f"{place}: its job has not ended"]
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
    nothing = ["no lead left anything"]
    assert user.run(BURST, "lead", "sweep").lines == nothing


def test_where_the_daemon_cannot_serve_the_script_is_not_run(user: User) -> None:
    user.tables["http"] = {"listen": "unix:/proc/no/socket"}
    job = user.submit("-N1", script="touch up")
    assert user.status(job) == 1
    said = user.output()
    assert "the daemon did not start, so the script was not run: /" in said
    assert "burst.toml: http.listen: unix:/proc/no/socket" in said
    assert not (user.directory / "up").exists()
    user.ends_clean()


def test_a_script_that_cannot_be_run_is_told_as_a_shell_does(user: User) -> None:
    (user.directory / "script.sh").write_text("#!/no/such/shell\n")
    (job,) = user.batch("-N1", "script.sh").lines
    assert user.status(job) == 127
    assert "the script cannot be run: No such file or directory; check" in user.output()
    user.ends_clean()


def test_what_exists_without_a_script_is_swept_from_outside(user: User) -> None:
    """Standing nodes are rented without a job."""
    stuck, program = user.directory / "stuck", user.directory / "program"
    stuck.touch()
    program.write_text(f"""#!/bin/sh
        owner=$(cat {user.base}/*/owner)
        [ "$1" = list ] || exit 0
        [ -e {stuck} ] || {{ echo '[]'; exit; }}
        echo '[{{"name": "'$owner'.site.burst-0-1a2b3c", "state": "running"}}]'
    """)
    program.chmod(0o755)
    shared = {"dir": str(user.directory / "followers"), "cores": 2, "max_nodes": 4}
    site = {"type": "command", "program": [str(program)], **shared}
    user.tables |= {"providers": {"site": site}, "deadlines": {"reap": "2s"}}
    (user.directory / "script.sh").write_text("#!/no/such/shell\n")
    (job,) = user.batch("-N1", "script.sh").lines
    assert user.status(job) == 127
    assert "not all gone within 2s (deadlines.reap): burst-0-1a2b3c" in user.output()
    (place,) = user.base.iterdir()
    stuck.unlink()
    said = user.run(BURST, "lead", "sweep")
    assert said.lines == [f"{place}: nothing is left"]


def test_what_cannot_be_is_told_and_leaves_nothing(user: User) -> None:
    for words, text, told in (
        (
            ("-N1", "none.sh"),
            "",
            "flux-batch: ERROR: No such file or directory: 'none.sh'",
        ),
        (("-N1", "plain.sh"), "echo hi", "plain.sh does not appear to start with '#!'"),
        (("-N1", "--conf=x=1", "plain.sh"), "#!/bin/sh", "leave --conf out"),
        (("-N1", "--quiet", "plain.sh"), "#!/bin/sh", "needs the jobid; leave it out"),
        (("-N1", "plain.sh"), "#!/bin/sh\n#flux: --quiet", "needs the jobid; leave"),
    ):
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
    assert error.startswith("burst.toml: no provider is enabled, so none can add")
    (user.directory / "script.sh").write_text("#!/bin/sh")
    words = ("lead", "batch", "-N1", "--slots=1", "script.sh")
    user.environment["HOME"] = str(user.directory)
    error = user.run(BURST, *words).error
    assert error.startswith(
        "there is no settings file, so no provider can add nodes; name"
    )


def test_without_an_instance_it_says_so(user: User) -> None:
    user.environment["FLUX_URI"] = "local:///tmp/none/local"
    error = user.batch("-N1", script="true").error
    assert error.startswith("there is no Flux instance to submit to: ")
    assert error.endswith("works, or set FLUX_URI")
    assert user.left() == []
