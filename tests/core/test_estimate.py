# SPDX-License-Identifier: MIT
"""Whether a burst pays."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.plan.estimate import (
    Judgement,
    OnlineTime,
    Purchase,
    StartEstimate,
    judge,
    keep_purchase,
)

NOW = 1000.0
HOUR = 3600.0


def starts(hours: float) -> StartEstimate:
    """A start here in so many hours."""
    at = NOW + hours * HOUR
    return StartEstimate(expected=at, latest=at, earliest=at)


def buys(
    nodes: int, run: float, boot: float = 0.25, teardown: float = 0.25
) -> Purchase:
    """So many nodes for a job of so many hours."""
    online = OnlineTime(p50=boot * HOUR, p90=2 * boot * HOUR, bursts=0)
    ends = teardown * HOUR
    return Purchase(nodes=nodes, run_time=run * HOUR, online=online, teardown=ends)


def test_boot_and_teardown_are_bought_and_boot_is_waited_for() -> None:
    assert judge(starts(1.25), buys(4, 2.0), 0.1, NOW) == Judgement(
        pays=True, saved=1.0, bought=10.0, worth=0.1, required=0.1
    )


@pytest.mark.parametrize(
    ("hours", "nodes", "asks", "pays"),
    [
        (1.25, 4, 0.1, True),
        (1.25, 4, 0.11, False),
        (0.25, 0, 0.1, False),  # it starts here as early as there
        (0.26, 0, 0.1, True),  # nothing is bought
        (0.1, 1, 0.0, True),  # eager: it must wait, if for less than a boot
        (0.0, 1, 0.0, False),  # it starts now
        (math.inf, 1, 5.0, True),
    ],
)
def test_when_it_pays(hours: float, nodes: int, asks: float, pays: bool) -> None:
    assert judge(starts(hours), buys(nodes, 2.0), asks, NOW).pays is pays


def test_a_job_without_end_pays_only_where_it_never_starts_here() -> None:
    endless = buys(1, math.inf)
    assert not judge(starts(100.0), endless, 0.01, NOW).pays
    assert judge(starts(math.inf), endless, 0.01, NOW).worth == math.inf


@pytest.mark.parametrize("nodes", [0, 1])
def test_nodes_that_never_come_save_nothing(nodes: int) -> None:
    never = judge(starts(math.inf), buys(nodes, 1.0, boot=math.inf), 0.1, NOW)
    assert (never.pays, never.saved) == (False, -math.inf)


SECONDS = st.floats(0, 1e9) | st.just(math.inf)


@given(
    st.floats(-1, 1e6) | st.just(math.inf),
    st.tuples(st.integers(0, 10000), SECONDS, SECONDS, SECONDS),
    st.floats(0, 100),
)
def test_no_figure_is_nan_and_more_is_asked_of_fewer(hours, bought, asks):
    here, purchase = starts(hours), buys(*bought)
    found = judge(here, purchase, asks, NOW)
    assert not any(math.isnan(x) for x in (found.saved, found.bought, found.worth))
    assert found.bought >= 0
    if judge(here, purchase, asks + 1, NOW).pays:
        assert found.pays


def test_what_it_buys_to_keep_a_live_burst() -> None:
    assert keep_purchase(3, 7200.0).nodes == 3
    assert keep_purchase(3, 7200.0, 1800.0).run_time == 5400.0
    # It is kept for longer anyway.
    assert keep_purchase(3, 7200.0, 9000.0).nodes == 0
    assert keep_purchase(3, math.inf, math.inf).run_time == math.inf
