# SPDX-License-Identifier: MIT
"""Each way in, from `flux submit --burst` to the end of the burst, on a real Flux."""

from __future__ import annotations

import pytest

from tests.cli.cli_harness import CliHarness, burst
from tests.flux_instance import FluxInstance
from tests.intake.modes import MODES, Serve, leave_nothing
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

BURST = ("--burst", "--burst-provider=local")
HOSTNAME = ("flux", "getattr", "hostname")


# How sched-burst follows such changes is in test_scheduler.py and test_memos.py.
@pytest.mark.parametrize("mode", ["hold", "queue"])
def test_what_users_do_to_waiting_jobs_leaves_nothing_behind(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str
) -> None:
    """No provider can serve them: the limit is of nodes in use at a time."""
    with serve(mode, limits={"max_bursts": 1}):
        first = user.submit("--burst", "-N2", "-t1h", "sleep", "inf")
        user.event(first, "start")
        words = ("--burst", "-N2", "-t1h", "true")
        waiting = [user.submit(*words) for _ in range(3)]
        later = user.submit("--begin-time=+1h", *words)
        depends = user.submit(f"--dependency=afterok:{first}", *words)
        wait_until(lambda: cli.status()["pending"] == 5, "all to be known")
        user.do("update", waiting[0], "duration=2h")
        user.do("job", "urgency", waiting[1], "hold")
        user.do("job", "urgency", waiting[1], "10")
        if mode == "queue":
            user.do("update", waiting[2], "queue=burst-ready")
            wait_until(
                lambda: user.do("jobs", "-no{queue}", waiting[2]) == "burst",
                "the job to be moved back",
            )
        user.ended(user.submit("-n1", "true"))
        user.do("cancel", *waiting, later, depends, first)
        user.ended(first, *waiting, later, depends)
        leave_nothing(cli)


@pytest.mark.parametrize("mode", ["hold"])
def test_a_job_larger_than_all_slots_runs_once_the_lead_has_larger_ones(
    instance: FluxInstance, user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    """Seed's wish: to ask for more than the instance could ever have had."""
    local = {"type": "local", "dir": str(cli.home), "cores": 4, "max_nodes": 5}
    many = {"providers": {"local": local}, "plan": {"spread": False}}
    with serve("hold", **many) as daemon:
        job = user.submit("--burst", "-N5", *HOSTNAME)
        why = "on the lead's rank slots it can have at most 4"
        wait_until(lambda: why in cli.run("explain", job).stdout, why)
        add = ("lead", "add-slot", str(instance.directory), "burst-2-[0-4]:4")
        assert "as ranks 10-14, each 4 cores" in burst(*add).stdout
        asked = ("lead", "check", str(instance.directory), "--uri", instance.uri)
        assert "a restart adds burst-2-[0-4] as ranks 10-14" in burst(*asked).stdout
        instance.stop()
        assert daemon.wait() == 1, "it waits for no lead that was shut down"
    instance.start()
    with serve("hold", **many):
        assert "a restart changes no ranks" in burst(*asked).stdout
        user.ended(job)
        assert user.hosts(job) == "burst-2-[0-4]"
        leave_nothing(cli)


@MODES
def test_a_job_does_not_start_on_a_busy_burst_whose_lease_ends_before_it(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str
) -> None:
    """Flux would give it the free node of that burst, which comes first.

    It does not wait for a job that waits for own nodes: Flux itself looks at no job
    behind the first that waits.
    """
    times = {"lease": "30m", "drain": "1m"}
    with serve(mode, deadlines=times):
        own = user.submit("-N1", "sleep", "inf")
        user.event(own, "start")
        assert cli.run("request", "-N2").status == 0
        busy = user.submit(*BURST, "-N1", "-t15m", "sleep", "inf")
        user.event(busy, "start")
        assert user.hosts(busy) in ("burst-0-0", "burst-0-1")
        cli.write(intake={"mode": mode}, deadlines=times | {"lease": "3h"})
        assert cli.run("reload").status == 0
        ahead = user.submit("-N1", "sleep", "inf")
        longer = user.submit(*BURST, "-N1", "-t1h", "true")
        user.ended(longer)
        where = user.hosts(longer)
        assert where.startswith("burst-")
        assert where not in ("burst-0-0", "burst-0-1")
        assert user.state(ahead) == "SCHED"
        user.do("cancel", own)
        user.event(ahead, "start")
        user.do("cancel", busy, ahead)
        user.ended(busy, ahead)
        leave_nothing(cli)
