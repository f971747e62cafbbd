# SPDX-License-Identifier: MIT
"""What each built-in algorithm wants, apart from the faults of the old ones."""

from __future__ import annotations

from typing import Any

import pytest
from burst_ensemble.algorithm import JobTally, MemberView, QueueCounts, Spread

from burst.errors import ConfigError
from tests.plugins.ensemble.core.ensembles import (
    NOW,
    decided,
    group,
    looked_at,
    make,
    queued,
    view,
)

WAITED = {"waiting_since": NOW - 1000, "waiting": 1}


# -- workload-demand


@pytest.mark.parametrize(
    ("strategy", "size"),
    [
        ("nextJob", 5),
        ("smallestJob", 5),
        ("largestJob", 7),
        ("total", 8),
    ],
)
def test_it_grows_by_the_job_of_its_strategy(strategy: str, size: int) -> None:
    """To its most, and of no job that has no node: the operator's did neither."""
    seen = view(4, **queued(1, 3, 1))
    found = decided("workload-demand", seen, WAITED, scaleUpStrategy=strategy)
    assert found.nodes == size
    assert "3 jobs have waited" in found.why


def test_a_random_job_is_drawn_of_the_seed() -> None:
    seen = view(4, **queued(1, 2, 3, 4))

    def size(seed: int) -> int | None:
        options = {"scaleUpStrategy": "randomJob", "seed": seed}
        return decided("workload-demand", seen, WAITED, **options).nodes

    sizes = [size(seed) for seed in range(30)]
    assert sizes == [size(seed) for seed in range(30)]
    assert set(sizes) == {5, 6, 7, 8}


def test_one_is_told_as_one() -> None:
    """Such as "1 job has succeeded"; others speak of several."""
    one = decided("workload-demand", view(4, **queued(2)), WAITED)
    assert one.why == "1 job has waited for 1000 s"
    several = decided("workload-demand", view(4, **queued(2, 2)), WAITED)
    assert several.why == "2 jobs have waited for 1000 s"


def test_jobs_that_are_larger_than_the_most_are_stepped_over() -> None:
    assert decided("workload-demand", view(4, **queued(9, 2)), WAITED).nodes == 6
    alone = decided("workload-demand", view(4, **queued(9)), WAITED)
    assert alone.nodes is None


def test_with_total_progress_does_not_begin_the_wait_anew() -> None:
    seen = view(4, **queued(2))
    memory = {"waiting_since": NOW - 1000, "waiting": 50}
    assert decided("workload-demand", seen, memory).nodes is None
    options = {"scaleUpStrategy": "total"}
    assert decided("workload-demand", seen, memory, **options).nodes == 6


def test_a_time_that_lies_ahead_is_now() -> None:
    """The clock was set back."""
    seen = view(4, **queued(2))
    memory = {"waiting_since": NOW + 5000, "waiting": 1}
    found = decided("workload-demand", seen, memory)
    assert found.memory["waiting_since"] == NOW


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("", ["b", "a", "a"]),
        ("ascending", ["a", "a", "b"]),
        ("descending", ["b", "a", "a"]),
    ],
)
def test_all_jobs_are_submitted_in_the_order_of_the_option(
    order: str, expected: list[str]
) -> None:
    seen = view(jobs=(group("b", 4, 1), group("a", 2, 2)))
    assert list(decided("workload-demand", seen, order=order).submit) == expected


def test_a_random_order_has_all_jobs_and_another_seed_another_order() -> None:
    seen = view(jobs=tuple(group(str(n), 1, 1) for n in range(9)))
    orders = {decided("workload-demand", seen, seed=n).submit for n in range(5)}
    assert len(orders) == 5
    assert {tuple(sorted(order)) for order in orders} == {tuple("012345678")}


def test_no_job_is_submitted_while_others_are_or_if_another_algorithm_does() -> None:
    seen = view(jobs=(group(),))
    assert decided("workload-demand", seen, submit="no").submit == ()
    waits = view(jobs=(group(),), unconfirmed=2)
    assert decided("workload-demand", waits).submit == ()


