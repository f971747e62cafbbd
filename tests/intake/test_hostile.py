# SPDX-License-Identifier: MIT
"""What anybody may write into jobspecs, memos and requests harms neither side of us.

After each of these the daemon and sched-burst serve the next one as before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from burst.model.jobid import parse_jobid
from tests.cli.cli_harness import DaemonProcess, open_harness
from tests.flux_instance import FluxInstance
from tests.flux_pool import FluxPool
from tests.intake.user_cli import UserCli, use_scheduler
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

# Deeper than Python decodes; Flux takes it.
DEEP = "[" * 1500 + "]" * 1500
# Without Flux's Python, which would not encode such a thing.
_ASK = """
import sys
from _flux._core import ffi, lib
from flux.core.inner import raw
import flux
handle = flux.Flux()
future = raw.flux_rpc(handle, sys.argv[1], sys.stdin.read(), 0, 0)
raw.flux_rpc_get(future, ffi.NULL)
"""


@pytest.fixture(scope="module")
def instance(flux_pool: FluxPool) -> Iterator[FluxInstance]:
    with flux_pool.lend(prepare=use_scheduler) as instance:
        yield instance


@pytest.fixture(scope="module")
def daemon(instance: FluxInstance) -> Iterator[DaemonProcess]:
    with open_harness(instance) as cli:
        cli.write(intake={"mode": "scheduler"})
        with cli.daemon() as daemon:
            yield daemon


def submit(user: UserCli, *options: str, **system: Any) -> str:
    """Submit a small job that may burst, with these attributes, past the CLI."""
    spec = user.spec("-n1", "true")
    spec["attributes"]["system"] |= {"burstable": True, **system}
    path = user.instance.directory / "spec.json"
    path.write_text(json.dumps(spec))
    return user.do("job", "submit", *options, str(path))


def memo_too_deep(user: UserCli) -> None:
    """A memo of a job that may burst, which the event of its start repeats."""
    job = user.submit("--setattr=burstable", "--urgency=hold", "-n1", "true")
    memo = f'{{"id":{int(parse_jobid(job))},"memo":{{"x":{DEEP}}}}}'
    assert user.ask(_ASK, "job-manager.memo", memo).status == 0
    user.do("job", "urgency", job, "16")
    user.ended(job)


def request_too_deep(user: UserCli) -> None:
    """A request to the daemon."""
    said = user.ask(_ASK, "burst.status", f'{{"x":{DEEP}}}')
    assert said.status != 0


def constraint_too_deep(user: UserCli) -> None:
    """A constraint that Python cannot evaluate, of which its user is told."""
    constraint: dict[str, Any] = {"properties": ["burst"]}
    for _ in range(450):
        constraint = {"not": [constraint]}
    # Held: it might have run before its user is told.
    job = submit(user, "--urgency=0", constraints=constraint)
    shown = "-no{user.burst.state} {user.burst.why}"
    wait_until(
        lambda: "than burst evaluates" in user.do("jobs", shown, job),
        "the job to be told",
    )
    user.type("cancel", job)
    user.ended(job)


def constraint_that_only_own_ranks_find_wrong(user: UserCli) -> None:
    """One that for lent ranks is false before the wrong part of it is reached."""
    wrong = {"and": [{"properties": ["local"]}, {"not": []}]}
    assert "cannot evaluate" in user.event(submit(user, constraints=wrong), "exception")


@pytest.mark.parametrize(
    "harm",
    [
        memo_too_deep,
        request_too_deep,
        constraint_too_deep,
        constraint_that_only_own_ranks_find_wrong,
    ],
)
def test_the_next_job_is_served_as_before(
    user: UserCli, daemon: DaemonProcess, harm: Callable[[UserCli], None]
) -> None:
    harm(user)
    job = user.submit("--burst", "-N2", "flux", "getattr", "hostname")
    user.ended(job)
    assert user.hosts(job).startswith("burst-")
    wait_until(lambda: f"{job} job" in daemon.log, "the job to be told")
    assert "Traceback" not in daemon.log
    assert "internal error" not in daemon.log


def test_what_the_owner_holds_stays_held_whatever_its_user_wrote(
    user: UserCli, daemon: DaemonProcess
) -> None:
    """As if it had been submitted held, for the daemon to release."""
    user.do("queue", "stop")
    held = submit(user, burst={"urgency": 16})
    user.do("job", "urgency", held, "hold")
    user.do("queue", "start")
    other = user.submit("--burst", "-N2", "true")
    wait_until(lambda: f"{other} job" in daemon.log, "the next job to be told")
    user.ended(other)
    assert user.do("jobs", "-no{state} {urgency}", held) == "SCHED 0"
