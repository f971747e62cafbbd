# SPDX-License-Identifier: MIT
"""How long bursts take to come and to go is learnt of their own events, and kept."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.plan.online_times import (
    KEPT,
    OnlineTimes,
    ProviderTimes,
    kind_of,
    quantile,
)
from burst.lead import MAX_VALUE_BYTES
from burst.model.burst import State
from tests.builders import whole
from tests.sim import Sim

LENT = whole(3, constraint='{"properties":["burst"]}')
SECONDS = st.floats(0, 1e5)


def learnt(*online, kind="n2/4", teardown=()):
    times = ProviderTimes()
    for seconds in online:
        times = times.learn(kind, online=seconds)
    for seconds in teardown:
        times = times.learn(kind, teardown=seconds)
    return times


def online(times, nodes=4, provider="gke", offer="n2"):
    """What is known, and something is."""
    found = OnlineTimes(times).online(provider, offer, nodes)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [(1, "n2/1"), (2, "n2/2"), (3, "n2/4"), (8, "n2/8"), (9, "n2/16")],
)
def test_sizes_are_in_classes(nodes, kind):
    assert kind_of("n2", nodes) == kind


def test_of_one_burst_all_is_as_it_was():
    found = online({"gke": learnt(300.0)}, 3)
    assert (found.p50, found.p90, found.bursts) == (300.0, 300.0, 1)


def test_nine_of_ten_came_within_p90():
    found = online({"gke": learnt(*range(10, 110, 10))})
    assert found.p50 == 70  # the newest are worth more
    assert found.p90 == 100


def test_what_is_new_counts_more_than_what_is_old():
    slower = online({"gke": learnt(*[60.0] * KEPT, *[600.0] * 8)})
    assert (slower.p50, slower.bursts) == (600, KEPT)


def test_other_sizes_of_the_offer_are_better_than_nothing():
    known = {"gke": learnt(300.0, kind="n2/16", teardown=[50.0])}
    times = OnlineTimes(known)
    assert online(known, 1).p50 == 300
    assert times.teardown("gke", "n2", 1) == 50
    assert times.online("gke", "n3", 16) is None
    assert times.online("kube", "n2", 16) is None
    assert times.teardown("kube", "n2", 16) == 0


@given(st.lists(SECONDS, min_size=1, max_size=KEPT), st.floats(0, 1))
def test_a_quantile_is_one_of_the_samples_and_grows(samples, part):
    found = quantile(samples, part)
    assert found in samples
    assert min(samples) <= found <= quantile(samples, 1.0) == max(samples)


def test_records_are_bounded():
    times = ProviderTimes()
    for number in range(2_000):
        times = times.learn(f"offer-{number:060}/8", online=99999.999)
    full = ProviderTimes(
        {name: learnt(*[99999.999] * 40).kinds["n2/4"] for name in times.kinds}
    )
    assert len(times.kinds) == 500
    assert "offer-" + "1999".zfill(60) + "/8" in times.kinds
    assert 2 * len(msgspec.json.encode(full)) < MAX_VALUE_BYTES


def test_a_burst_teaches_how_long_it_took_and_a_restart_forgets_nothing():
    sim = Sim()
    job = sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    events = {e.name: e.timestamp for e in sim.burst.events}
    took = events["online"] - events["provision-start"]
    found = online(sim.records.times, 3, "local", "nodes")
    assert found.p50 == took > 0
    assert found.bursts == 1
    sim.lead.finish(job)
    sim.until(sim.in_state(State.INACTIVE), ticks=120, seconds=5.0)
    sim.boot()
    events = {e.name: e.timestamp for e in sim.burst.events}
    known = sim.records.times
    teardown = OnlineTimes(known).teardown("local", "nodes", 3)
    assert teardown == events["reaped"] - events["drained"]
    assert online(known, 3, "local", "nodes").bursts == 1


def test_nothing_is_learnt_of_a_burst_that_never_came_online():
    sim = Sim()
    sim.joins = False
    sim.lead.submit(LENT)
    sim.until(sim.in_state(State.INACTIVE), ticks=180, seconds=5.0)
    assert sim.records.times == {}


def test_times_that_cannot_be_read_are_left_as_they_are():
    sim = Sim()
    sim.lead.disk.records["times/local"] = "{"
    sim.boot()
    sim.lead.submit(LENT)
    sim.until(sim.in_state(State.ONLINE))
    assert sim.lead.disk.records["times/local"] == "{"
