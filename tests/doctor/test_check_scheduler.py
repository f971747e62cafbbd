# SPDX-License-Identifier: MIT
"""Facts to findings: what the lead's scheduler does to bursts and to other jobs."""

from typing import Any

import msgspec
import pytest

from burst.config import IntakeSettings
from burst.core.plan.slots import find_slots
from burst.doctor.check_scheduler import (
    check_scheduled_ranks,
    check_scheduler,
    check_systemd,
)
from burst.doctor.facts import ReadFailure
from burst.flux_setup.running_instance import RunningInstance
from burst.model.scheduler import FLUXION, Scheduler
from tests.builders import identity, view
from tests.doctor.reading import NOTE, OK, WRONG, check_told, levels


def fluxion(policy: str = "easy", **more: Any) -> Scheduler:
    return Scheduler(name=FLUXION, policies={"default": policy}, **more)


def judge(known: Scheduler, mode: Any = "hold", **config: Any) -> Any:
    instance = RunningInstance(scheduler=known.name, known=known, config=config)
    return list(check_scheduler(instance, IntakeSettings(mode=mode)))


def test_fluxion_that_backfills_is_well() -> None:
    found = judge(fluxion())
    assert levels(found) == [OK]
    assert found[0].what == "bursts work with Fluxion (easy) in mode hold"
    # Other schedulers have nothing to say.
    assert judge(Scheduler(name="sched-simple")) == []
    failed = ReadFailure("no answer")
    assert list(check_scheduler(failed, IntakeSettings())) == []
    # What delays jobs is noted.
    queues = {"default": {"requires": ["local"]}}
    found = judge(fluxion("fcfs"), "queue", queues=queues)
    check_told(found, [OK, NOTE], "denies a job with a constraint")
    found = judge(fluxion(whole_nodes=True))
    check_told(found, [OK, NOTE], "gives each job whole nodes")
    # What systemd asks of followers is noted.
    lead = identity("lead-0,burst-0-[0-1]")
    assert not list(check_systemd(lead))
    found = check_systemd(msgspec.structs.replace(lead, systemd=True))
    check_told(found, [NOTE], "never in a pod", "loginctl enable-linger")


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (fluxion("fcfs"), "Fluxion schedules by fcfs (queues: default)"),
        (fluxion(stale_s=3), "Fluxion repeats for 3 s what it had allocated"),
    ],
)
def test_what_cannot_work_is_wrong(known: Scheduler, says: str) -> None:
    check_told(judge(known), [WRONG], says)


@pytest.mark.parametrize(
    ("known", "advice"),
    [
        (fluxion(), "take the key `scheduling` out of R"),
        (Scheduler(name="sched-other"), "flux module reload sched-other"),
    ],
)
def test_ranks_that_it_does_not_know_are_wrong(known: Scheduler, advice: str) -> None:
    seen = view(unscheduled=frozenset({3}), scheduler=known)
    slots = find_slots(identity())
    found = check_scheduled_ranks(slots, seen)
    check_told(found, [WRONG], "does not know ranks 3", advice, "rank slot burst-0 ")
    assert not list(check_scheduled_ranks([], ReadFailure("no answer")))