def test_of_shared_jobs_it_takes_what_fits_in_its_most() -> None:
    seen = view(2, jobs=(group("x", 3, 9, shared=True), group("y", 9, 1, shared=True)))
    assert decided("workload-demand", seen).submit == ("x", "x")
    # None where all that it may have is busy, and none of a group without a count.
    small = (group("x", 1, 9, shared=True),)
    full = view(8, jobs=small)
    assert decided("workload-demand", full).submit == ()
    uncounted = view(2, jobs=(group("x", 1, None, shared=True),))
    assert decided("workload-demand", uncounted).submit == ()


@pytest.mark.parametrize(("disabled", "ends"), [("no", True), ("yes", False)])
def test_when_it_was_idle_for_its_checks_it_ends_unless_disabled(
    disabled: str, ends: bool
) -> None:
    idle = view(4, 4)
    memory = {"idle_since": NOW - 100}
    found = decided("workload-demand", idle, memory, disableTermination=disabled)
    assert found.end == ends
    early = decided("workload-demand", idle, {"idle_since": NOW - 99})
    assert not early.end


def test_nodes_that_are_replaced_do_not_begin_its_idleness_anew() -> None:
    """Leases shorter than the window had a member without jobs go on for ever."""
    booting = view(4, 0, nodes_up=0)
    found = decided("workload-demand", booting, {"idle_since": NOW - 99})
    assert found.memory["idle_since"] == NOW - 99
    assert decided("workload-demand", booting, {"idle_since": NOW - 100}).end
    done = view(4, 0, nodes_up=0, tally=JobTally(finished=1))
    assert decided("workload-demand", done).memory["idle_since"] == NOW
    assert "idle_since" not in decided("workload-demand", booting).memory


def test_jobs_that_all_fail_are_not_submitted_without_end() -> None:
    def gives(failed: int, **options: Any) -> bool:
        tally = JobTally(finished=failed, failed=failed)
        seen = view(4, 4, jobs=(group(left=None),), tally=tally)
        return bool(decided("more-jobs", seen, **options).submit)

    assert gives(99, successTarget=3)
    assert not gives(100, successTarget=3)
    assert gives(100, successTarget=11)
    assert not gives(110, successTarget=11)
    assert gives(10_000)
    never_ran = JobTally(events={"exception": 100})
    seen = view(4, 4, jobs=(group(left=None),), tally=never_ran)
    assert not decided("more-jobs", seen, successTarget=3).submit


@pytest.mark.parametrize("name", ["workload-demand", "stop"])
def test_jobs_that_are_shorter_than_a_check_are_work(name: str) -> None:
    """A member that ran such jobs all the time ended as idle, before they were done."""

    def seen(jobs: int) -> MemberView:
        return view(4, 4, tally=JobTally(finished=jobs, events={"submit": jobs}))

    memory = {"idle_since": NOW - 100, "jobs": 7}
    assert decided(name, seen(7), memory).end
    worked = decided(name, seen(9), memory)
    assert not worked.end
    assert worked.memory["idle_since"] == NOW


def test_a_job_that_never_fits_keeps_no_nodes() -> None:
    memory = {"free_since": NOW - 1000, "free": 3}
    assert decided("workload-demand", view(8, 3, **queued(9)), memory).nodes == 5


def test_a_job_that_waits_keeps_nodes_that_are_free() -> None:
    memory = {"free_since": NOW - 1000, "free": 3}
    waits = view(8, 3, **queued(8))
    assert decided("workload-demand", waits, memory).nodes is None


def test_jobs_without_a_count_it_would_never_submit() -> None:
    seen = view(jobs=(group("x", left=None), group("y")))
    (problem,) = make("workload-demand").problems(seen)
    assert "jobs x have count 0" in problem.what
    # Where another algorithm submits, they are no problem.
    assert make("workload-demand", submit=False).problems(seen) == []


# -- stop


