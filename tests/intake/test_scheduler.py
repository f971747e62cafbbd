# SPDX-License-Identifier: MIT
"""sched-burst in a real broker: who is stepped over, who waits in his place."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.order import load
from burst.config import IntakeSettings
from burst.doctor.check_scheduler import check_scheduler
from burst.flux.node_set import parse_nodes
from burst.flux_setup.running_instance import read_instance
from burst.model.finding import Level
from burst.model.jobid import parse_jobid
from tests.contract.instance import rank_of
from tests.flux_instance import FluxInstance, flux_instance
from tests.intake.user_cli import FILES, SCHEDULER, UserCli
from tests.support.waiting import wait_until

pytestmark = pytest.mark.flux

BURST = "--setattr=burstable"


@pytest.fixture
def mode() -> str:
    return "scheduler"


@pytest.fixture
def extra() -> dict[str, Any]:
    return {}


# Tests that start the lead again, or load the scheduler with arguments of their own.
LOADS_IT = pytest.mark.parametrize("mode", [""])


def up(user: UserCli) -> frozenset[int]:
    """Return the ranks that the scheduler takes for online."""
    status = user.instance.rpc("sched.resource-status", {})
    return parse_nodes(status["all"]).ranks - parse_nodes(status["down"]).ranks


def start_slot(user: UserCli, *hosts: str) -> None:
    """Start followers, and return once the scheduler has them."""
    for host in hosts:
        user.instance.start_follower(host)
    wait_until(lambda: up(user) >= set(map(rank_of, hosts)), f"{hosts} to be up")


def lend(instance: FluxInstance, jobs: dict[str, str], ranks: str) -> None:
    """Tell the scheduler as the daemon does."""
    known = {str(int(parse_jobid(job))): idset for job, idset in jobs.items()}
    instance.rpc("sched-burst.lend", {"jobs": known, "ranks": ranks})


@pytest.mark.parametrize(
    "extra", [{"ingest": {"validator": {"plugins": ["jobspec", "feasibility"]}}}]
)
def test_what_the_instance_lacks_is_feasible_for_burst_jobs(user: UserCli) -> None:
    user.submit(BURST, "-N100", "true")
    said = user.type("submit", "-N100", "true")
    assert "unsatisfiable request" in said.error


@LOADS_IT
def test_whose_nodes_are_leased_is_known_to_the_next_scheduler(
    instance: FluxInstance, user: UserCli
) -> None:
    """Of the daemon, which would tell it, nothing is heard here."""
    user.use_scheduler()
    gang = user.submit(BURST, "-N2", "true")
    small = user.submit(BURST, "-N1", "--requires=burst", "true")
    for job in (gang, small):
        user.event(job, "priority")  # which a restarted lead finds in the KVS
    lend(instance, {gang: "2-3"}, "2-5")
    instance.kill()
    instance.start()
    user.use_scheduler()
    wait_until(lambda: user.stats()["burst_jobs"] == 2, "the jobs to be known")
    start_slot(user, "burst-0-0")
    assert user.stats()["burst_jobs"] == 2
    start_slot(user, "burst-0-1")
    user.ended(gang)
    assert user.hosts(gang) == "burst-0-[0-1]"
    assert user.state(small) == "SCHED"


@LOADS_IT
def test_leases_that_cannot_be_read_are_none(user: UserCli) -> None:
    user.do("kvs", "put", "sched-burst.leases=[1]")
    user.use_scheduler()
    assert "sched-burst.leases in the KVS cannot be read" in user.do("dmesg")
    job = user.submit(BURST, "-N1", "--requires=burst", "true")
    start_slot(user, "burst-0-0")
    user.ended(job)


@LOADS_IT
def test_the_last_leases_are_kept_though_others_are_being_written(
    instance: FluxInstance,
) -> None:
    leases = load(str(FILES / "sched-burst-leases.py"))
    first, second = (leases.Leases({"jobs": {job: "2"}}) for job in "12")
    memory = leases.Memory(instance.handle)
    done: list[str | None] = []

    def answer(why: str | None) -> None:
        assert why is None
        done.append(why)
        if len(done) == 1:  # the second one's write has not ended, or is not known to
            memory.keep(first, answer)

    def all_done(count: int) -> bool:
        instance.handle.reactor_run(flags=1)  # FLUX_REACTOR_NOWAIT
        return len(done) == count

    memory.keep(first, answer)
    memory.keep(second, answer)
    wait_until(lambda: all_done(3), "three writes")
    assert leases.Memory(instance.handle).recall().told == first.told
    memory.keep(second, answer)
    memory.keep(first, answer)
    assert len(done) == 3, "neither is kept yet"
    wait_until(lambda: all_done(5), "both to be written")
    assert leases.Memory(instance.handle).recall().told == first.told
    memory.keep(first, answer)
    assert len(done) == 6, "it is kept already"


def test_only_the_owner_may_lend(user: UserCli) -> None:
    script = "import flux; flux.Flux().rpc('sched-burst.lend', {}).get()"
    assert "owner" in user.type("python", "-c", script, guest=True).error
    assert user.type("python", "-c", script).status == 0


NEITHER: dict[str, list[Any]] = {
    "lend": [{"jobs": []}, {"jobs": {"x": "1"}}, {"ranks": "1-"}],
    "starts": [{}, {"starts": 5}, {"starts": {"x": "y"}}],
}


def test_what_is_no_lease_and_no_start_is_refused(instance: FluxInstance) -> None:
    for method, payloads in NEITHER.items():
        for payload in payloads:
            with pytest.raises(OSError, match=f"{method}: "):
                instance.rpc(f"sched-burst.{method}", payload)
    assert UserCli(instance).stats()["burst_jobs"] == 0


def test_updates_of_a_waiting_job_are_followed(user: UserCli) -> None:
    burst = user.submit(BURST, "-N2", "-t10m", "true")
    later = user.submit(BURST, "-N2", "--begin-time=+1h", "true")
    gate = user.submit("--urgency=hold", "true")
    depends = user.submit(BURST, "-N2", f"--dependency=afterok:{gate}", "true")
    assert user.stats()["burst_jobs"] == 1
    user.do("update", burst, "duration=20m")
    wait_until(lambda: user.stats()["burst_jobs"] == 1, "it to be back")
    user.do("job", "urgency", burst, "hold")
    wait_until(lambda: user.stats()["burst_jobs"] == 0, "it to be held")
    user.do("job", "urgency", gate, "16")
    wait_until(lambda: user.stats()["burst_jobs"] == 1, "the dependent job")
    user.do("job", "urgency", burst, "16")
    wait_until(lambda: user.stats()["burst_jobs"] == 2, "both")
    user.do("cancel", burst, depends, later)
    wait_until(lambda: user.stats()["burst_jobs"] == 0, "nothing to be left")


def test_arguments_that_are_none_are_refused(instance: FluxInstance) -> None:
    user = UserCli(instance)
    user.do("module", "remove", "sched-burst")
    for argument, says in (
        ("policy=fair", "use fifo or backfill"),
        ("colour=red", "unknown argument"),
        ("queue-depth=0", "expected a positive integer"),
    ):
        assert user.type("module", "load", SCHEDULER, argument).status != 0
        assert says in instance.log("lead-0") + user.do("dmesg")
    user.do("module", "load", SCHEDULER)


@LOADS_IT
def test_another_property_may_be_named(user: UserCli) -> None:
    user.use_scheduler("lent=burst-0")
    user.submit(BURST, "-N4", "true")
    assert user.stats()["burst_jobs"] == 1
    denied = user.submit("-N100", "true")
    assert "unsatisfiable" in user.event(denied, "exception")


def test_backfill_starts_as_many_jobs_at_once_as_there_are_cores(
    tmp_path: Path,
) -> None:
    """The shipped class calls itself once for each; Python allows a thousand calls."""
    cores, jobs = 700, 600
    execution = {
        "R_lite": [
            {"rank": "0", "children": {"core": f"0-{cores - 1}"}},
            {"rank": "1-9", "children": {"core": "0"}},
        ],
        "nodelist": ["lead-[0-1]", "burst-0-[0-3]", "burst-1-[0-3]"],
        "starttime": 0.0,
        "expiration": 0.0,
    }
    R = tmp_path / "R"  # noqa: N806 - Flux's name for it
    R.write_text(json.dumps({"version": 1, "execution": execution}))
    played = "--setattr=exec.test.run_duration=600s"
    with flux_instance({"resource": {"path": str(R)}}) as instance:
        user = UserCli(instance)
        user.use_scheduler("policy=backfill")
        blocker = user.submit(f"-n{cores}", played, "true")
        user.event(blocker, "start")
        user.do("submit", f"--cc=1-{jobs}", "--quiet", "-n1", played, "true")
        user.do("cancel", blocker)
        wait_until(
            lambda: len(user.do("jobs", "-no{id}", "-c0", "-frunning").split()) == jobs,
            "all jobs to run",
        )
        assert user.stats()["policy"] == "backfill"


@LOADS_IT
@pytest.mark.parametrize("name", ["sched-simple", "sched-burst"])
def test_a_scheduler_that_flux_stopped_is_reported_with_what_starts_it_again(
    instance: FluxInstance, user: UserCli, name: str
) -> None:
    """After a crash: it has committed R, the job manager has not heard of it."""
    user.do("queue", "stop")
    stuck, behind = user.submit("-n1", "true"), user.submit("-n1", "true")
    for job in (stuck, behind):
        user.event(job, "priority")
    one = {"rank": "0", "children": {"core": "0"}}
    execution = {"R_lite": [one], "nodelist": ["lead-0"], "starttime": 0.0}
    R = {"version": 1, "execution": {**execution, "expiration": 0.0}}  # noqa: N806
    key = user.do("job", "id", "--to=kvs", stuck)
    user.do("kvs", "put", "--sync", f"{key}.R={json.dumps(R)}")
    instance.kill()
    instance.start()
    if name == "sched-burst":
        user.use_scheduler("policy=backfill")
    user.do("queue", "start")
    wait_until(lambda: "already allocated" in user.do("dmesg"), "it to be stopped")
    (found,) = check_scheduler(read_instance(instance.uri), IntakeSettings())
    assert found.level is Level.WRONG
    assert f"{name} is loaded" in found.what
    user.do("cancel", stuck)
    _, _, again = found.advice.partition("load the scheduler again: flux ")
    user.do(*shlex.split(again))
    user.ended(behind)
    if name == "sched-burst":
        assert user.stats()["policy"] == "backfill"
    assert not list(check_scheduler(read_instance(instance.uri), IntakeSettings()))


@LOADS_IT
def test_it_is_loaded_again_though_its_path_leads_through_a_link(
    instance: FluxInstance, user: UserCli, tmp_path: Path
) -> None:
    """`flux modprobe` sends the path as it is, `flux module` what it leads to."""
    link = tmp_path / "a link"
    link.symlink_to(FILES)
    user.do("module", "remove", "sched-simple")
    path, arguments = str(link / "sched-burst.py"), ["policy=backfill"]
    instance.rpc("module.load", {"path": path, "args": arguments, "exec": False})
    _, *again = shlex.split(read_instance(instance.uri).known.reload)
    user.do(*again)
    assert user.stats()["policy"] == "backfill"
