# SPDX-License-Identifier: MIT
"""Budgets in a replay."""

from __future__ import annotations

import datetime
import math
from typing import Any

import msgspec
import pytest
from burst_replay.policies import AT_ONCE, Policy
from burst_replay.simulator import ReplayOutcome, replay
from burst_replay.trace import Machine, Trace, TraceJob
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from burst.core.money.money import to_units
from burst.core.plan.offers import ProviderOffer
from burst.model.scheduler import Order
from tests.builders import offer
from tests.plugins.replay.rule import rules_of, site_of

HOUR = 3600.0
STARTED = datetime.datetime(2026, 10, 1, tzinfo=datetime.UTC).timestamp()
# What is reserved for beside a job's time limit: four minutes in all.
DEADLINES = dict.fromkeys(("join", "release", "reap"), "1m")
PROVISION = 60.0
ONE = Machine(nodes=1, cores=1)


def job(submit: float, hours: float, limit: float = 0.0, **more: Any) -> TraceJob:
    """A job of one core, all in hours."""
    return TraceJob(submit * HOUR, hours * HOUR, 1, (limit or hours) * HOUR, **more)


def run(
    jobs: list[TraceJob],
    *budgets: dict[str, Any],
    policy: Policy = AT_ONCE,
    offers: tuple[ProviderOffer, ...] = (),
    **tables: Any,
) -> ReplayOutcome:
    """Replay with budgets; a node and hour costs 1, boot and tear-down a minute."""
    tables = {"budget": list(budgets), "deadlines": DEADLINES, **tables}
    site = site_of(ONE, boot=60.0, teardown=60.0, provision=PROVISION, **tables)
    site = msgspec.structs.replace(site, offers=offers or site.offers)
    return replay(Trace("test", tuple(jobs), started=STARTED), site, policy)


def waits(outcome: ReplayOutcome) -> list[float]:
    """In hours."""
    return [round(wait / HOUR, 2) for wait in outcome.waits]


def sold(
    provider: str, lease: float = 0.0, fee: float = 0.0, boot: float = 60.0
) -> ProviderOffer:
    """Nodes of a provider."""
    found = offer("n", price=1.0, join_time=boot, fee=fee)
    return ProviderOffer(
        provider=provider,
        offer=found,
        lease_end=lease,
        run_time=math.inf,
        longest=math.inf,
        place="",
    )


def test_what_a_budget_has_no_money_for_waits_for_own_nodes() -> None:
    jobs = [job(0, 9), job(0, 1), job(0, 1)]
    enough = run(jobs, {"limit": 2.2})
    assert (waits(enough), enough.bursts, enough.turned_down) == ([0, 0.02, 0.02], 2, 0)
    # One hour and four minutes are reserved for each.
    short = run(jobs, {"limit": 1.5})
    assert (waits(short), short.bursts, short.turned_down) == ([0, 0.02, 9.0], 1, 1)


def test_what_was_reserved_and_not_used_can_be_spent_again() -> None:
    jobs = [job(0, 90), *(job(0, 1, limit=20, userid=user) for user in (1, 2))]
    found = run(jobs, {"limit": 22})
    # The first was on for an hour and its minutes of boot; it is gone a minute later.
    assert waits(found) == [0, 0.02, 1.05]
    assert found.bursts == 2
    assert found.turned_down == 1


def test_one_behind_a_job_for_which_there_is_money_again_starts_on_own_nodes() -> None:
    """One of two nodes is free, and is for the job in front as long as that waits."""
    budget = {"limit": 7, "per": "day"}
    site = site_of(
        Machine(nodes=2, cores=1),
        Order.FIFO,
        boot=60.0,
        teardown=60.0,
        provision=PROVISION,
        budget=[budget],
        deadlines=DEADLINES,
    )
    wide = [msgspec.structs.replace(job(0, hours), cores=2) for hours in (3, 1)]
    jobs = (job(0, 90), *wide, job(0, 1))
    found = replay(Trace("test", jobs, started=STARTED), site, AT_ONCE)
    assert waits(found) == [0, 0.02, 24.02, 24.0]
    assert (found.bursts, found.turned_down) == (2, 2)


def test_a_job_that_is_larger_than_own_nodes_waits_for_money() -> None:
    large = [
        msgspec.structs.replace(each, cores=2) for each in (job(0, 1), job(0.5, 1))
    ]
    found = run(large, {"limit": 2.5, "per": "day"})
    assert waits(found) == [0.02, 23.52]
    never = run(large, {"limit": 2.0, "per": "day"})
    assert never.waits == [math.inf, math.inf]