@pytest.mark.parametrize(
    ("options", "seen", "why"),
    [
        (
            {"successTarget": 3},
            view(tally=JobTally(success=3)),
            "3 jobs have succeeded",
        ),
        ({"successTarget": 4}, view(tally=JobTally(success=3)), ""),
        ({"failureTarget": 2}, view(tally=JobTally(failed=2)), "2 jobs have failed"),
        (
            {"failureShare": 0.5},
            view(tally=JobTally(finished=10, failed=5)),
            "50 % of 10 jobs have failed",
        ),
        ({"failureShare": 0.5}, view(tally=JobTally(finished=10, failed=4)), ""),
        # Of fewer jobs a share says little.
        ({"failureShare": 0.5}, view(tally=JobTally(finished=9, failed=9)), ""),
        ({"mostTime": "15m"}, view(), "it has existed for 16.7m"),
        ({"mostTime": "1000s"}, view(), "it has existed for 16.7m"),
        ({"mostTime": "1001s"}, view(), ""),
        ({"mostMoney": 2.0}, view(spent=2.5), "it has cost 2.50"),
        ({"mostMoney": 2.5}, view(spent=2.5), "it has cost 2.50"),
        ({"mostMoney": 2.0}, view(spent=1.9), ""),
        ({}, view(tally=JobTally(success=3, failed=5), spent=9.0), ""),
    ],
)
def test_a_condition_that_holds_ends_it(
    options: dict[str, Any], seen: MemberView, why: str
) -> None:
    found = decided("stop", seen, **options)
    assert (found.end, found.why) == (bool(why), why)


@pytest.mark.parametrize(
    ("option", "bad"),
    [("successTarget", -1), ("failureShare", -0.1), ("failureShare", 1.1)],
)
def test_a_condition_that_could_never_hold_is_refused(option: str, bad: float) -> None:
    with pytest.raises(ConfigError, match=option):
        make("stop", **{option: bad})


# -- more-jobs


def test_when_the_queue_runs_dry_more_jobs_come_one_of_each_in_turn() -> None:
    seen = view(jobs=(group("x", left=9), group("y", left=2), group("z", left=None)))
    found = decided("more-jobs", seen, batch=7)
    assert found.submit == ("x", "y", "z", "x", "y", "z", "x")
    assert decided("more-jobs", seen, batch=3, jobs=["z"]).submit == ("z", "z", "z")


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({"queue": QueueCounts(run=1)}, {}),
        ({"queue": QueueCounts(run=4)}, {"below": 4}),
        ({"unconfirmed": 1}, {}),
        ({"tally": JobTally(success=5)}, {"successTarget": 5}),
        ({"jobs": (group(left=0),)}, {}),
    ],
)
def test_no_more_jobs_come(changes: dict[str, Any], options: dict[str, Any]) -> None:
    seen = view(**{"jobs": (group(),), **changes})
    assert decided("more-jobs", seen, **options).submit == ()


def test_more_jobs_without_end_or_of_no_group_are_problems() -> None:
    endless = view(jobs=(group("x", left=None),))
    assert [p.key for p in make("more-jobs").problems(endless)] == ["successTarget"]
    assert make("more-jobs", successTarget=9).problems(endless) == []
    (problem,) = make("more-jobs", jobs=["y"]).problems(endless)
    assert (problem.key, problem.advice) == ("jobs.0", "one of ['x']")
    with pytest.raises(ConfigError, match="mostTime: is gone"):
        make("more-jobs", mostTime="1m")


# -- triggers


def rule(trigger: str, action: str, **more: Any) -> dict[str, Any]:
    known = {"label", "value", "repetitions", "backoff"}
    return {
        "trigger": trigger,
        "action": {
            "name": action,
            **{key: value for key, value in more.items() if key in known},
        },
        **{key: value for key, value in more.items() if key not in known},
    }


def sequence(rules: list[dict[str, Any]], views: list[MemberView]) -> list[Any]:
    return looked_at(make("triggers", rules=rules), views)


def test_start_happens_once() -> None:
    rules = [rule("start", "submit", label="x", repetitions=5)]
    found = sequence(rules, [view(jobs=(group(left=2),))] * 3)
    assert [each.again for each in found] == [("x", "x"), (), ()]
    assert found[0].why == "rules triggered: submit x"


def test_jobs_are_submitted_once_the_member_gets_jobs_again() -> None:
    """What it asked for before would be dropped."""
    rules = [rule(each, "submit", label="x") for each in ("start", "job-finish")]
    jobs = (group(left=1),)
    ended = JobTally(events={"finish": 1})
    full = view(jobs=jobs, tally=ended, waits_with_jobs="5000 jobs are active")
    found = sequence(rules, [full, full, view(jobs=jobs, tally=ended)])
    assert [each.again for each in found] == [(), (), ("x", "x")]


def test_an_action_is_repeated_with_a_back_off_in_checks() -> None:
    seen = view(queue=QueueCounts(sched=9))
    rules = [
        rule(
            *("metric", "grow"),
            name="queue.sched",
            when="> 5",
            repetitions=3,
            backoff=2,
        )
    ]
    sizes = [each.nodes for each in sequence(rules, [seen] * 8)]
    assert sizes == [5, 5, 6, 6, 7, 7, 7, 7]


