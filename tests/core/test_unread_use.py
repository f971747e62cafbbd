# SPDX-License-Identifier: MIT
"""A burst whose record cannot be read still counts against limits, and costs money."""

import pytest

from burst.core.guest_requests import GuestLimits
from burst.core.plan.plan_demands import unread_use
from burst.errors import BurstError
from burst.model.burst import State
from burst.model.reason import Reason
from tests.builders import LENT, whole
from tests.core.money import money_sim
from tests.sim import Sim

FOUR = whole(4, constraint=LENT)


def spoil(sim, *kinds):
    """Start the daemon again, with records of the burst spoiled; return its name."""
    name = sim.burst.id
    for kind in kinds:
        sim.lead.disk.records[f"{kind}/{name}"] = "{"
    sim.boot()
    sim.tick(3)
    assert not sim.bursts
    return name


def used(sim):
    return unread_use(sim.records, sim.engine.snapshot.world)


@pytest.mark.parametrize("kinds", [["burst"], ["burst", "entry"]])
def test_its_nodes_count_against_the_limit(kinds):
    sim = Sim(limits={"max_nodes": 4})
    sim.run_job(FOUR)
    name = spoil(sim, *kinds)
    job = sim.lead.submit(FOUR)
    sim.tick(10)
    assert len(sim.cloud.followers()) == 4
    assert {each.reason for each in sim.decision(job).refusals} == {Reason.LIMIT_NODES}
    assert used(sim)[name].nodes == 4


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_bursts": 1}, Reason.LIMIT_BURSTS),
        ({"max_nodes_per_user": 4}, Reason.LIMIT_USER),
    ],
)
def test_it_is_one_burst_and_its_users(limits, reason):
    sim = Sim(limits=limits)
    sim.run_job(FOUR, userid=7)
    spoil(sim, "burst")
    job = sim.lead.submit(FOUR, userid=7)
    sim.tick(3)
    assert {each.reason for each in sim.decision(job).refusals} == {reason}


def test_a_refusal_ends_once_nothing_of_it_is_shown_any_more():
    """Of a burst that has ended nothing is shown: its record does not count."""
    sim = Sim(limits={"max_nodes": 4})
    sim.run_job(FOUR)
    name = spoil(sim, "burst", "entry")
    job = sim.lead.submit(FOUR)
    sim.tick(3)
    assert not sim.bursts
    sim.provider.lose(name)
    sim.until(lambda: job in sim.lead.running())
    assert not used(sim)


def test_what_a_guest_requests_is_within_the_sites_limit():
    sim = Sim(guests={"request_nodes": 6})
    sim.run_job(FOUR, userid=7)
    spoil(sim, "burst")
    seen = sim.records, sim.engine.snapshot.world, sim.settings, sim.now
    GuestLimits(*seen).check(8, 4)
    with pytest.raises(BurstError, match="you have 4, and ask for 3 more"):
        GuestLimits(*seen).check(7, 3)


def test_more_is_reserved_for_it_while_it_lives():
    its = money_sim.sim(1e6)
    money_sim.submit(its)
    its.until(its.in_state(State.ONLINE))
    before = money_sim.used(its)
    name = spoil(its, "burst")
    assert money_sim.used(its) == before
    its.tick(40, seconds=30.0)
    assert money_sim.used(its) >= 1200
    assert its.records.entries[name].grown > 0
