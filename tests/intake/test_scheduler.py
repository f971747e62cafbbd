# SPDX-License-Identifier: MIT
"""sched-burst in a real broker: who is stepped over, who waits in his place."""

from __future__ import annotations

from typing import Any

import pytest

from burst.model.jobid import parse_jobid
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.intake.desk import SCHEDULER, Typist, wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

BURST = "--setattr=burstable"
SLOT = ("burst-0-0", "burst-0-1", "burst-0-2", "burst-0-3")
OWN_CORES = 2
"""Of lead-0, the only own node that is up; lead-1 never comes."""
POLICIES = pytest.mark.parametrize("policy", ["fifo", "backfill"])


def start_slot(typist: Typist, *hosts: str) -> None:
    """Start followers, and return once the scheduler has them."""
    for host in hosts:
        typist.instance.start_follower(host)
    wait_until(
        lambda: all(
            host in typist.do("resource", "list", "-s", "up", "-no{nodelist}").split()
            or host in expanded(typist)
            for host in hosts
        ),
        f"{hosts} to be up",
    )


def expanded(typist: Typist) -> list[str]:
    hosts = typist.do("resource", "list", "-s", "up", "-no{nodelist}").split()
    return typist.do("hostlist", "-e", *hosts).split()


def lend(instance: FluxInstance, jobs: dict[str, str], ranks: str) -> None:
    """Tell the scheduler as the daemon does."""
    known = {str(int(parse_jobid(job))): idset for job, idset in jobs.items()}
    instance.rpc("sched-burst.lend", {"jobs": known, "ranks": ranks})


@POLICIES
def test_a_burst_job_waits_without_blocking_and_starts_when_its_nodes_are_up(
    typist: Typist, policy: str
) -> None:
    typist.use_scheduler(f"policy={policy}")
    waiting = typist.submit(BURST, "-N4", "flux", "getattr", "hostname")
    typist.ended(typist.submit("-n1", "true"), typist.submit("-n1", "true"))
    assert typist.state(waiting) == "SCHED"
    start_slot(typist, *SLOT)
    typist.ended(waiting)
    assert typist.hosts(waiting) == "burst-0-[0-3]"


def test_the_shipped_scheduler_blocks_there(typist: Typist) -> None:
    typist.submit(BURST, "-N4", "true")
    local = typist.submit("-n1", "true")
    typist.event(local, "priority")
    said = typist.type("job", "wait-event", "-t2", local, "alloc")
    assert said.status != 0


def test_a_job_larger_than_the_instance_is_kept_and_others_are_denied(
    typist: Typist,
) -> None:
    typist.use_scheduler()
    burst = typist.submit(BURST, "-N100", "true")
    plain = typist.submit("-N100", "true")
    assert "unsatisfiable request" in typist.event(plain, "exception")
    assert typist.stats()["burst_jobs"] == 1
    assert typist.state(burst) == "SCHED"
    typist.do("cancel", burst)
    typist.ended(burst)
    assert typist.stats()["burst_jobs"] == 0


@pytest.mark.parametrize(
    "extra", [{"ingest": {"validator": {"plugins": ["jobspec", "feasibility"]}}}]
)
def test_what_the_instance_lacks_is_feasible_for_burst_jobs(typist: Typist) -> None:
    typist.use_scheduler()
    typist.submit(BURST, "-N100", "true")
    said = typist.type("submit", "-N100", "true")
    assert "unsatisfiable request" in said.error


def test_a_burst_job_that_fits_here_runs_here_in_its_place(typist: Typist) -> None:
    typist.use_scheduler()
    running = typist.submit(f"-n{OWN_CORES}", "sleep", "inf")
    typist.event(running, "start")
    burst = typist.submit(BURST, f"-n{OWN_CORES}", "true")
    behind = typist.submit("-n1", "true")
    assert typist.stats()["pending_jobs"] == 2
    typist.do("cancel", running)
    typist.ended(burst, behind)
    assert typist.hosts(burst) == "lead-0"
    assert typist.when(burst, "alloc") < typist.when(behind, "alloc")


def test_priority_decides_among_burst_jobs(typist: Typist) -> None:
    typist.use_scheduler()
    first = typist.submit(BURST, "-N1", "--requires=burst", "true")
    second = typist.submit(BURST, "-N1", "--requires=burst", "true")
    typist.do("job", "urgency", second, "20")
    start_slot(typist, "burst-0-0")
    typist.ended(first, second)
    assert typist.when(second, "alloc") < typist.when(first, "alloc")


