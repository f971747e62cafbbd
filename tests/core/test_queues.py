# SPDX-License-Identifier: MIT
"""Nothing is rented for a queue that starts no job, or past what it lets a job have."""

import pytest

from burst.core.actions import ProvisionBurst
from burst.model.decision import Decision
from burst.model.job_limits import JobLimits
from burst.model.lead import QueueView
from burst.model.reason import Reason
from tests.builders import LENT, T0, but, identity, job, slots, view, whole, world
from tests.core.ticks import tick_once

FOUR = whole(4)
OFFLINE = QueueView(started=False, reason="Scheduler is offline")
NAMES = ("batch", "burst", "burst-ready")


def decided(request, queue="batch", mode="hold", limits=None, now=100, **queues):
    """Return the reason of the decision on one job, its text, and what is done."""
    known = dict.fromkeys(NAMES, QueueView()) | queues
    there = {name: each for name, each in known.items() if each is not None}
    lead = identity(
        queues={"burst": ("burst",), "burst-ready": ("burst",)}, limits=limits or {}
    )
    asked = but(request, constraint=LENT if queue == "burst" else "")
    seen = view(job(1, asked, queue=queue), queues=there)
    made = tick_once(world(seen, lead=lead), now=T0 + now, intake={"mode": mode})
    decision = made.decisions[1]
    rents = [a for a in made.actions if isinstance(a, ProvisionBurst)]
    return decision.reason, decision.text(), rents


def test_a_queue_that_takes_and_starts_jobs_is_rented_for() -> None:
    reason, _, rents = decided(FOUR)
    assert (reason, len(rents)) == (Reason.PROPOSED, 1)


@pytest.mark.parametrize(
    ("state", "reason", "says"),
    [
        (
            QueueView(started=False),
            Reason.QUEUE_STOPPED,
            "(flux queue start batch); no",
        ),
        (QueueView(started=False, reason="no"), Reason.QUEUE_STOPPED, "stopped (no)"),
        (
            OFFLINE,
            Reason.SCHEDULER_OFFLINE,
            "Flux's scheduler is offline, so Flux starts no job",
        ),
        (
            QueueView(enabled=False, reason="maintenance"),
            Reason.QUEUE_CLOSED,
            "its queue batch is disabled (maintenance) (flux queue enable batch)",
        ),
        (None, Reason.QUEUE_GONE, "the instance has no queue batch"),
    ],
)
def test_for_one_that_does_not_nothing_is_rented(state, reason, says) -> None:
    found, text, rents = decided(FOUR, batch=state)
    assert (found, rents) == (reason, [])
    assert says in text
    assert "no nodes are rented for" in text


def test_a_queue_is_not_to_be_started_where_only_the_scheduler_is_offline() -> None:
    _, text, _ = decided(FOUR, batch=OFFLINE)
    step = Decision(Reason.SCHEDULER_OFFLINE).next_step()
    assert "burst doctor" in step
    assert "queue" not in text + step


@pytest.mark.parametrize(
    ("ready", "reason"),
    [
        (QueueView(started=False), Reason.QUEUE_STOPPED),
        (OFFLINE, Reason.SCHEDULER_OFFLINE),
        (QueueView(enabled=False), Reason.QUEUE_DISABLED),
    ],
)
def test_nor_for_a_parked_job_that_could_not_go_on(ready, reason) -> None:
    queues = {"burst": QueueView(started=False), "burst-ready": ready}
    found, _, rents = decided(FOUR, "burst", "queue", **queues)
    assert (found, rents) == (reason, [])


def test_a_job_of_a_closed_queue_still_gets_own_nodes() -> None:
    closed = QueueView(enabled=False)
    assert decided(whole(1), now=2, batch=closed)[0] is Reason.LOCAL
    assert decided(whole(1), now=2, batch=None)[0] is Reason.QUEUE_GONE


def test_a_closed_queue_of_an_instance_without_names_is_told() -> None:
    only = {"batch": None, "burst": None, "burst-ready": None}
    _, text, rents = decided(FOUR, queue="", **only, **{"": QueueView(enabled=False)})
    assert text.startswith("its queue is disabled (flux queue enable)")
    assert rents == []


def test_no_burst_is_made_for_a_job_that_flux_would_not_move() -> None:
    over = {"burst-ready": JobLimits({"nnodes": 3})}
    reason, text, rents = decided(FOUR, "burst", "queue", over)
    assert (reason, rents) == (Reason.QUEUE_LIMIT, [])
    assert text == (
        "Flux does not accept it in queue burst-ready, from which burstable jobs start:"
        " nnodes 4 is over the limit of 3"
    )
    assert decided(whole(3), "burst", "queue", over)[0] is Reason.PROPOSED
    # One that stays in its queue was taken into it before the limit was there.
    assert decided(FOUR, limits={"batch": over["burst-ready"]})[0] is Reason.PROPOSED


def test_a_job_without_a_number_of_nodes_gets_no_more_than_its_queue_allows() -> None:
    limits = {"batch": JobLimits({"nnodes": 3})}
    reason, text, rents = decided(slots(16), limits=limits)
    assert (reason, rents) == (Reason.NEVER_FITS, [])
    assert "16 times 1 core, on at most 3 nodes by the limit of its queue" in text
    _, text, rents = decided(slots(12), limits=limits)
    assert len(rents) == 1
    assert "3 nodes" in text
    assert len(decided(slots(16))[2]) == 1


def test_what_helps_a_job_whose_queue_is_gone_is_what_flux_does() -> None:
    """It moves no such job (tests/flux/test_confine.py)."""
    _, text, _ = decided(FOUR, batch=None)
    assert "Flux cannot move a job of a queue that is gone: cancel it" in text
    assert "have the queue added again" in text
    _, text, _ = decided(FOUR, queue="", batch=None)
    assert "Flux cannot move a job without a queue: cancel it" in text
    _, text, _ = decided(FOUR, "burst", "queue", **{"burst-ready": None})
    assert "has no queue burst-ready" in text
    assert "run `burst setup` again" in text
