# SPDX-License-Identifier: MIT
"""Facts to findings: what the lead's scheduler does to bursts and to other jobs."""

from typing import Any

import msgspec
import pytest

from burst.config import IntakeSettings
from burst.core.plan.slots import find_slots
from burst.doctor.check_queues import check_queue_states
from burst.doctor.check_scheduler import (
    check_resource_reload,
    check_scheduled_ranks,
    check_scheduler,
    check_systemd,
)
from burst.doctor.facts import ReadFailure
from burst.flux_setup.running_instance import RunningInstance, read_instance
from burst.model.lead import QueueView
from burst.model.scheduler import FLUXION, Scheduler
from tests.builders import identity, view
from tests.doctor.reading import NOTE, OK, WRONG, levels, said
from tests.flux_pool import FluxPool


def fluxion(policy: str = "easy", **more: Any) -> Scheduler:
    return Scheduler(name=FLUXION, policies={"default": policy}, **more)


@pytest.mark.flux
def test_resources_that_were_reloaded_by_hand(flux_pool: FluxPool) -> None:
    with flux_pool.lend() as lent:
        found = read_instance(lent.uri)
    assert found.defined_by == "configuration"
    assert not [*check_resource_reload(found)]
    changed = msgspec.structs.replace(found, defined_by="reload")
    told = [*check_resource_reload(changed)]
    assert levels(told) == [WRONG]
    assert "the scheduler loses each rank that goes down" in said(told)


@pytest.mark.flux
def test_a_guest_reads_all_but_how_resources_came(
    flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flux_pool.lend() as lent:
        whole = read_instance(lent.uri)
        with monkeypatch.context() as guest:
            guest.setenv("FLUX_HANDLE_ROLEMASK", "0x2")
            guest.setenv("FLUX_HANDLE_USERID", "1234")
            found = read_instance(lent.uri)
    assert found == msgspec.structs.replace(whole, defined_by="")


def judge(known: Scheduler, mode: Any = "hold", **config: Any) -> Any:
    instance = RunningInstance(known=known, config=config)
    return list(check_scheduler(instance, IntakeSettings(mode=mode)))


def test_fluxion_that_backfills_is_well() -> None:
    found = judge(fluxion())
    assert levels(found) == [OK]
    assert found[0].what == "bursts work with Fluxion (easy) in mode hold"
    # Other schedulers have nothing to say.
    assert judge(Scheduler(name="sched-simple")) == []
    failed = ReadFailure("no answer")
    assert list(check_scheduler(failed, IntakeSettings())) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("sched-simple", "'already allocated' names the job"),
        ("sched-simple", "flux module reload sched-simple"),
        ("", "no scheduler is loaded"),
    ],
)
def test_a_scheduler_that_is_offline_is_wrong_and_not_each_queue(
    name: str, says: str
) -> None:
    queue = QueueView(started=False, enabled=True, reason="Scheduler is offline")
    states = {"batch": queue, "night": queue}
    known = Scheduler(name=name)
    instance = RunningInstance(known=known, config={}, queue_states=states)
    found = list(check_scheduler(instance, IntakeSettings()))
    assert levels(found) == [WRONG]
    assert says in said(found)
    assert not list(check_queue_states(states, IntakeSettings()))


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (fluxion("fcfs"), "Fluxion schedules by fcfs (queues: default)"),
        (fluxion(stale_s=3), "Fluxion reports allocations that are up to 3 s old"),
    ],
)
def test_what_cannot_work_is_wrong(known: Scheduler, says: str) -> None:
    found = judge(known)
    assert levels(found) == [WRONG]
    assert says in said(found)


def test_queues_that_came_after_it_was_loaded_are_wrong() -> None:
    names = ("batch", "night", "burst", "burst-ready")
    queues: dict[str, Any] = {name: {} for name in names}
    known = Scheduler(name=FLUXION, policies={"batch": "easy", "night": "easy"})
    found = judge(known, "queue", queues=queues)
    assert levels(found) == [WRONG]
    assert "before queue burst, burst-ready existed" in said(found)
    assert f"load it again: {known.reload}" in said(found)
    # It denies jobs of the site's queues in the same way, in each mode.
    known = Scheduler(name=FLUXION, policies={"batch": "easy"})
    for mode in "queue", "hold":
        found = judge(known, mode, queues=queues)
        assert set(levels(found)) == {WRONG}
        assert "before queue night existed" in said(found)
    known = Scheduler(name=FLUXION, policies=dict.fromkeys(queues, "easy"))
    assert levels(judge(known, "queue", queues=queues)) == [OK]


def test_what_delays_jobs_is_noted() -> None:
    queues = {"default": {"requires": ["local"]}}
    found = judge(fluxion("fcfs"), "queue", queues=queues)
    assert levels(found) == [OK, NOTE]
    assert "denies a job with a constraint" in said(found)
    found = judge(fluxion(whole_nodes=True))
    assert levels(found) == [OK, NOTE]
    assert "gives each job whole nodes" in said(found)


def test_what_a_start_of_all_queues_does_to_waiting_burst_jobs_is_noted() -> None:
    def noted(policy: str, mode: str = "queue") -> str:
        policies = {"batch": "fcfs", "burst": policy, "burst-ready": "fcfs"}
        queues = {name: {"requires": ["x"]} for name in policies}
        known = Scheduler(name=FLUXION, policies=policies)
        return said(judge(known, mode, queues=queues))

    found = noted("fcfs")
    assert "once somebody starts queue burst, as flux queue start --all does" in found
    assert "flux queue start --queue=NAME" in found
    assert "add burst:easy to queue-policy-per-queue" in found
    assert "queue start" not in noted("easy")
    assert "queue start" not in noted("fcfs", "hold")


@pytest.mark.parametrize(
    ("known", "advice"),
    [
        (fluxion(), "remove the key `scheduling` from R"),
        (Scheduler(name="sched-other"), "flux module reload sched-other"),
    ],
)
def test_ranks_that_it_does_not_know_are_wrong(known: Scheduler, advice: str) -> None:
    seen = view(unscheduled=frozenset({3}), scheduler=known)
    slots = find_slots(identity())
    found = list(check_scheduled_ranks(slots, seen))
    assert levels(found) == [WRONG]
    assert "ranks 3 of rank slot burst-0 are not leased" in said(found)
    assert advice in said(found)
    assert not list(check_scheduled_ranks([], ReadFailure("no answer")))


def test_what_systemd_asks_of_followers_is_noted() -> None:
    lead = identity("lead-0,burst-0-[0-1]")
    assert not list(check_systemd(lead))
    found = list(check_systemd(msgspec.structs.replace(lead, systemd=True)))
    assert levels(found) == [NOTE]
    assert "never in a pod" in said(found)
    assert "loginctl enable-linger" in said(found)
