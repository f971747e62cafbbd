# SPDX-License-Identifier: MIT
"""For how long an idle burst is kept."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.cost import break_even, kept_idle
from burst.core.money.ledger import Payer
from burst.core.plan.online_times import ProviderTimes
from burst.model.burst import State
from tests.builders import settings, whole
from tests.lifecycles import run
from tests.sim import Sim

SECONDS = st.floats(0, 1e5)


def test_until_it_has_cost_what_making_it_again_would() -> None:
    # Four nodes: 4 * 160 node-seconds to make them, and 100 s of a job's wait, which
    # are worth 1,000 node-seconds. That is 410 s of four nodes.
    assert break_even(nodes=4, boot=100, teardown=60, worth=0.1) == 410
    assert break_even(nodes=4, boot=0, teardown=60, worth=0.1) == 60
    assert break_even(nodes=4, boot=100, teardown=60, worth=0) == math.inf


@given(
    nodes=st.integers(1, 500),
    boot=SECONDS,
    teardown=SECONDS,
    worth=st.floats(0.001, 100),
    gap=SECONDS,
)
def test_it_never_costs_more_than_twice_the_best(nodes, boot, teardown, worth, gap):
    """`gap`: after how many seconds the next job comes, which nobody knows."""
    keep = break_even(nodes, boot, teardown, worth)
    again = nodes * (boot + teardown) + boot / worth
    cost = nodes * gap if gap <= keep else nodes * keep + again
    best = min(nodes * gap, again)
    assert cost <= 2 * best * (1 + 1e-9) + 1e-6


# Online after three seconds; see tests.lifecycles.
UP = run("provision-start", "provision-finish", "joined", "online")
RULES = settings(
    plan={"worth": 0.1},
    policy=[
        {"name": "dear", "match": {"queue": "a"}, "worth": 1.0},
        {"name": "eager", "match": {"queue": "b"}, "worth": 0.0},
    ],
).rules
DEAR, DEFAULT = Payer(1, rule="dear"), Payer(1, rule="default")
EAGER, BY_ITSELF = Payer(1, rule="eager"), Payer(1)
TIMES = {"local": ProviderTimes().learn("small/2", teardown=7.0)}


@pytest.mark.parametrize(
    ("payers", "keep"),
    [
        ([DEAR], 3 + 7 + 3 / 2),
        ([DEAR, DEFAULT], 3 + 7 + 30 / 2),  # by the least worth
        ([DEAR, EAGER], math.inf),
        ([DEAR, BY_ITSELF], 3 + 7 + 3 / 2),
        ([BY_ITSELF], math.inf),
        ([Payer(1, rule="gone")], math.inf),
        ([], math.inf),
    ],
)
def test_it_is_by_the_rules_that_took_its_jobs(payers, keep):
    assert kept_idle(UP, payers, RULES, TIMES) == pytest.approx(keep)


def after_a_job(**tables: Any) -> Sim:
    """A job too large for own nodes has run on a burst, which is idle now."""
    sim = Sim(deadlines={"idle": "10m"}, **tables)
    sim.tick(2)
    job = sim.run_job(whole(4))
    sim.lead.finish(job)
    sim.until(lambda: sim.burst.idle_since is not None)
    return sim


def test_a_burst_by_a_worth_is_given_back_before_idle_is_over() -> None:
    sim = after_a_job(plan={"worth": 0.1})
    keep = sim.burst.keep_idle
    events = {event.name: event.timestamp for event in sim.burst.events}
    boot = events["online"] - events["provision-start"]
    assert keep == pytest.approx(break_even(4, boot, 0.0, 0.1), abs=0.001)
    assert 0 < keep < 60
    sim.until(lambda: sim.state() is not State.ONLINE)
    assert sim.now - events["idle"] <= keep + 2
    (drain,) = (event for event in sim.burst.events if event.name == "drain")
    assert "keeping it costs more than making it again" in drain.context["note"]


def test_what_must_not_wait_is_kept_for_all_of_idle() -> None:
    sim = after_a_job()
    assert sim.burst.keep_idle == math.inf
    sim.tick(59, seconds=10.0)
    assert sim.state() is State.ONLINE
    sim.tick(12)
    assert sim.state() is not State.ONLINE
    (drain,) = (event for event in sim.burst.events if event.name == "drain")
    assert drain.context["note"] == "idle for 10m"


def test_for_how_long_outlives_a_restart() -> None:
    sim = after_a_job(plan={"worth": 0.1})
    keep = sim.burst.keep_idle
    sim.boot()
    sim.tick()
    assert sim.burst.keep_idle == keep
