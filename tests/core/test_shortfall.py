# SPDX-License-Identifier: MIT
"""A job of which a part of the nodes cannot be had: nothing is paid for it for long."""

from burst.core.plan.shortfall import Shortfall, update_shortfalls
from burst.core.records import Records, Transaction
from burst.model.burst import State
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.runtime.policy_check import check_policy
from burst.runtime.service_answers import plan
from tests.builders import T0, but, settings, view, whole, world
from tests.sim import Sim

MINUTE = 60.0


def nodes_up(sim):
    return sum(b.lease.nodes for b in sim.bursts if b.state is State.ONLINE)


def more_nodes(sim):
    found = but(sim.provider.settings, capacity=100)
    sim.provider.settings = found


def spread(**changes):
    """A job of eight nodes, of which a cloud has no more than six."""
    sim = Sim(capacity=6, **changes)
    sim.tick(2)
    return sim, sim.lead.submit(whole(8))


def test_its_pieces_are_given_back_when_the_rest_is_refused_for_long():
    sim, big = spread()
    sim.until(lambda: nodes_up(sim) == 4)
    up_at = sim.now
    sim.until(lambda: not sim.live, ticks=20, seconds=MINUTE)
    assert sim.now - up_at <= 18 * MINUTE
    verdict = sim.decision(big)
    assert verdict.reason is Reason.INCOMPLETE
    assert "were returned" in sim.told(big)
    # The dry run knows that it is not tried now; it told that a burst would be made.
    (row,) = plan(sim.engine.snapshot)["jobs"]
    assert row["why"] == verdict.text()
    (row,) = check_policy(sim.engine.snapshot, sim.settings)["jobs"]
    assert row["why"] == verdict.text()
    assert sim.lead.jobs[big].urgency == 0
    (gave,) = [b for b in sim.bursts if "online" in sim.names(b)]
    assert gave.result.value == "canceled"


def test_it_costs_ever_less_and_comes_to_its_nodes_once_there_are_enough():
    sim, big = spread()
    paid = []
    for _ in range(2):
        paid.append(0)
        for _ in range(4 * 60):
            sim.tick(seconds=MINUTE)
            paid[-1] += nodes_up(sim)
    all_the_time = 4 * 60 * 4
    assert paid[0] < 0.3 * all_the_time
    assert paid[1] < 0.06 * all_the_time
    more_nodes(sim)
    sim.until(lambda: big in sim.lead.running(), ticks=24 * 30, seconds=MINUTE)


def shortfall(sim, job):
    return sim.engine.snapshot.refusal_cache.shortfalls[job]


def test_how_often_it_cost_in_vain_is_known_as_long_as_it_is_refused():
    sim, big = spread()
    sim.until(lambda: nodes_up(sim) == 4)
    sim.until(lambda: not sim.live, ticks=40, seconds=MINUTE)
    returned = shortfall(sim, big).expired
    assert returned >= 1
    # Nothing can be had for a while, so that its refusal stands.
    sim.provider.settings = but(sim.provider.settings, capacity=0)

    def rests():
        return big in sim.engine.snapshot.refusal_cache.decisions

    sim.until(rests, ticks=60, seconds=MINUTE)
    sim.tick(3)
    assert rests()
    assert shortfall(sim, big).expired == returned

    sim.provider.settings = but(sim.provider.settings, capacity=6)
    sim.until(lambda: nodes_up(sim) == 4, ticks=400, seconds=MINUTE)
    sim.until(lambda: not sim.live, ticks=40, seconds=MINUTE)
    known = shortfall(sim, big)
    assert known.expired == returned + 1
    assert known.until - sim.now > 10 * MINUTE * 2 ** (returned - 1)


def test_what_comes_in_time_is_kept():
    sim, big = spread()
    sim.until(lambda: nodes_up(sim) == 4)
    (first,) = (burst.id for burst in sim.live if burst.state is State.ONLINE)
    sim.tick(60)
    more_nodes(sim)
    sim.until(lambda: sim.lead.jobs[big].state is JobState.RUN, ticks=200, seconds=10.0)
    assert first in {burst.id for burst in sim.live}


def test_what_joined_of_a_burst_is_given_back_when_no_more_may_be_had():
    deadlines = {"join": "30s", "complete": "5m"}
    plan, limits = {"partial": "keep"}, {"max_nodes": 4}
    sim = Sim(provision="60s", plan=plan, limits=limits, deadlines=deadlines)
    sim.tick(2)
    meet = sim.meet
    sim.meet = lambda: None  # type: ignore[method-assign]
    job = sim.lead.submit(whole(4))
    sim.until(lambda: bool(sim.bursts) and sim.bursts[0].state is State.JOIN)
    sim.lead.online |= {2, 3, 4}
    sim.until(lambda: nodes_up(sim) == 4, ticks=60)
    sim.tick(3)
    assert sim.lead.jobs[job].urgency == 0
    other = sim.lead.submit(whole(1))
    sim.until(lambda: sim.lead.jobs[other].state is JobState.RUN, ticks=5)
    sim.meet = meet  # type: ignore[method-assign]
    sim.joins = False
    sim.until(lambda: not sim.live, ticks=60, seconds=10.0)
    assert sim.now - T0 < 30 * MINUTE


def test_what_is_known_of_a_job_is_forgotten_when_it_does_not_wait_any_more():
    before = {JobId(1): Shortfall(expired=1)}
    tx = Transaction(Records(), world(view()), settings(), T0)
    assert update_shortfalls(tx, before, {}) == {}
    waits = {JobId(1): Decision(Reason.INCOMPLETE)}
    assert update_shortfalls(tx, before, waits) == before
