# SPDX-License-Identifier: MIT
"""Bursts of which some nodes join, and others never come."""

import pytest

from burst.model.burst import State
from burst.provider import Failure
from tests.builders import whole
from tests.sim import Sim


def partly_up(partial, state=State.PROVISION, up=1):
    """Of a burst of three nodes `up` are online; the others wait for nodes.

    In state JOIN its provider has reported all as started.
    """
    plan = {"partial": partial, "spread": False}
    sim = Sim(provision="60s", plan=plan, deadlines={"join": "15s"})
    sim.joins = False
    sim.provider.starts_only = None if state is State.JOIN else up
    sim.tick(2)
    sim.lead.submit(whole(3))
    sim.until(sim.in_state(state))
    sim.lead.online |= set(sim.burst.lease.ranks[:up])
    sim.tick(2)
    return sim


@pytest.mark.parametrize("partial", ["fail", "keep"])
def test_join_does_not_count_while_others_wait_for_nodes(partial):
    sim = partly_up(partial)
    sim.tick(40)
    assert sim.state() is State.PROVISION
    assert "provision-finish" not in sim.names()
    sim.tick(25)
    ended_as(sim, "" if partial == "keep" else "timeout")


@pytest.mark.parametrize("state", [State.PROVISION, State.JOIN])
@pytest.mark.parametrize(
    ("partial", "failure", "kind"),
    [
        ("keep", Failure.CAPACITY, ""),
        ("keep", Failure.OTHER, "failed"),
        ("fail", Failure.CAPACITY, "capacity"),
    ],
)
def test_what_joined_is_kept_if_there_are_no_nodes_for_the_others(
    state, partial, failure, kind
):
    sim = partly_up(partial, state)
    sim.provider.fail(sim.burst.id, "no node fits", failure)
    sim.tick(3)
    ended_as(sim, kind)


def test_a_kept_burst_outlasts_a_blink_while_its_provider_still_has_no_nodes():
    """The provider shows it as failed all the time, for the nodes that never came."""
    sim = partly_up("keep", up=2)
    sim.provider.fail(sim.burst.id, "no node fits", Failure.CAPACITY)
    sim.until(sim.in_state(State.ONLINE))
    away = sim.burst.lease.ranks[0]
    sim.lead.lose(away)
    sim.tick(2)
    assert sim.state() is State.ONLINE
    assert sim.burst.lost_since is not None
    sim.lead.online |= {away}
    sim.tick(2)
    assert sim.names()[-1] == "back"
    assert sim.burst.lost_since is None


@pytest.mark.parametrize("late", [False, True])
def test_nodes_that_a_kept_burst_did_not_get_are_not_asked_for_again_at_once(late):
    sim = partly_up("keep", up=2)
    if not late:
        sim.provider.fail(sim.burst.id, "no node fits", Failure.CAPACITY)
    sim.until(sim.in_state(State.ONLINE), ticks=80)
    sim.tick(3)
    assert "grow" not in sim.names()
    [row] = sim.records.health["local"].rows.values()
    assert row.nodes == 1
    assert ("within 1m" in row.why) == late


def ended_as(sim, kind):
    """Check how the burst ended; with an empty kind, that what joined is kept."""
    burst = sim.bursts[0]
    assert burst.exception == kind
    if not kind:
        assert burst.state is State.ONLINE
        assert burst.expected == {burst.lease.ranks[0]}
