# SPDX-License-Identifier: MIT
"""The algorithms of `examples/algorithms` keep the contract, and decide as they say."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from burst_ensemble.algorithm import (
    JobGroup,
    JobTally,
    MemberDecision,
    MemberView,
    PeerView,
    QueueCounts,
    Spread,
)
from burst_ensemble.testing import AlgorithmContract

from burst.config import convert
from tests.plugins.ensemble.core.ensembles import NOW, group, queued, view
from tests.support.examples import load_example

DIRECTORY = Path(__file__).resolve().parents[2] / "examples" / "algorithms"
POINTS = tomllib.loads((DIRECTORY / "pyproject.toml").read_text())["project"][
    "entry-points"
]["burst.algorithms"]
NEEDED: Mapping[str, Mapping[str, Any]] = {"workload-success": {"successTarget": 500}}
"""Options that an algorithm does not do without."""


def kind_of(name: str) -> Any:
    module, _, found = POINTS[name].partition(":")
    return getattr(load_example("algorithms", module.removeprefix("burst_")), found)


def decided(name: str, seen: MemberView, **options: Any) -> MemberDecision:
    kind = kind_of(name)
    made = kind(convert(kind.Options, options, "test"))
    found: MemberDecision = made.decide(seen, {}, NOW)
    return found


def ran(mean: float, count: int = 3) -> JobTally:
    spread = Spread(count=count, mean=mean)
    return JobTally(finished=count, success=count, duration=spread)


@pytest.mark.parametrize("name", POINTS)
def test_each_keeps_the_contract_of_algorithms(name: str) -> None:
    class Suite(AlgorithmContract):
        algorithm = kind_of(name)
        options: ClassVar[Mapping[str, Any]] = NEEDED.get(name, {})

    tests = [each for each in dir(Suite) if each.startswith("test_")]
    assert len(tests) == 7
    for each in tests:
        getattr(Suite(), each)()


def test_backlog_has_a_node_for_each_ten_minutes_of_work_and_is_short() -> None:
    tally = JobTally(duration=Spread(count=1, mean=300.0))
    seen = view(2, waiting={1: 9}, queue=QueueCounts(run=2, sched=9), tally=tally)
    assert decided("backlog", seen).nodes == 2 + 5
    text = (DIRECTORY / "burst_backlog.py").read_text()
    code = text[text.index("class BacklogOptions") :].splitlines()
    assert len([line for line in code if line.strip()]) <= 30


def test_random_selection_draws_some_whenever_none_waits() -> None:
    seen = view(jobs=(group("x", 1, 5), group("y", 1, 5), group("z", 9, 5)))
    found = {
        decided("random-selection", seen, select=3, seed=seed).submit
        for seed in range(9)
    }
    assert len(found) > 1
    assert {len(each) for each in found} == {3}
    assert set().union(*found) == {"x", "y"}
    assert decided("random-selection", view(jobs=(group(),), **queued(1))).submit == ()


def test_workload_success_has_as_many_active_as_are_needed_and_fit() -> None:
    def given(seen: MemberView, **options: Any) -> int:
        return len(decided("workload-success", seen, **options).submit)

    three = JobTally(success=3)
    seen = view(2, 2, jobs=(group("x", 2, None),), tally=three)
    assert given(seen, successTarget=20) == 4
    assert given(seen, successTarget=5) == 2
    assert given(seen, successTarget=20, atOnce=3) == 3
    assert given(seen, successTarget=3) == 0
    busy = view(2, jobs=(group("x", 2, None),), unconfirmed=1, tally=three)
    assert given(busy, successTarget=20) == 0
    two = view(2, 2, jobs=(group("x", left=None), group("y", left=1)))
    found = decided("workload-success", two, successTarget=3)
    assert found.submit == ("y", "x", "x")


def test_workload_success_ends_by_success_or_by_failures() -> None:
    def ends(seen: MemberView, **options: Any) -> bool:
        return decided("workload-success", seen, successTarget=5, **options).end

    enough = JobTally(success=5)
    assert not ends(view(tally=enough, queue=QueueCounts(run=1, sched=3)))
    assert ends(view(tally=enough, queue=QueueCounts(sched=3)))
    failed = view(tally=JobTally(failed=4))
    assert ends(failed, failureTarget=4)
    assert not ends(failed)
    assert ends(view(tally=JobTally(events={"exception": 100})))


@pytest.mark.parametrize(
    ("name", "first", "then"),
    [("select-fastest-runtime", "y", "x"), ("select-longest-runtime", "z", "x")],
)
def test_the_shortest_or_the_longest_comes_first(
    name: str, first: str, then: str
) -> None:
    groups = (
        group("x", tally=ran(50)),
        group("y", left=1, tally=ran(10)),
        group("z", left=1, tally=ran(90)),
        group("w", left=0),
    )
    assert decided(name, view(jobs=groups)).submit == (first, then)
    new = (group("x", submitted=2, tally=ran(1, 2)), group("y", submitted=1))
    assert decided(name, view(jobs=new), atOnce=3).submit == ("y", "x", "y")


def test_the_member_grows_by_what_the_chosen_jobs_need() -> None:
    seen = view(2, 1, jobs=(group("x", 3),))
    found = decided("select-fastest-runtime", seen, atOnce=2)
    assert (found.nodes, found.submit) == (7, ("x", "x"))
    most = decided("select-fastest-runtime", seen, atOnce=9)
    assert (most.nodes, most.submit) == (8, ("x", "x", "x"))
    boots = view(6, nodes_up=2, nodes_free=0, **queued(2))
    assert decided("select-fastest-runtime", boots).nodes is None


def peer(name: str, price: float, room: int = 8, **durations: float) -> PeerView:
    return PeerView(name=name, price=price, room=room, most=8, durations=durations)


def shared(**more: Any) -> JobGroup:
    return group("x", 2, 9, shared=True, **more)


@pytest.mark.parametrize(
    ("price", "peers", "takes"),
    [
        (2.0, [peer("b", 1.0)], False),
        # The cheaper one is full.
        (2.0, [peer("b", 1.0, room=1)], True),
        (2.1, [peer("b", 1.0, room=1)], False),
        # It is dearer, but so much faster that a job costs less.
        (2.0, [peer("b", 1.0, x=1000.0)], True),
        (1.0, [], True),
    ],
)
def test_a_shared_job_goes_where_it_costs_least(
    price: float, peers: list[PeerView], takes: bool
) -> None:
    here = ran(100.0) if any(each.durations for each in peers) else JobTally()
    seen = view(2, price=price, peers=tuple(peers), jobs=(shared(tally=here),))
    assert bool(decided("cost", seen).submit) == takes


def test_own_jobs_come_first_and_too_small_members_do_not_count() -> None:
    small = PeerView(name="b", price=0.1, room=1, most=1)
    seen = view(2, price=1.0, peers=(small,), jobs=(group("own", left=1), shared()))
    assert decided("cost", seen).submit == ("own",)
    alone = view(2, price=1.0, peers=(small,), jobs=(shared(),))
    assert decided("cost", alone).submit == ("x", "x", "x")
    assert decided("cost", view(jobs=(group(),), unconfirmed=1)).submit == ()