def test_budgets_are_by_user_bank_queue_and_provider() -> None:
    jobs = [
        job(0, 9),
        job(0, 1, userid=7),
        job(0, 1, bank="a"),
        job(0, 1, queue="q"),
        job(0, 1, userid=8),
    ]
    matches = [{"user": 7}, {"bank": "a"}, {"queue": "q"}]
    found = run(jobs, *({"match": match, "limit": 1.0} for match in matches))
    assert waits(found) == [0, 9.0, 10.0, 11.0, 0.02]
    budget = {"match": {"provider": "gke"}, "limit": 1.0}
    providers = {"gke": {"type": "fake"}, "kube": {"type": "fake"}}
    # Where there is no money for the first offer, the next is bought.
    gke, kube = sold("gke"), sold("kube")
    for offers, bursts in (((gke,), 0), ((kube,), 1), ((gke, kube), 1)):
        found = run(jobs[:2], budget, offers=offers, providers=providers)
        assert (found.bursts, found.turned_down) == (bursts, 1 - bursts)


@pytest.mark.parametrize(("boot", "bursts"), [(8 * HOUR, 0), (4 * HOUR, 1)])
def test_a_job_is_judged_by_the_offer_for_which_there_is_money(
    boot: float, bursts: int
) -> None:
    """It would start here in 9 h, and its rule asks for 0.9 h for a node-hour."""
    budget = {"match": {"provider": "gke"}, "limit": 1.0}
    providers = {"gke": {"type": "fake"}, "kube": {"type": "fake"}}
    offers = sold("gke"), sold("kube", boot=boot)
    policy = rules_of({"worth": 0.9})
    jobs = [job(0, 9), job(0, 1)]
    found = run(jobs, budget, policy=policy, offers=offers, providers=providers)
    assert found.bursts == bursts


def test_by_a_lease_all_of_it_is_reserved() -> None:
    jobs = [job(0, 9), job(0, 1)]
    offers = (sold("kube", lease=3 * HOUR),)
    # Three hours, and a minute to be deleted.
    assert run(jobs, {"limit": 3.01}, offers=offers).bursts == 0
    assert run(jobs, {"limit": 3.02}, offers=offers).bursts == 1


def test_a_burst_is_not_kept_for_a_job_without_money() -> None:
    kept_for = DEADLINES | {"idle": "1h"}
    jobs = [job(0, 90), job(0, 1), job(1.5, 3)]
    kept = run(jobs, {"limit": 9}, deadlines=kept_for)
    assert (waits(kept), kept.bursts) == ([0, 0.02, 0.0], 1)
    dropped = run(jobs, {"limit": 2.5}, deadlines=kept_for)
    assert (waits(dropped), dropped.bursts) == ([0, 0.02, 88.5], 1)


def test_the_fee_of_a_burst_is_paid_and_reserved() -> None:
    offers = (sold("gke", fee=0.5),)
    jobs = [job(0, 9), msgspec.structs.replace(job(0, 1), cores=2)]
    found = run(jobs, offers=offers)
    # Two nodes and a burst for an hour, a minute of boot and one of tear-down.
    assert to_units(found.costs.total) == pytest.approx(2.5 * (1 + 2 / 60))
    # Four minutes are reserved for beside the hour.
    assert run(jobs, {"limit": 2.66}, offers=offers).bursts == 0


_JOBS = st.lists(
    st.builds(
        job,
        st.floats(0, 72),
        st.floats(0.01, 20),
        st.floats(0.01, 40),
        userid=st.integers(1, 2),
    ).map(lambda j: msgspec.structs.replace(j, run_time=min(j.run_time, j.limit))),
    min_size=2,
    max_size=12,
)


@given(jobs=_JOBS, limit=st.floats(0, 60), idle=st.sampled_from(["0s", "1h"]))
@hypothesis_settings(max_examples=30, deadline=None)
def test_never_more_is_paid_than_the_budget_has(
    jobs: list[TraceJob], limit: float, idle: str
) -> None:
    jobs = sorted(jobs, key=lambda each: each.submit)
    kept = DEADLINES | {"idle": idle}
    shared = {"share_users": True}
    found = run(jobs, {"limit": limit}, deadlines=kept, plan=shared)
    assert to_units(found.costs.total) <= limit + 1e-5
    # Own nodes run what is not bought, at last.
    assert max(found.waits) < math.inf
    assert found.bursts + found.turned_down or not any(found.waits)