def test_it_starts_on_lent_nodes_though_an_own_job_is_blocked_ahead(
    typist: Typist,
) -> None:
    typist.use_scheduler()
    holder = typist.submit(f"-n{OWN_CORES}", "sleep", "inf")
    typist.event(holder, "start")
    ahead = typist.submit("--requires=^burst", f"-n{OWN_CORES}", "true")
    burst = typist.submit(BURST, "-N2", "true")
    start_slot(typist, "burst-0-0", "burst-0-1")
    typist.ended(burst)
    assert typist.state(ahead) == "SCHED"
    typist.do("cancel", holder)
    typist.ended(ahead)


def test_burst_jobs_do_not_starve_an_own_job(typist: Typist) -> None:
    """The own job's node is free of them: they stand behind it for that."""
    typist.use_scheduler()
    holder = typist.submit("-n1", "sleep", "inf")
    typist.event(holder, "start")
    own = typist.submit("--requires=^burst", f"-n{OWN_CORES}", "true")
    behind = [typist.submit(BURST, "-n1", "true") for _ in range(5)]
    assert [typist.state(job) for job in behind] == ["SCHED"] * 5
    typist.do("cancel", holder)
    typist.ended(own, *behind)
    started = [typist.when(job, "alloc") for job in (own, *behind)]
    assert started[0] == min(started)


def test_leased_nodes_are_for_their_jobs_alone(
    instance: FluxInstance, typist: Typist
) -> None:
    typist.use_scheduler()
    gang = typist.submit(BURST, "-N2", "true")
    small = typist.submit(BURST, "-N1", "--requires=burst", "true")
    lend(instance, {gang: "2-3"}, "2-5")
    start_slot(typist, "burst-0-0")
    assert typist.stats()["burst_jobs"] == 2
    assert (typist.state(gang), typist.state(small)) == ("SCHED", "SCHED")
    start_slot(typist, "burst-0-1")
    typist.ended(gang)
    assert typist.hosts(gang) == "burst-0-[0-1]"
    assert typist.state(small) == "SCHED"
    lend(instance, {}, "")
    typist.ended(small)


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_whose_nodes_are_leased_is_known_to_the_next_scheduler(
    instance: FluxInstance, typist: Typist, how: str
) -> None:
    """Of the daemon, which would tell it, nothing is heard here."""
    typist.use_scheduler()
    gang = typist.submit(BURST, "-N2", "true")
    small = typist.submit(BURST, "-N1", "--requires=burst", "true")
    lend(instance, {gang: "2-3"}, "2-5")
    if how == "reload":
        typist.do("module", "remove", "sched-burst")
        typist.do("module", "load", SCHEDULER)
    else:
        instance.kill()
        instance.start()
        typist.use_scheduler()
    wait_until(lambda: typist.stats()["burst_jobs"] == 2, "the jobs to be known")
    start_slot(typist, "burst-0-0")
    assert typist.stats()["burst_jobs"] == 2
    start_slot(typist, "burst-0-1")
    typist.ended(gang)
    assert typist.hosts(gang) == "burst-0-[0-1]"
    assert typist.state(small) == "SCHED"


def test_leases_that_cannot_be_read_are_none(typist: Typist) -> None:
    typist.do("kvs", "put", "sched-burst.leases=[1]")
    typist.use_scheduler()
    assert "sched-burst.leases in the KVS cannot be read" in typist.do("dmesg")
    job = typist.submit(BURST, "-N1", "--requires=burst", "true")
    start_slot(typist, "burst-0-0")
    typist.ended(job)


def test_a_job_whose_burst_is_on_the_way_does_not_start_here(
    instance: FluxInstance, typist: Typist
) -> None:
    typist.use_scheduler()
    holder = typist.submit(f"-n{OWN_CORES}", "sleep", "inf")
    typist.event(holder, "start")
    burst = typist.submit(BURST, "-n1", "true")
    lend(instance, {burst: "2"}, "2")
    typist.do("cancel", holder)
    typist.ended(holder, typist.submit("-n1", "true"))
    assert typist.state(burst) == "SCHED"
    lend(instance, {}, "")
    typist.ended(burst)
    assert typist.hosts(burst) == "lead-0"


def test_only_the_owner_may_lend(typist: Typist) -> None:
    typist.use_scheduler()
    script = "import flux; flux.Flux().rpc('sched-burst.lend', {}).get()"
    assert "owner" in typist.type("python", "-c", script, guest=True).error
    assert typist.type("python", "-c", script).status == 0


