# SPDX-License-Identifier: MIT
"""Each way in, from `flux submit --burst` to the end of the burst, on a real Flux."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.cli_harness import DaemonProcess, Desk, burst, open_desk
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.intake.desk import SCHEDULER, Typist, plugin_path, wait_until
from tests.intake.modes import (
    FAILING,
    IN_QUEUE,
    IN_SCHEDULER,
    MODES,
    TABLES,
    Serve,
    leave_nothing,
    make_serve,
)

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not FLUX, reason=MISSING),
    pytest.mark.timeout(240),
]

HOSTNAME = ("flux", "getattr", "hostname")


@pytest.fixture
def typist(instance: FluxInstance) -> Typist:
    return Typist(instance, str(plugin_path()))


@pytest.fixture
def desk(instance: FluxInstance) -> Iterator[Desk]:
    with open_desk(instance) as desk:
        yield desk


@pytest.fixture
def serve(desk: Desk, typist: Typist) -> Serve:
    return make_serve(desk, typist)


@MODES
def test_a_burst_job_goes_its_way_and_local_jobs_pass_it(
    typist: Typist, desk: Desk, serve: Serve, mode: str
) -> None:
    with serve(mode):
        lent = typist.submit("--burst=local", "-N4", *HOSTNAME)
        local = [typist.submit("-n1", "true") for _ in range(3)]
        typist.ended(*local)
        typist.ended(lent)
        assert typist.hosts(lent) == "burst-0-[0-3]"
        refused = typist.type("submit", "--burst=nosuch", "-N4", "true")
        assert "no such provider; there are: local" in refused.error
        leave_nothing(desk)


@MODES
def test_what_users_do_to_waiting_jobs_leaves_nothing_behind(
    typist: Typist, desk: Desk, serve: Serve, mode: str
) -> None:
    """No provider can serve them: the limit is of nodes in use at a time."""
    with serve(mode, limits={"max_bursts": 1}):
        first = typist.submit("--burst", "-N4", "-t1h", "sleep", "inf")
        typist.event(first, "start")
        words = ("--burst", "-N4", "-t1h", "true")
        waiting = [typist.submit(*words) for _ in range(3)]
        later = typist.submit("--begin-time=+1h", *words)
        depends = typist.submit(f"--dependency=afterok:{first}", *words)
        wait_until(lambda: desk.status()["pending"] == 5, "all to be known")
        typist.do("update", waiting[0], "duration=2h")
        typist.do("job", "urgency", waiting[1], "hold")
        typist.do("job", "urgency", waiting[1], "10")
        if mode == "queue":
            typist.do("update", waiting[2], "queue=burst-ready")
            wait_until(
                lambda: typist.do("jobs", "-no{queue}", waiting[2]) == "burst",
                "the job to be moved back",
            )
        typist.ended(typist.submit("-n1", "true"))
        typist.do("cancel", *waiting, later, depends, first)
        typist.ended(first, *waiting, later, depends)
        leave_nothing(desk)


@FAILING
def test_a_job_larger_than_the_instance_waits_while_a_provider_has_the_nodes(
    typist: Typist, desk: Desk, serve: Serve, mode: str
) -> None:
    large = {"type": "local", "dir": str(desk.home), "cores": 4, "max_nodes": 100}
    with serve(mode, providers={"local": large}):
        job = typist.submit("--burst", "-N100", "true")
        typist.ended(typist.submit("-n1", "true"))
        why = "they are to be had, but no rank slots of the lead hold more than 8"
        wait_until(lambda: why in desk.run("explain", job).stdout, why)
        assert typist.state(job) == "SCHED"
        assert "no rank slots" in typist.do("jobs", "-no{user.burst.why}", job)


@FAILING
@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({}, "it needs 100 nodes; the most that any offer has is 8"),
        (
            {"limits": {"max_nodes": 50}},
            "it needs 100 nodes; the limit limits.max_nodes is 50",
        ),
    ],
)
def test_where_none_can_it_ends_with_an_exception_that_names_the_limit(
    typist: Typist, serve: Serve, mode: str, tables: dict[str, Any], why: str
) -> None:
    with serve(mode, **tables):
        job = typist.submit("--burst", "-N100", "true")
        said = typist.event(job, "exception")
        assert 'type="burst"' in said
        assert why in said
        typist.ended(job)


@IN_SCHEDULER
def test_a_reloaded_scheduler_is_told_again(
    typist: Typist, desk: Desk, serve: Serve
) -> None:
    with serve("scheduler"):
        first = typist.submit("--burst", "-N2", *HOSTNAME)
        typist.do("module", "remove", "sched-burst")
        typist.do("module", "load", SCHEDULER)
        typist.ended(first)
        second = typist.submit("--burst", "-N2", *HOSTNAME)
        typist.ended(second)
        leave_nothing(desk)


@IN_SCHEDULER
def test_what_a_guest_can_write_is_never_read_back(
    typist: Typist, desk: Desk, serve: Serve
) -> None:
    """Memos say that it has nodes and attributes that it may have more: it may not."""
    with serve("scheduler", limits={"max_nodes_per_user": 2}):
        forged = ('--setattr=burst={"urgency":31,"max-nodes":100,"state":"released"}',)
        job = typist.submit("--setattr=burstable", *forged, "-N2", "sleep", "inf")
        typist.event(job, "start")
        more = typist.submit("--setattr=burstable", *forged, "-N2", "true")
        typist.do("job", "memo", more, "burst.state=released", "burst.nodes=100")
        wait_until(
            lambda: "limit of 2 nodes a user" in desk.run("explain", more).stdout,
            "the limit to be told",
        )
        assert typist.state(more) == "SCHED"
        assert typist.do("jobs", "-no{priority}", more) == "16"
        assert len(desk.status()["bursts"]) == 1
        typist.do("cancel", job)
        typist.ended(more)


@IN_QUEUE
def test_a_job_with_constraints_of_its_own_is_told_that_it_cannot_be_moved(
    typist: Typist, desk: Desk, serve: Serve
) -> None:
    with serve("queue", intake={"impossible": "hold"}):
        words = ("--setattr=burstable", "-qburst", "--requires=host:burst-0-[0-3]")
        job = typist.submit(*words, "-N2", "true")
        wait_until(
            lambda: "submit it without --requires" in desk.run("explain", job).stdout,
            "the reason to be told",
        )
        typist.ended(typist.submit("-n1", "true"))
        typist.do("cancel", job)
        leave_nothing(desk)


@pytest.mark.parametrize(
    ("mode", "extra", "says"),
    [
        ("scheduler", {}, "the instance schedules by sched-simple"),
        ("queue", {}, "the instance has no queue burst"),
        (
            "queue",
            {"queues": {"burst": {}, "burst-ready": {"requires": ["burst"]}}},
            "queue burst is there already and requires nothing",
        ),
    ],
)
def test_a_daemon_does_not_start_where_jobs_cannot_come_in_that_way(
    desk: Desk, mode: str, says: str
) -> None:
    desk.write(intake={"mode": mode})
    daemon = DaemonProcess(desk)
    assert daemon.wait() == 1
    assert says in daemon.log
    assert "burst setup" in daemon.log
    assert 'set [intake] mode = "hold"' in daemon.log or "[intake]" in daemon.log


@pytest.mark.parametrize("extra", [TABLES["hold"]])
def test_a_job_larger_than_all_slots_runs_once_the_lead_has_larger_ones(
    instance: FluxInstance, typist: Typist, desk: Desk, serve: Serve
) -> None:
    """Seed's wish: to ask for more than the instance could ever have had."""
    many = {"type": "local", "dir": str(desk.home), "cores": 4, "max_nodes": 9}
    with serve("hold", providers={"local": many}, plan={"spread": False}) as daemon:
        job = typist.submit("--burst", "-N9", *HOSTNAME)
        why = "no rank slots of the lead hold more than 4"
        wait_until(lambda: why in desk.run("explain", job).stdout, why)
        add = ("lead", "add-slot", str(instance.directory), "burst-2-[0-8]:4")
        assert "as ranks 10-18, each 4 cores" in burst(*add).stdout
        asked = ("lead", "check", str(instance.directory), "--uri", instance.uri)
        assert "a restart adds burst-2-[0-8] as ranks 10-18" in burst(*asked).stdout
        instance.stop()
        instance.start()
        daemon.says(" serves ", 2)
        assert "no restart is needed" in burst(*asked).stdout
        typist.ended(job)
        assert typist.hosts(job) == "burst-2-[0-8]"
        leave_nothing(desk)
