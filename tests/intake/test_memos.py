# SPDX-License-Identifier: MIT
"""What `flux jobs` shows of a burst job while its user updates it, by sched-burst.

Flux keeps memos over an update, as long as the job has its priority again before the
scheduler has answered that the old request is canceled. By a plugin that says
priorities later, as one that asks a database may, it drops them.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.model.jobid import parse_jobid
from tests.cli.cli_harness import open_harness
from tests.flux_instance import FLUX, FluxInstance
from tests.intake.user_cli import UserCli
from tests.support.waiting import HANG_S, wait_until

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.flux


@pytest.fixture
def mode() -> str:
    return "scheduler"


@pytest.fixture
def waiting(instance: FluxInstance, user: UserCli) -> Iterator[str]:
    """Have a job that the rank slots keep waiting, and that was told so."""
    with open_harness(instance) as cli:
        local = {"type": "local", **cli.options, "max_nodes": 99}
        cli.write(intake={"mode": "scheduler"}, providers={"local": local})
        with cli.daemon():
            job = user.submit("--burst", "-N99", "-t1h", "true")
            wait_until(lambda: "burst lead add-slot" in told(user, job), "the memo")
            yield job


def told(user: UserCli, job: str) -> str:
    return user.do("jobs", "-no{state} {user.burst.why}", job)


def let_go(user: UserCli) -> None:
    """Return when the scheduler has answered all that it was asked to cancel."""
    assert user.stats()["burst_jobs"] <= 1


def test_a_job_that_its_user_updates_shows_why_it_waits(
    user: UserCli, waiting: str
) -> None:
    user.do("update", waiting, "duration=2h")
    let_go(user)
    wait_until(lambda: "SCHED it needs 99" in told(user, waiting), "the memo")


@pytest.mark.skipif(not COMPILER, reason="no C compiler for a jobtap plugin")
def test_where_flux_drops_the_memo_the_job_is_told_again(
    instance: FluxInstance, user: UserCli, waiting: str
) -> None:
    plugin = instance.directory / "late-priority.so"
    compile_plugin(plugin)
    user.do("jobtap", "load", str(plugin))
    job = parse_jobid(waiting)
    instance.set_urgency(job, 10)
    let_go(user)
    with pytest.raises(KeyError):
        instance.memo(job)
    # So soon that no tick of the daemon need have seen the job without its priority.
    instance.rpc("job-manager.late-priority.say", {"id": job, "priority": 10})
    wait_until(lambda: "SCHED it needs 99" in told(user, waiting), "the memo")


def compile_plugin(path: Path) -> None:
    """Compile the jobtap plugin that says priorities late."""
    source = Path(__file__).with_name("late_priority.c")
    include = Path(FLUX).resolve().parents[1] / "include"
    words = ["-shared", "-fPIC", f"-I{include}", str(source), "-o", str(path)]
    subprocess.run([str(COMPILER), *words], check=True, timeout=HANG_S)
