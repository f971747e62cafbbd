# SPDX-License-Identifier: MIT
"""What algorithms see of members: views, metrics, statistics; the state as JSON."""

from __future__ import annotations

import json
import statistics

import pytest
from burst_ensemble.algorithm import (
    JobGroup,
    JobTally,
    QueueCounts,
    Spread,
    draw,
    shuffled,
)
from burst_ensemble.core.algorithms.triggers import holds, metrics, parse_when
from burst_ensemble.core.controller import new_record
from burst_ensemble.core.job_rows import LATEST, with_event, with_value
from burst_ensemble.core.record import Ensemble, EnsembleStart
from burst_ensemble.core.report import member_row
from burst_ensemble.core.views import make_views
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.ensemble.core.ensembles import (
    NOW,
    ensemble,
    jobs,
    member,
    queued,
    reading,
    view,
)

SPREAD = Spread(count=4, mean=2.5, variance=1.7, min=1.0, max=4.0, iqr=1.5, mad=1.0)
TALLY = JobTally(finished=4, success=3, failed=1, duration=SPREAD)
SEEN = view(
    4,
    1,
    jobs=(JobGroup(name="a.b-c", tally=TALLY), JobGroup(name="x")),
    tally=TALLY,
    spent=1.5,
    cores_up=16,
    cores_free=4,
    **queued(2, 3, run=1),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("count.a.b-c.success", 3),
        ("count.all.finished", 4),
        ("count.x.failed", 0),
        ("mean.a.b-c-duration", 2.5),
        ("mad.all-duration", 1.0),
        ("mean.a.b-c-pending", None),
        ("nodes.node_free_count", 1),
        ("nodes.node_cores_up", 16),
        ("queue.sched", 2),
        ("waiting", 2),
        ("metrics.elapsed", 1000),
        ("metrics.spent", 1.5),
    ],
)
def test_a_metric_has_the_value_of_the_view(name: str, expected: float | None) -> None:
    assert metrics(SEEN, NOW)[name] == expected


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("> 5", 5.1, 5),
        (">= 5", 5, 4),
        ("<5", 4.9, 5),
        ("<= -0.5", -0.5, 0),
        ("== 5", 5, 6),
        ("=5", 5, 4),
        (3, 7, 2),
        (0.5, 0.5, 0.4),
    ],
)
def test_a_comparison_holds(text: str | float, true: float, false: float) -> None:
    assert holds(parse_when(text), true)
    assert not holds(parse_when(text), false)


@pytest.mark.parametrize("text", ["", "five", "5 >", "!= 5", "> nan"])
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a comparison"):
        parse_when(text)


VALUES = st.lists(st.floats(0, 1e5), min_size=2, max_size=LATEST)


@given(VALUES)
def test_a_mean_that_is_carried_on_is_that_of_all(values: list[float]) -> None:
    found = Spread()
    for value in values:
        found = with_value(found, value)
    assert found.count == len(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert found.variance == pytest.approx(
        statistics.variance(values), rel=1e-6, abs=1e-4
    )
    assert (found.min, found.max) == (min(values), max(values))


def test_quartiles_and_the_median_distance_are_those_of_the_latest() -> None:
    found = Spread()
    for value in [1e9] * 50 + list(range(1, LATEST + 1)):
        found = with_value(found, float(value))
    assert len(found.latest) == LATEST
    assert (found.iqr, found.mad) == ((LATEST - 1) / 2, LATEST / 4)
    one = Spread(count=1, mean=3.0, min=3.0, max=3.0, latest=(3.0,))
    assert with_value(Spread(), 3.0) == one


def test_members_see_each_other() -> None:
    spec = ensemble(member("a"), member("b", max=6, jobs=(jobs("x"),)))
    seen = {"a": reading(2), "b": reading(3, free=1, waiting={2: 1}, price=0.5)}
    done = {"x": with_event(JobTally(), "finish", 5.0, success=True)}
    record = new_record(spec, 0.0).with_member("b", statistics=done)
    views = make_views(spec, record, seen)
    (peer,) = views["a"].peers
    assert (peer.name, peer.price, peer.room, peer.most) == ("b", 0.5, 2, 6)
    assert peer.durations == {"x": 5.0}
    assert [each.name for each in views["b"].peers] == ["a"]


def test_the_state_has_the_keys_of_the_sidecar_and_correct_values() -> None:
    spec = ensemble(member(jobs=(jobs("x", count=2),)))
    record = new_record(spec, NOW - 95)
    read = reading(
        4,
        1,
        queue=QueueCounts(sched=1, depend=1, run=2, inactive=5),
        waiting={3: 1},
        next_jobs=(3,),
    )
    record = record.with_member("m", fault="a: no", limited="few nodes")
    view = make_views(spec, record, {"m": read})["m"]
    (one,) = Ensemble(EnsembleStart(spec=spec, userid=100), record).members
    found = member_row(one, view, [])
    assert found["nodes"] == {
        "node_cores_free": 4,
        "node_cores_up": 16,
        "node_up_count": 4,
        "node_free_count": 1,
    }
    states = ("new", "depend", "priority", "sched", "run", "cleanup", "inactive")
    assert tuple(found["queue"]) == states
    assert found["queue"]["inactive"] == 5
    assert found["waiting"] == {"3": 1}
    assert found["nextJobs"] == [3]
    assert found["member"]["trouble"] == "a: no"
    assert found["member"]["waits_for"] == "few nodes"
    again = json.loads(json.dumps(found))
    assert {**again, "jobs": {}} == {**found, "jobs": {}}
    assert again["jobs"]["x"]["count"] == 2


@given(st.integers(1, 50), st.integers(), st.text())
def test_what_is_drawn_is_in_its_range_and_the_same_again(
    below: int, seed: int, text: str
) -> None:
    assert 0 <= draw(below, seed, text) < below
    assert draw(below, seed, text) == draw(below, seed, text)


def test_all_orders_are_drawn_about_as_often() -> None:
    found = [tuple(shuffled("abc", seed)) for seed in range(1200)]
    counts = {order: found.count(order) for order in set(found)}
    assert len(counts) == 6
    assert all(150 < count < 250 for count in counts.values())
    assert shuffled("abcdef", 1, most=2) == shuffled("abcdef", 1)[:2]
