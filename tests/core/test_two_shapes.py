# SPDX-License-Identifier: MIT
"""A job that asks for slots alone, and nodes of two shapes that hold it together."""

import pytest

from burst.core.plan.capacity import job_nodes
from burst.core.plan.fit import NodePool
from burst.core.records import Records
from burst.core.tick import run_tick
from burst.model.job_limits import JobLimits
from burst.model.reason import Reason
from burst.model.shape import Shape
from tests.builders import (
    NODE,
    OWN,
    T0,
    but,
    identity,
    job,
    offer,
    settings,
    slots,
    view,
    whole,
    world,
)
from tests.core.plans import demand, leases, live_burst, plan, reasons
from tests.lifecycles import WHOLE_WAY, run, with_jobs

BIG = Shape(8, 1)
"""A node of it holds two slots of four cores; one of shape NODE holds one."""
SOLD = {"local": [offer(shape=BIG)]}
LEAD = but(
    identity("lead-0,burst-0-[0-1],burst-1-[0-3]"),
    shapes=(OWN, *[NODE] * 2, *[BIG] * 4),
)
TICKS = but(
    identity("lead-[0-1],burst-0-[0-1],burst-1-[0-3]"),
    shapes=(*[OWN] * 2, *[NODE] * 2, *[BIG] * 4),
)
UP = run(*WHOLE_WAY[:4])
"""A burst of two nodes of shape NODE, which are ranks 2 and 3."""
LARGE = but(
    UP, lease=but(UP.lease, shape=BIG, ranks=(4, 5)), expected=frozenset({4, 5})
)


@pytest.mark.parametrize(
    ("need", "nodes"), [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (10, 4), (11, None)]
)
def test_new_nodes_hold_what_idle_nodes_of_another_shape_do_not(need, nodes):
    ranks = dict.fromkeys((1, 2), NODE)
    live = [live_burst("burst-0-aaaaaa", NodePool(ranks, ranks), nodes=2)]
    made = plan(demand(1, slots(need, 4)), lead=LEAD, live=live, offers=SOLD)
    if nodes is None:
        assert reasons(made, 1)[0] is Reason.NO_ROOM
        return
    assert leases(made) == [("burst-1", "local", nodes, [1])]
    assert made.assignments == {1: ("burst-0-aaaaaa",)}


@pytest.mark.parametrize("jobs", [frozenset(), frozenset({1})], ids=["idle", "its own"])
@pytest.mark.parametrize(("need", "nodes"), [(4, 1), (5, 2)])
def test_a_tick_adds_to_a_live_burst_the_large_nodes_that_a_job_lacks(
    jobs, need, nodes
):
    result = ticked(with_jobs(UP, *jobs), need=need)
    (new,) = (burst for burst in result.records.live if burst.id != UP.id)
    assert (new.lease.shape, new.lease.nodes) == (BIG, nodes)


def ticked(*bursts, need, lead=TICKS, **changes):
    """Take one tick with a job of `need` slots of four cores."""
    asked = job(1, slots(need, 4), duration=60.0, **changes)
    seen = view(asked, online=(0, 1, 2, 3), lead=lead)
    now = world(seen, lead=lead, local=(offer(shape=BIG),))
    records = Records(bursts={burst.id: burst for burst in bursts})
    return run_tick(records, now, settings(), T0 + 100)


def test_the_nodes_that_a_job_has_count_towards_the_limit_of_its_queue():
    """Two more would be four, whatever number is left if no node were there."""
    limited = but(TICKS, limits={"": JobLimits(most={"nnodes": 3})})
    own = with_jobs(UP, 1)
    assert ticked(own, need=6).decisions[1].reason is Reason.PROPOSED
    refused = ticked(own, need=6, lead=limited).decisions[1].refusals
    assert [each.reason for each in refused] == [Reason.NODE_SMALL]


@pytest.mark.parametrize(
    ("request_", "lacks"),
    [
        (slots(6, 4), slots(0, 4)),
        (slots(7, 4), slots(1, 4)),
        (slots(7, 4, most_nodes=9), slots(1, 4, most_nodes=5)),
        (slots(7, 8), slots(5, 8)),
        (whole(4, cores_per_slot=4), whole(0, cores_per_slot=4)),
        (whole(5, cores_per_slot=8), whole(3, cores_per_slot=8)),
    ],
)
@pytest.mark.parametrize("bursts", [(UP, LARGE), (LARGE, UP)])
def test_the_nodes_of_all_bursts_count_by_what_they_hold(bursts, request_, lacks):
    nodes = job_nodes(request_, bursts, view(online=range(6), lead=TICKS))
    assert nodes.rest == lacks
    assert nodes.missing == bool(lacks.slots)
