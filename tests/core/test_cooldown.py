# SPDX-License-Identifier: MIT
"""An offer without capacity for one job's size is still there for smaller jobs."""

from itertools import pairwise

import pytest

from burst.core import burst_story, cooldowns
from burst.core.provider_health import FailureKind, FailureRecord, Health
from burst.errors import InsufficientCapacity
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.request import BurstPreferences
from tests.builders import T0, but, offer, whole
from tests.core.plans import demand, leases, plan, reasons
from tests.lifecycles import LEASE
from tests.sim import Sim


def aside(nodes, until=T0 + 9):
    return {"local": Health(rows={"offer/small": FailureRecord(1, until, nodes)})}


def test_the_reason_of_another_offer_does_not_hide_a_cooldown():
    sold = {"local": [offer("other"), offer()]}
    limits = {"max_nodes": 1}
    wish = demand(1, whole(2))
    made = plan(wish, offers=sold, health=aside(2), limits=limits, spread=False)
    told = {each.offer: each.reason for each in made.decisions[1].refusals}
    assert told["local/other"] is Reason.LIMIT_NODES
    assert told["local/small"] is Reason.OFFER_COOLDOWN


def test_smaller_bursts_are_planned_of_an_offer_without_capacity_for_a_size():
    made = plan(demand(1, whole(4)), demand(2, whole(3)), health=aside(4))
    assert [nodes for _, _, nodes, _ in leases(made)] == [2, 2, 2, 1]

    made = plan(demand(1, whole(2)), demand(2, whole(4)), health=aside(3))
    assert leases(made) == [("burst-0", "local", 2, [1])]
    why = made.decisions[2].refusals[0].text()
    assert why.startswith("had no capacity for 3 nodes; set aside until")
    for nodes in (0, 1):
        made = plan(demand(1, whole(1)), health=aside(nodes))
        assert reasons(made, 1)[1] == [("local/small", Reason.OFFER_COOLDOWN)]
    assert leases(plan(demand(1, whole(4)), health=aside(4, T0))) != []


def test_what_may_not_be_spread_waits_for_its_size():
    alone = demand(1, whole(4))
    together = but(alone, preferences=BurstPreferences(where="together"))
    for one, options in ((alone, {"spread": False}), (together, {})):
        made = plan(one, health=aside(4), **options)
        told = [("local/small", Reason.OFFER_COOLDOWN)]
        assert reasons(made, 1) == (Reason.TURNED_DOWN, told)


def test_an_isolated_job_that_is_too_large_keeps_no_smaller_one_waiting():
    sim = Sim(capacity=3, modes=("isolated",))
    sim.tick(2)
    large = sim.lead.submit(whole(4), userid=1)
    sim.until(lambda: bool(sim.bursts) and not sim.bursts[0].live)
    sim.lead.submit(whole(3), userid=2)
    sim.tick(5)

    assert "had no capacity for 4 nodes" in sim.told(large)
    assert [b.lease.nodes for b in sim.live] == [3]


def test_offers_that_lack_it_too_are_set_aside_with_the_one_that_was_asked():
    sim = Sim(plan={"spread": False})
    sim.tick(2)
    error = InsufficientCapacity("quota CPUS_ALL_REGIONS", offers=("large", "huge"))
    sim.provider.next_provision_error = error
    sim.lead.submit(whole(4), userid=1)
    sim.until(lambda: bool(sim.bursts) and not sim.bursts[0].live)

    aside = sim.records.health["local"].rows_of(FailureKind.OFFER)
    assert aside.keys() == {sim.bursts[0].lease.offer, "large", "huge"}
    assert {(each.nodes, each.failures) for each in aside.values()} == {(4, 1)}
    assert sim.bursts[0].exception == "capacity"


def test_capacity_that_a_burst_gives_back_is_asked_for_at_once():
    sim = Sim(capacity=6, modes=("isolated",))
    sim.tick(2)
    sim.lead.submit(whole(3), userid=1)
    second = sim.lead.submit(whole(4), userid=2)
    sim.until(lambda: sim.lead.jobs[second].state is JobState.INACTIVE, ticks=30)
    assert [burst.lease.nodes for burst in sim.bursts] == [3, 4, 4]
    assert sim.lead.jobs[second].result == "completed"


def test_a_larger_burst_waits_though_capacity_was_given_back():
    lease = but(LEASE, offer="small")
    later = cooldowns.regain_capacity(aside(4)["local"], lease, T0)
    assert later.rows["offer/small"] == FailureRecord(1, T0 + 9, 4 + lease.nodes)


@pytest.mark.parametrize(
    "known", [Health(), aside(0)["local"], aside(4, until=T0)["local"]]
)
def test_other_failures_are_not_forgotten_as_a_burst_goes(known):
    small = but(LEASE, offer="small")
    assert cooldowns.regain_capacity(known, small, T0) is known


def test_a_burst_of_which_one_node_never_joins_is_tried_ever_less_often():
    """Each try costs two nodes until it is given up, and the job is told one reason."""
    sim = Sim(provision="2m")
    sim.provider.starts_only = 1
    sim.tick(2)
    job = sim.submit_lent(2)
    told, paid = set(), 0.0
    for _ in range(12 * 60):
        sim.tick(seconds=60.0)
        paid += 60.0 * sum(burst.lease.nodes for burst in sim.live)
        if not sim.live:
            told.add(sim.told(job).split("set aside until")[0])
    [reason] = told
    assert "not all followers were started within 2m" in reason
    begun = [burst_story.known_events(burst)[0].timestamp for burst in sim.bursts]
    pauses = [later - earlier for earlier, later in pairwise(begun)]
    assert pauses[0] < 20 * 60.0
    assert all(later >= earlier for earlier, later in pairwise(pauses))
    assert pauses[-1] > 2 * 3600.0
    assert paid < 0.1 * 2 * 12 * 3600.0
