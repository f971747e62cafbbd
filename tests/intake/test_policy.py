# SPDX-License-Identifier: MIT
"""Rules on real Flux: a job that is not worth a burst starts on own nodes."""

from __future__ import annotations

import pytest

from tests.cli.cli_harness import CliHarness
from tests.intake.modes import Serve, leave_nothing
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

# Whatever is forecast here is too soon for a burst; nothing is decided without.
ASKS = {
    "plan": {"worth": 0.1},
    "policy": [{"name": "dear", "worth": 1000.0}],
    "deadlines": {"idle": "1h", "run": "1h"},
}


@pytest.mark.parametrize("mode", ["hold"])
def test_a_job_that_waits_for_own_nodes_is_held_by_nobody(
    serve: Serve, cli: CliHarness, user: UserCli
) -> None:
    """In mode scheduler none is ever held."""

    def verdict(job: str) -> str:
        said = cli.run("explain", job, "--json")
        return "" if said.status else str(said.json["verdict"])

    def submit() -> str:
        """Submit a job that is not worth a burst, behind one that has all own nodes."""
        job = user.submit("--burst", "--burst-policy=auto", "-n1", "true")
        waits = {"not-worth", "not-forecast"}
        wait_until(lambda: verdict(job) in waits, "the job to be judged")
        wait_until(
            lambda: user.do("jobs", "-no", "{urgency}", job) == "16",
            "the job to be left to Flux",
        )
        return job

    with serve("hold", **ASKS):
        blocking = ("-N1", "--exclusive", "-t10m", "sleep", "inf")
        blocker = user.submit(*blocking)
        user.event(blocker, "start")
        job = submit()
        user.do("cancel", blocker)
        user.ended(job)
        assert user.hosts(job).startswith("lead-")
        assert not cli.status()["bursts"]
        # Its user may have a burst all the same.
        blocker = user.submit(*blocking)
        user.event(blocker, "start")
        job = submit()
        said = cli.run("request", "--job", job).lines
        assert said[0].startswith(f"{job}: ")
        assert "burst-" in said[0], said
        user.ended(job)
        assert user.hosts(job).startswith("burst-")
        user.do("cancel", blocker)
        user.ended(blocker)
        leave_nothing(cli)
