# SPDX-License-Identifier: MIT
"""Each way in, from `flux submit --burst` to the end of the burst, on a real Flux."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.cli_harness import CliHarness, DaemonProcess, burst
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.intake.modes import IN_QUEUE, IN_SCHEDULER, MODES, Serve, leave_nothing
from tests.intake.user_cli import UserCli
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(600),
]

HOSTNAME = ("flux", "getattr", "hostname")


@MODES
def test_a_burst_job_goes_its_way_and_local_jobs_pass_it(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str
) -> None:
    with serve(mode):
        lent = user.submit("--burst", "--burst-provider=local", "-N2", *HOSTNAME)
        local = [user.submit("-n1", "true") for _ in range(3)]
        user.ended(*local)
        user.ended(lent)
        assert user.hosts(lent) == "burst-0-[0-1]"
        refused = user.type(
            "submit", "--burst", "--burst-provider=nosuch", "-N4", "true"
        )
        assert "no such provider; there are: local" in refused.error
        leave_nothing(cli)


@MODES
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


@IN_QUEUE
def test_a_job_larger_than_the_instance_waits_while_a_provider_has_the_nodes(
    user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    large = {"type": "local", "dir": str(cli.home), "cores": 4, "max_nodes": 100}
    with serve("queue", providers={"local": large}):
        job = user.submit("--burst", "-N100", "true")
        user.ended(user.submit("-n1", "true"))
        why = "they are to be had, but no rank slots of the lead hold more than 8"
        wait_until(lambda: why in cli.run("explain", job).stdout, why)
        assert user.state(job) == "SCHED"
        memo = ("jobs", "-no{user.burst.why}", job)
        wait_until(
            lambda: "no rank slots" in user.do(*memo),
            lambda: f"its memo to say why: {user.do(*memo)}",
        )


@IN_SCHEDULER
def test_where_none_can_it_ends_with_an_exception_that_names_the_limit(
    user: UserCli, serve: Serve
) -> None:
    with serve("scheduler", limits={"max_nodes": 50}):
        job = user.submit("--burst", "-N100", "true")
        said = user.event(job, "exception")
        assert 'type="burst"' in said
        assert "it needs 100 nodes; the limit limits.max_nodes is 50" in said
        user.ended(job)


@IN_SCHEDULER
def test_a_reloaded_scheduler_is_told_again(
    user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    with serve("scheduler"):
        first = user.submit("--burst", "-N2", *HOSTNAME)
        user.reload_scheduler()
        user.ended(first)
        second = user.submit("--burst", "-N2", *HOSTNAME)
        user.ended(second)
        leave_nothing(cli)


@IN_SCHEDULER
def test_what_a_guest_can_write_is_never_read_back(
    user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    """Memos say that it has nodes and attributes that it may have more: it may not."""
    with serve("scheduler", limits={"max_nodes_per_user": 2}):
        forged = ('--setattr=burst={"urgency":31,"max-nodes":100,"state":"released"}',)
        job = user.submit("--setattr=burstable", *forged, "-N2", "sleep", "inf")
        user.event(job, "start")
        more = user.submit("--setattr=burstable", *forged, "-N2", "true")
        user.do("job", "memo", more, "burst.state=released", "burst.nodes=100")
        wait_until(
            lambda: "limit of 2 nodes a user" in cli.run("explain", more).stdout,
            "the limit to be told",
        )
        assert user.state(more) == "SCHED"
        assert user.do("jobs", "-no{priority}", more) == "16"
        assert len(cli.status()["bursts"]) == 1
        user.do("cancel", job)
        user.ended(more)


@IN_QUEUE
def test_a_job_with_constraints_of_its_own_is_told_that_it_cannot_be_moved(
    user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    with serve("queue", intake={"impossible": "hold"}):
        words = ("--setattr=burstable", "-qburst", "--requires=host:burst-0-[0-3]")
        job = user.submit(*words, "-N2", "true")
        wait_until(
            lambda: "submit it without --requires" in cli.run("explain", job).stdout,
            "the reason to be told",
        )
        user.ended(user.submit("-n1", "true"))
        user.do("cancel", job)
        leave_nothing(cli)


TAKEN = {"queues": {"burst": {}, "burst-ready": {"requires": ["burst"]}}}


@pytest.mark.parametrize(
    ("wanted", "tables", "says"),
    [
        ("scheduler", {}, "the loaded scheduler is sched-simple"),
        ("queue", {}, "the instance has no queue burst"),
        ("queue", TAKEN, "queue burst is there already and requires nothing"),
    ],
)
def test_a_daemon_does_not_start_where_jobs_cannot_come_in_that_way(
    instance: FluxInstance,
    cli: CliHarness,
    wanted: str,
    tables: dict[str, Any],
    says: str,
) -> None:
    instance.reload_config(tables)
    cli.write(intake={"mode": wanted})
    daemon = DaemonProcess(cli)
    assert daemon.wait() == 1
    assert says in daemon.log
    assert "burst setup" in daemon.log
    assert "[intake]" in daemon.log


@pytest.mark.parametrize("mode", ["hold"])
def test_a_job_larger_than_all_slots_runs_once_the_lead_has_larger_ones(
    instance: FluxInstance, user: UserCli, cli: CliHarness, serve: Serve
) -> None:
    """Seed's wish: to ask for more than the instance could ever have had."""
    local = {"type": "local", "dir": str(cli.home), "cores": 4, "max_nodes": 5}
    many = {"providers": {"local": local}, "plan": {"spread": False}}
    with serve("hold", **many) as daemon:
        job = user.submit("--burst", "-N5", *HOSTNAME)
        why = "no rank slots of the lead hold more than 4"
        wait_until(lambda: why in cli.run("explain", job).stdout, why)
        add = ("lead", "add-slot", str(instance.directory), "burst-2-[0-4]:4")
        assert "as ranks 10-14, each 4 cores" in burst(*add).stdout
        asked = ("lead", "check", str(instance.directory), "--uri", instance.uri)
        assert "a restart adds burst-2-[0-4] as ranks 10-14" in burst(*asked).stdout
        instance.stop()
        assert daemon.wait() == 1, "it waits for no lead that was shut down"
    instance.start()
    with serve("hold", **many):
        assert "no restart is needed" in burst(*asked).stdout
        user.ended(job)
        assert user.hosts(job) == "burst-2-[0-4]"
        leave_nothing(cli)


@pytest.mark.parametrize("mode", ["hold", "queue"])
def test_lent_nodes_do_not_wait_for_a_job_that_waits_for_own_nodes(
    user: UserCli, cli: CliHarness, serve: Serve, mode: str
) -> None:
    """Flux itself looks at no job behind the first that waits."""
    with serve(mode):
        own = user.submit("-N1", "sleep", "inf")
        user.event(own, "start")
        ahead = user.submit("-N1", "sleep", "inf")
        lent = user.submit("--burst", "--burst-provider=local", "-N2", *HOSTNAME)
        user.ended(lent)
        assert user.hosts(lent) == "burst-0-[0-1]"
        assert user.state(ahead) == "SCHED"
        user.do("cancel", own)
        user.event(ahead, "start")
        user.do("cancel", ahead)
        user.ended(ahead)
        leave_nothing(cli)