@pytest.mark.parametrize(
    "payload", [{"jobs": []}, {"jobs": {"x": "1"}}, {"ranks": "1-"}]
)
def test_what_is_no_lease_is_refused(instance: FluxInstance, payload: Any) -> None:
    typist = Typist(instance)
    typist.use_scheduler()
    with pytest.raises(OSError, match="lend: "):
        instance.rpc("sched-burst.lend", payload)
    assert typist.stats()["burst_jobs"] == 0


def test_nodes_that_go_take_the_job_out_of_the_queue_again(typist: Typist) -> None:
    """What waits for nodes that went away blocks nobody, as if they had never come."""
    typist.use_scheduler()
    start_slot(typist, "burst-0-0")
    typist.instance.kill_follower("burst-0-0")
    burst = typist.submit(BURST, "-N1", "--requires=burst", "true")
    typist.ended(typist.submit("-n1", "true"))
    wait_until(lambda: "burst-0-0" not in expanded(typist), "burst-0-0 to be down")
    assert typist.state(burst) in {"SCHED", "INACTIVE"}
    typist.ended(typist.submit("-n1", "true"))


def test_it_is_reloaded_with_jobs_running(typist: Typist) -> None:
    typist.use_scheduler()
    running = typist.submit(f"-n{OWN_CORES}", "sleep", "inf")
    typist.event(running, "start")
    burst = typist.submit(BURST, "-N2", "true")
    local = typist.submit("--requires=^burst", "-n1", "true")
    typist.do("module", "remove", "sched-burst")
    typist.do("module", "load", SCHEDULER)
    wait_until(lambda: typist.stats()["burst_jobs"] == 1, "the jobs to be known")
    assert typist.state(running) == "RUN"
    assert typist.state(local) == "SCHED"
    start_slot(typist, "burst-0-0", "burst-0-1")
    typist.ended(burst)
    typist.do("cancel", running)
    typist.ended(local)


def test_it_goes_on_after_a_restart_of_the_lead(
    instance: FluxInstance, typist: Typist
) -> None:
    typist.use_scheduler()
    burst = typist.submit(BURST, "-N2", "true")
    large = typist.submit(BURST, "-N100", "true")
    # The restarted lead loads the shipped scheduler first, which would deny it.
    typist.do("queue", "stop")
    instance.stop()
    instance.start()
    typist.use_scheduler()
    typist.do("queue", "start")
    wait_until(lambda: typist.stats()["burst_jobs"] == 2, "the jobs to be known")
    start_slot(typist, "burst-0-0", "burst-0-1")
    typist.ended(burst)
    assert typist.state(large) == "SCHED"


def test_updates_of_a_waiting_job_are_followed(typist: Typist) -> None:
    typist.use_scheduler()
    burst = typist.submit(BURST, "-N2", "-t10m", "true")
    later = typist.submit(BURST, "-N2", "--begin-time=+1h", "true")
    gate = typist.submit("--urgency=hold", "true")
    depends = typist.submit(BURST, "-N2", f"--dependency=afterok:{gate}", "true")
    assert typist.stats()["burst_jobs"] == 1
    typist.do("update", burst, "duration=20m")
    wait_until(lambda: typist.stats()["burst_jobs"] == 1, "it to be back")
    typist.do("job", "urgency", burst, "hold")
    wait_until(lambda: typist.stats()["burst_jobs"] == 0, "it to be held")
    typist.do("job", "urgency", gate, "16")
    wait_until(lambda: typist.stats()["burst_jobs"] == 1, "the dependent job")
    typist.do("job", "urgency", burst, "16")
    wait_until(lambda: typist.stats()["burst_jobs"] == 2, "both")
    typist.do("cancel", burst, depends, later)
    wait_until(lambda: typist.stats()["burst_jobs"] == 0, "nothing to be left")


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("policy=fair", "there are fifo and backfill"),
        ("colour=red", "unknown argument"),
        ("queue-depth=0", "expected a positive integer"),
    ],
)
def test_arguments_that_are_none_are_refused(
    instance: FluxInstance, argument: str, says: str
) -> None:
    typist = Typist(instance)
    typist.do("module", "remove", "sched-simple")
    assert typist.type("module", "load", SCHEDULER, argument).status != 0
    assert says in instance.log("lead-0") + typist.do("dmesg")
    typist.do("module", "load", "sched-simple")


def test_another_attribute_and_property_may_be_named(typist: Typist) -> None:
    typist.use_scheduler("attribute=cloud", "lent=burst-0")
    typist.submit("--setattr=cloud", "-N4", "true")
    assert typist.stats()["burst_jobs"] == 1
    denied = typist.submit(BURST, "-N100", "true")
    assert "unsatisfiable" in typist.event(denied, "exception")