def test_of_events_within_a_back_off_none_is_made_up_for() -> None:
    views = [view(tally=JobTally(events={"finish": n})) for n in (3, 5, 5, 6)]
    rules = [rule("job-finish", "shrink", repetitions=9, backoff=2)]
    assert [each.nodes for each in sequence(rules, views)] == [3, 3, 3, 2]


def test_a_size_is_wanted_until_the_member_has_it() -> None:
    """A window may not allow it at once; a bound never does. A later size is newer."""
    busy: dict[str, Any] = {"queue": QueueCounts(sched=9)}
    rules = [rule("metric", "grow", name="queue.sched", when="> 5", value=9)]
    views = [view(4, **busy), view(4), view(8), view(4)]
    found = sequence(rules, views)
    assert [each.nodes for each in found] == [8, 8, None, None]
    resized = sequence(rules, [view(4, **busy), view(5), view(5)])
    assert [each.nodes for each in resized] == [8, None, None]
    limited = sequence(rules, [view(4, **busy), view(4, limited="nodes"), view(4)])
    assert [each.nodes for each in limited] == [8, None, None]
    assert [each.why for each in found[:2]] == [
        "rules triggered: grow",
        "rules triggered earlier",
    ]


@pytest.mark.parametrize(("name", "size"), [("x", 5), ("y", 6), ("", 7)])
def test_events_of_a_group_are_those_of_its_jobs(name: str, size: int) -> None:
    tallies = {"x": 1, "y": 2}
    groups = tuple(
        group(each, tally=JobTally(events={"finish": count}))
        for each, count in tallies.items()
    )
    seen = view(jobs=groups, tally=JobTally(events={"finish": 3}))
    rules = [rule("job-finish", "grow", name=name, repetitions=9)]
    assert [each.nodes for each in sequence(rules, [seen])] == [size]


@pytest.mark.parametrize("action", ["terminate", "end"])
def test_a_metric_that_has_no_value_yet_triggers_nothing(action: str) -> None:
    rules = [rule("metric", action, name="mean.x-duration")]
    ran = JobTally(finished=3, success=3, duration=Spread(count=3, mean=5.0))
    without, with_one = view(jobs=(group(),)), view(jobs=(group(tally=ran),))
    assert [each.end for each in sequence(rules, [without, with_one])] == [False, True]


def test_a_custom_command_is_run() -> None:
    (found,) = sequence([rule("start", "custom", label="save")], [view()])
    assert found.custom == ("save",)


@pytest.mark.parametrize(
    ("wrong", "key", "advice"),
    [
        (rule("strat", "end"), "rules.0.trigger", "start"),
        (rule("job-finsh", "end"), "rules.0.trigger", "job-finish"),
        (rule("job-alloc", "end"), "rules.0.trigger", ""),
        (rule("job-finish", "end", name="y"), "rules.0.name", "there are x"),
        (rule("job-finish", "end", when=3), "rules.0.when", ""),
        (
            rule("metric", "end", name="count.x.sucess"),
            "rules.0.name",
            "count.x.success",
        ),
        (rule("metric", "end", name="waiting", when="5 >"), "rules.0.when", ""),
        (rule("start", "submit", label="y"), "rules.0.action.label", "there are x"),
    ],
)
def test_what_there_is_not_is_a_problem_with_its_key(
    wrong: dict[str, Any], key: str, advice: str
) -> None:
    (problem,) = make("triggers", rules=[wrong]).problems(view(jobs=(group(),)))
    assert problem.key == key
    assert advice in problem.advice


def test_a_command_that_the_file_does_not_have_is_a_problem() -> None:
    rules = make("triggers", rules=[rule("start", "custom", label="sav")])
    (problem,) = rules.problems(view(commands=("save",)))
    assert (problem.key, problem.advice) == (
        "rules.0.action.label",
        "did you mean save?",
    )
    (problem,) = rules.problems(view())
    assert problem.advice == "there are none"
    rules = make("triggers", rules=[rule("start", "submit")])
    (problem,) = rules.problems(view(jobs=(group(),)))
    assert (problem.what, problem.advice) == ("is missing", "there are x")
