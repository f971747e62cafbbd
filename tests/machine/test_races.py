# SPDX-License-Identifier: MIT
"""Two providers that are raced, from the plan to the bill, and over crashes."""

from __future__ import annotations

from typing import Any

import pytest

from burst.core.worth.cost_report import CostReport
from burst.core.worth.money import to_units
from burst.model.burst import Burst, Result, State
from burst.model.lead import JobState
from tests.machine.ending import end
from tests.machine.steps import Steps

HOSTS = "lead-[0-1],burst-0-[0-3],burst-1-[0-3]"


def begin(slow: str = "b", **tables: Any) -> Steps:
    """A job of four nodes is raced at two providers, of which one takes longer."""
    sites = {
        name: {"max_nodes": 4, "price": 1.0, "starts_after": 3 if name == slow else 0}
        for name in ("a", "b")
    }
    policy = [{"name": "quick", "race": True}]
    steps = Steps({"providers": sites, "hosts": HOSTS, "policy": policy, **tables})
    # In mode queue Flux lets no job with a constraint change its queue.
    lent = int(tables.get("intake") != {"mode": "queue"})
    steps.submit(4, 1, wish=5, constraint=lent, duration=300.0)
    steps.tick(1.0)
    return steps


def of(steps: Steps, name: str) -> Burst:
    """The one burst of a provider."""
    found: list[Burst]
    found = [b for b in steps.world.bursts if b.lease.provider == name]
    assert len(found) == 1
    return found[0]


def go_on(steps: Steps, ticks: int = 12) -> None:
    for _ in range(ticks):
        steps.take("tick", {"seconds": 1.0})


@pytest.mark.parametrize("slow", ["a", "b"])
@pytest.mark.parametrize("mode", ["hold", "queue", "scheduler"])
def test_the_quicker_one_runs_the_job_and_the_other_is_ended(
    slow: str, mode: str
) -> None:
    steps = begin(slow, intake={"mode": mode})
    quick = "a" if slow == "b" else "b"
    assert of(steps, "a").lease.race == of(steps, "b").lease.race != ""
    go_on(steps)

    (job,) = steps.world.jobs(JobState.RUN)
    won, lost = of(steps, quick), of(steps, slow)
    assert won.jobs == {job.id}
    assert job.ranks <= {0, 1, *won.lease.ranks}
    assert (lost.state, lost.result) == (State.INACTIVE, Result.CANCELED)
    assert lost.exception == "raced"
    assert steps.world.records.health == {}
    steps.job_ends(0, "completed")
    end(steps)


@pytest.mark.parametrize("only", [None, 2], ids=["both in one tick", "half of it"])
def test_what_the_other_costs_is_wasted_and_counted(only: int | None) -> None:
    steps = begin(slow="")
    steps.world.providers["b"].starts_only = only
    steps.world.providers["b"].ends_after = 2
    go_on(steps, 3)
    steps.job_ends(0, "completed")
    end(steps)

    report = CostReport(steps.world.records)
    by = {row["name"]: row for row in report.rows("provider")}
    assert by["a"]["work"] > 0
    assert by["b"]["never_joined"] == by["b"]["settled"] > 0
    raced = {row["offer"]: (row["raced"], row["ended"]) for row in report.prices()}
    assert raced == {"a/nodes": (0, 1), "b/nodes": (1, 1)}


@pytest.mark.parametrize("ticks", range(6))
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("slow", ["", "b"])
def test_it_goes_on_after_a_crash(ticks: int, when: str, slow: str) -> None:
    steps = begin(slow)
    go_on(steps, ticks)
    steps.take("crash_at_a_write", {"when": when})
    steps.take("crash_at_a_call", {"done": when == "after"})
    go_on(steps)

    assert of(steps, "b").exception == "raced"
    assert of(steps, "a").jobs == {job.id for job in steps.world.jobs(JobState.RUN)}
    end(steps)


@pytest.mark.parametrize("what", ["fails", "is taken down"])
def test_if_one_ends_the_other_goes_on_alone(what: str) -> None:
    steps = begin()
    steps.world.joins = False
    if what == "fails":
        go_on(steps, 1)
        steps.world.providers["a"].fail(of(steps, "a").id, "crash loop")
    else:
        steps.take("down", {"burst": 0})
    go_on(steps, 2)
    assert of(steps, "a").result in (Result.FAILED, Result.CANCELED)
    assert not of(steps, "b").racing
    steps.world.joins = True
    go_on(steps)

    assert len(steps.world.bursts) == 2
    assert of(steps, "b").jobs == {job.id for job in steps.world.jobs(JobState.RUN)}
    end(steps)


def test_money_for_both_is_there_before_either_is_called() -> None:
    """Four nodes for at most 610 s are reserved for each burst, at 1 for an hour."""
    for limit, bursts in ((2.0, 2), (1.0, 1)):
        steps = begin(budget=[{"limit": limit}])
        records = steps.world.records
        reserved = sum(to_units(entry.reserved) for entry in records.entries.values())
        assert len(records.entries) == bursts
        assert reserved <= limit
        go_on(steps)
        assert len(steps.world.jobs(JobState.RUN)) == 1
        steps.job_ends(0, "completed")
        end(steps)


def test_others_get_what_the_winner_has_left_and_not_before() -> None:
    steps = begin(plan={"share_users": True})
    steps.world.joins = False
    first = of(steps, "a").jobs
    steps.running_jobs_end()
    steps.submit(1, 2, wish=5, constraint=1)
    go_on(steps, 3)
    assert {burst.jobs for burst in steps.world.live if burst.racing} == {first}
    steps.world.joins = True
    go_on(steps, 3)
    steps.job_ends(0, "completed")
    go_on(steps, 3)
    assert of(steps, "a").jobs
    assert of(steps, "a").jobs != first
    end(steps)
