# SPDX-License-Identifier: MIT
"""A step: bounds, limits, windows, order, ends that are final, faults set apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from burst_ensemble.algorithm import (
    MEMORY_MOST,
    SUBMIT_MOST,
    MemberDecision,
    MemberView,
    Memory,
)
from burst_ensemble.core.algorithms.workload_demand import DemandOptions, WorkloadDemand
from burst_ensemble.core.controller import (
    confirm,
    look,
    new_record,
    note_failure,
)
from burst_ensemble.core.intents import (
    Done,
    EndMember,
    JobRef,
    ResizeMember,
    RunCustom,
    SubmitJobs,
)
from burst_ensemble.core.job_rows import JobsSeen, MemberState, count_jobs
from burst_ensemble.core.read_members import is_over
from burst_ensemble.core.record import Ensemble, EnsembleRecord, EnsembleStart, KnownJob
from burst_ensemble.core.sizes import resized
from burst_ensemble.core.wishes import AlgorithmFault, Answer

from burst.config import Seconds
from burst.core.tagged_nodes import TaggedNodes
from burst.model.jobid import JobId
from tests.plugins.ensemble.core.ensembles import (
    NOW,
    ensemble,
    jobs,
    limited,
    make,
    member,
    reading,
    stepped,
    wants,
)

DEMAND = WorkloadDemand(DemandOptions())


def begun(spec: Any, **nodes: int) -> EnsembleRecord:
    """The record of an ensemble whose members have these sizes."""
    record = new_record(spec, NOW - 1000)
    for name, size in nodes.items():
        record = record.with_member(name, nodes=size, grown=NOW - 1000)
    return record


def sizes(record: EnsembleRecord) -> dict[str, int]:
    return {name: one.nodes for name, one in record.members.items()}


def test_a_size_is_asked_for_until_the_member_has_it() -> None:
    spec = ensemble()
    record = begun(spec, m=6)
    asked = stepped(spec, record, {"m": reading(4)}, {"m": wants()})
    assert [type(each) for each in asked.intents] == [ResizeMember]
    done = stepped(spec, record, {"m": reading(6)}, {"m": wants()})
    assert done.intents == ()


def test_ends_come_first_then_what_shrinks_then_what_grows_then_jobs() -> None:
    spec = ensemble(
        member("a", jobs=(jobs(),)), member("b"), member("c"), custom={"x": ("true",)}
    )
    step = stepped(
        spec,
        begun(spec, a=2, b=4, c=1),
        {"a": reading(2), "b": reading(4), "c": reading(1)},
        {
            "a": wants(5, submit=("job",), custom=("x",)),
            "b": wants(1),
            "c": wants(end=True),
        },
    )
    assert [type(each) for each in step.intents] == [
        EndMember,
        ResizeMember,
        ResizeMember,
        SubmitJobs,
        RunCustom,
    ]
    assert [each.member for each in step.intents] == ["c", "b", "a", "a", "a"]


@pytest.mark.parametrize(
    ("grow", "shrink", "wanted", "later", "expected"),
    [
        (60.0, 0.0, 6, 59.0, 4),
        (60.0, 0.0, 6, 60.0, 6),
        (60.0, 0.0, 1, 0.0, 1),
        (0.0, 90.0, 1, 89.0, 4),
        (0.0, 90.0, 1, 90.0, 1),
        (0.0, 90.0, 6, 0.0, 6),
    ],
)
def test_each_direction_has_its_own_window_after_a_change(
    grow: float, shrink: float, wanted: int, later: float, expected: int
) -> None:
    spec = ensemble(grow_window=Seconds(grow), shrink_window=Seconds(shrink))
    record = begun(spec, m=4).with_member("m", grown=NOW)
    step = stepped(spec, record, {"m": reading(4)}, {"m": wants(wanted)}, NOW + later)
    assert sizes(step.record) == {"m": expected}


def test_members_share_the_limit_of_nodes_by_weight() -> None:
    spec = limited(member("a", share=2.0), member("b"), nodes=9)
    step = stepped(
        spec,
        begun(spec, a=1, b=1),
        {"a": reading(1), "b": reading(1)},
        {"a": wants(8), "b": wants(8)},
    )
    assert sizes(step.record) == {"a": 6, "b": 3}
    told = "it wants 8 nodes, but [limits] nodes and its fair share leave 6"
    assert step.record.members["a"].limited == told
    assert told in step.record.members["a"].why


def test_who_grows_waits_for_nodes_that_another_is_giving_back() -> None:
    spec = limited(member("a"), member("b"), nodes=9)
    readings = {"a": reading(8, free=0), "b": reading(1)}
    first = stepped(
        spec, begun(spec, a=8, b=1), readings, {"a": wants(8), "b": wants(4)}
    )
    assert sizes(first.record) == {"a": 5, "b": 1}
    # The upper nodes of a are being drained: paid, and no part of its size any more.
    draining = {"a": reading(7, size=5), "b": reading(1)}
    second = stepped(spec, first.record, draining, {"a": wants(8), "b": wants(4)})
    assert sizes(second.record) == {"a": 5, "b": 2}
    gone = {"a": reading(5), "b": reading(2)}
    third = stepped(spec, second.record, gone, {"a": wants(8), "b": wants(4)})
    assert sizes(third.record) == {"a": 5, "b": 4}


def test_a_member_that_was_not_asked_counts_with_what_it_pays() -> None:
    spec = limited(member("a"), member("b"), nodes=10)
    readings = {"a": reading(1), "b": reading(6, size=4)}
    step = stepped(spec, begun(spec, a=1, b=4), readings, {"a": wants(8)})
    assert sizes(step.record) == {"a": 4, "b": 4}


def test_without_nodes_for_its_least_size_a_member_does_not_begin() -> None:
    spec = limited(member("a"), member("b", min=3, size=3), nodes=8)
    readings = {"a": reading(7, size=5), "b": reading()}
    step = stepped(spec, begun(spec, a=5), readings, {"a": wants(5), "b": wants()})
    assert sizes(step.record) == {"a": 5, "b": 0}


def test_a_step_that_failed_is_told_until_the_next_one() -> None:
    """Also of a member that cannot be read. The fault of its algorithm stays then."""
    spec = ensemble(member("a"), member("b"))
    noted = note_failure(begun(spec, a=1, b=1), ZeroDivisionError())
    assert noted.members["b"].fault.startswith("its step failed: ZeroDivisionError")
    step = stepped(spec, noted, {"a": reading(1)}, {"a": AlgorithmFault("no")})
    assert [each.fault for each in step.record.members.values()] == ["a0: no", ""]
    again = stepped(spec, step.record, {}, {})
    assert again.record.members["a"].fault == "a0: no"


def test_the_limit_of_time_ends_all() -> None:
    spec = limited(member(), time=1000.0)
    step = stepped(spec, begun(spec, m=4), {"m": reading(4)}, {"m": wants(8)})
    assert step.intents == (
        EndMember(member="m", why="[limits] time: 16.7m have passed"),
    )


@pytest.mark.parametrize(("spent", "ends"), [(4.9, False), (4.98, True), (6.0, True)])
def test_the_limit_of_money_ends_all_before_the_next_check_would_pass_it(
    spent: float, ends: bool
) -> None:
    spec = limited(member(), money=5.0)
    paid = {"m": reading(4, price=2.0, spent=spent)}  # 0.022 until the next check
    step = stepped(spec, begun(spec, m=4), paid, {"m": wants()})
    assert (step.record.ended is not None) == ends


@pytest.mark.parametrize(("price", "expected"), [(1.0, 8), (4.0, 4)])
def test_nothing_grows_that_could_not_be_paid_for_ten_minutes(
    price: float, expected: int
) -> None:
    spec = limited(member(), money=5.0)
    paid = {"m": reading(4, price=price, spent=2.0)}
    step = stepped(spec, begun(spec, m=4), paid, {"m": wants(8)})
    assert sizes(step.record) == {"m": expected}
    told = "it wants 8 nodes, but what is left of [limits] money leaves 4"
    assert step.record.members["m"].limited == (told if expected == 4 else "")


def test_money_that_was_read_once_is_kept_when_a_member_cannot_be_read() -> None:
    spec = limited(member("a"), member("b"), money=5.0)
    record = begun(spec, a=1, b=1)
    first = {"a": reading(1, spent=4.0), "b": reading(1, spent=0.5)}
    record = stepped(spec, record, first, {}).record
    step = stepped(spec, record, {"b": reading(1, spent=1.0)}, {})
    assert "5.00 of 5" in step.record.why


def test_a_fault_leaves_the_member_as_it_is_and_others_go_on() -> None:
    spec = ensemble(member("a", jobs=(jobs(),)), member("b"))
    readings = {"a": reading(2), "b": reading(2)}
    fault = AlgorithmFault("ValueError: no")
    answers: dict[str, Any] = {"a": [wants(6, submit=("job",)), fault], "b": wants(5)}
    step = stepped(spec, begun(spec, a=2, b=2), readings, answers)
    assert sizes(step.record) == {"a": 2, "b": 5}
    assert step.record.members["a"].fault == "a1: ValueError: no"
    assert step.record.members["a"].submitted == {}
    good = stepped(spec, step.record, readings, {"a": wants(6), "b": wants()})
    assert good.record.members["a"].fault == ""


ASKED: list[dict[str, Any]] = [
    {"nodes": 2},
    {"submit": ("job",)},
    {"again": ("job",)},
    {"custom": ("x",)},
]


@pytest.mark.parametrize(
    ("grown_to", "by_hand", "expected"),
    [(None, None, [2, 2, 4, 4]), (8, None, [2, 2, 8, 8]), (None, 7, [2, 7, 7, 7])],
)
def test_a_rule_that_is_triggered_within_a_window_counts_after_it(
    grown_to: int | None, by_hand: int | None, expected: list[int]
) -> None:
    """Unless another algorithm, or a person, has changed the size since."""
    spec = ensemble(grow_window=Seconds(30), shrink_window=Seconds(30))
    grow = {"trigger": "metric", "name": "waiting", "when": "> 5"}
    rules = [{**grow, "action": {"name": "grow", "value": 2}}]
    triggers, record = make("triggers", rules=rules), begun(spec, m=2)
    record = record.with_member("m", grown=NOW)
    found = []
    for now in (NOW + 10, NOW + 20, NOW + 30, NOW + 60):

        def ask(
            seen: MemberView, memory: Mapping[str, Memory], now: float = now
        ) -> dict[str, Answer]:
            other = wants(grown_to if seen.nodes != grown_to else None)
            rules = triggers.decide(seen, memory.get("rules", {}), now)
            return {"other": other, "rules": rules}

        if by_hand and now == NOW + 20:
            record = resized(record, "m", by_hand, "by hand", now - 1)
        size = record.members["m"].nodes
        waiting = {1: 9} if now == NOW + 10 else {}
        read = MemberState(reading(size, waiting=waiting), record.members["m"])
        record = look(spec, record, {"m": read}, ask, now).record
        found.append(record.members["m"].nodes)
    assert found == expected


@pytest.mark.parametrize("order", [1, -1])
def test_a_member_one_of_whose_algorithms_fails_is_ended_by_another(order: int) -> None:
    spec = ensemble()
    both: list[Answer] = [AlgorithmFault("no"), wants(end=True)]
    step = stepped(spec, begun(spec, m=2), {"m": reading(2)}, {"m": both[::order]})
    assert step.intents == (EndMember(member="m", why="it wants so"),)


def test_what_an_algorithm_asked_for_in_vain_is_not_in_its_memory() -> None:
    """It asks again, once the other answers."""
    spec = ensemble(member(jobs=(jobs(),)), custom={"x": ("true",)})
    answers: list[Answer] = [
        AlgorithmFault("no"),
        wants(memory={"since": 1}),
        *(wants(memory={"done": 1}, **each) for each in ASKED),
    ]
    step = stepped(spec, begun(spec, m=2), {"m": reading(2)}, {"m": answers})
    assert step.record.members["m"].memory == {"a1": {"since": 1}}


def test_a_clock_that_was_set_back_stops_nothing() -> None:
    """It is while no daemon runs: one that runs has a clock of its own."""
    spec = ensemble(grow_window=Seconds(60), shrink_window=Seconds(60))
    record = begun(spec, m=2).with_member("m", grown=NOW)
    earlier = NOW - 7200
    step = stepped(spec, record, {"m": reading(2)}, {"m": wants(5)}, earlier)
    assert sizes(step.record) == {"m": 5}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (7, "returned int"),
        (MemberDecision(nodes="many"), "cannot be used"),  # type: ignore[arg-type]
        (MemberDecision(memory={"a": object()}), "cannot be used"),
        (MemberDecision(memory={"a": "x" * MEMORY_MOST}), "the limit is"),
        (MemberDecision(submit=("other",)), "a job other"),
        (MemberDecision(again=("other",)), "a job other"),
        (MemberDecision(custom=("rm",)), "a command rm"),
    ],
)
def test_an_answer_that_cannot_be_used_is_a_fault(answer: Any, told: str) -> None:
    spec = ensemble()
    step = stepped(spec, begun(spec, m=2), {"m": reading(2)}, {"m": answer})
    assert told in step.record.members["m"].fault


def test_the_first_algorithm_that_says_a_size_decides_and_any_may_end() -> None:
    spec = ensemble()
    answers = [wants(), wants(5), wants(7, memory={"x": [1]})]
    step = stepped(spec, begun(spec, m=2), {"m": reading(2)}, {"m": answers})
    assert sizes(step.record) == {"m": 5}
    assert step.record.members["m"].memory == {"a0": {}, "a1": {}, "a2": {"x": [1]}}
    unsaid = [wants(5), MemberDecision(end=True)]
    ended = stepped(spec, begun(spec, m=2), {"m": reading(2)}, {"m": unsaid})
    assert ended.record.members["m"].why == "a1 decided to end it"


def test_jobs_are_given_out_once_and_submitted_until_they_are_confirmed() -> None:
    spec = ensemble(member(jobs=(jobs("x", count=3),)))
    readings = {"m": reading(1)}
    asked = {"m": wants(submit=("x", "x"))}
    step = stepped(spec, begun(spec, m=1), readings, asked)
    expected = (JobRef("x", 0), JobRef("x", 1))
    (submit,) = step.intents
    assert isinstance(submit, SubmitJobs)
    assert submit.jobs == expected
    again = stepped(spec, step.record, readings, asked)
    assert again.intents == (submit,)
    done = [(submit, Done(jobs={expected[0]: JobId(7)}))]
    record = confirm(spec, again.record, done, NOW)
    assert record.members["m"].unconfirmed == expected[1:]
    done = [(submit, Done(jobs=dict.fromkeys(expected, JobId(8))))]
    record = confirm(spec, record, done, NOW)
    last = stepped(spec, record, readings, asked)
    (rest,) = last.intents
    assert isinstance(rest, SubmitJobs)
    assert rest.jobs == (JobRef("x", 2),)


def test_beyond_what_is_left_only_if_asked_for_again() -> None:
    spec = ensemble(member(jobs=(jobs("x", count=1), jobs("any", count=0))))
    asked = {"m": wants(submit=("x", "x", "any"), again=("x",))}
    step = stepped(spec, begun(spec, m=1), {"m": reading(1)}, asked)
    assert step.record.members["m"].unconfirmed == (
        JobRef("x", 0),
        JobRef("any", 0),
        JobRef("x", 1),
    )


def test_no_more_jobs_are_given_out_in_a_step_than_a_record_can_hold() -> None:
    spec = ensemble(member(jobs=(jobs("x", count=1000),)))
    asked = {"m": wants(submit=("x",) * 1000)}
    step = stepped(spec, begun(spec, m=1), {"m": reading(1)}, asked)
    assert len(step.record.members["m"].unconfirmed) == SUBMIT_MOST
    assert step.record.members["m"].submitted == {"x": SUBMIT_MOST}


def test_commands_are_numbered_bounded_and_run_until_they_are_confirmed() -> None:
    spec = ensemble(custom={"x": ("true",)})
    readings = {"m": reading(1)}
    asked = {"m": wants(custom=("x", "x"))}
    step = stepped(spec, begun(spec, m=1), readings, asked)
    first, second = step.intents
    assert isinstance(first, RunCustom)
    assert isinstance(second, RunCustom)
    assert (first.number, second.number) == (0, 1)
    record = confirm(spec, step.record, [(first, Done())], NOW)
    assert stepped(spec, record, readings, {}).intents == (second,)
    many = stepped(spec, record, readings, {"m": wants(custom=("x",) * 50)})
    assert len(many.record.members["m"].unconfirmed_commands) == 20


def test_commands_of_a_member_that_ends_are_run() -> None:
    """A rule may save the results when another one ends the member."""
    saves = RunCustom(member="m", command="save", number=0)
    spec = ensemble(custom={"save": ("true",)})
    both: list[Answer] = [AlgorithmFault("no"), wants(end=True, custom=("save",))]
    step = stepped(spec, begun(spec, m=1), {"m": reading(1)}, {"m": both})
    assert step.intents == (EndMember(member="m", why="it wants so"), saves)
    # One that was decided before a limit ends all.
    spec = limited(member(), time=1000.0)
    record = begun(spec, m=0).with_member("m", unconfirmed_commands=((0, "save"),))
    step = stepped(spec, record, {"m": reading(0)}, {})
    assert (step.record.ended, step.intents) == (NOW, (saves,))
    one = Ensemble(EnsembleStart(spec=spec, userid=1), step.record)
    nothing = TaggedNodes(now=NOW, is_read=True)
    assert not is_over(one, nothing, ())
    done = confirm(spec, step.record, [(saves, Done())], NOW)
    assert is_over(Ensemble(one.start, done), nothing, ())


def test_what_was_done_is_confirmed_once() -> None:
    spec, ref = ensemble(member(jobs=(jobs("x", nodes=2),))), JobRef("x", 0)
    record = begun(spec, m=1).with_member("m", unconfirmed=(ref,))
    intent = SubmitJobs(member="m", jobs=(ref,))
    done = [(intent, Done("no", {ref: JobId(7)})), (intent, Done("never"))]
    found = confirm(spec, record, done, NOW).members["m"]
    assert found.unconfirmed == ()
    assert found.refused == "no"
    new = KnownJob("x", 2, counted="", submitted=NOW)
    assert found.jobs == {JobId(7): new}
    again = record.with_members({"m": found})
    assert confirm(spec, again, done[:1], NOW + 1) == again


def test_a_job_that_can_never_be_submitted_is_counted_once() -> None:
    spec, first, second = ensemble(), JobRef("x", 0), JobRef("x", 1)
    record = begun(spec, m=1).with_member("m", unconfirmed=(first, second))
    intent = SubmitJobs(member="m", jobs=(first, second))
    done = [(intent, Done(never_taken={first: "no"}))]
    record = confirm(spec, record, done, NOW)
    found = record.members["m"]
    assert (found.unconfirmed, found.never_taken) == ((second,), "no")
    assert (found.statistics["x"].failed, found.total.failed) == (1, 1)
    assert confirm(spec, record, done, NOW) == record


@pytest.mark.parametrize(("later", "ends"), [(200.0, False), (301.0, True)])
def test_a_member_whose_jobs_the_lead_does_not_show_yet_is_not_idle(
    later: float, ends: bool
) -> None:
    """A step may take longer than the idleness that ends a member."""
    spec = ensemble(member(jobs=(jobs("x"),)))

    def step(record: EnsembleRecord, now: float) -> EnsembleRecord:
        def ask(seen: MemberView, memories: Mapping[str, Memory]) -> dict[str, Answer]:
            return {"demand": DEMAND.decide(seen, memories.get("demand", {}), now)}

        found = count_jobs(record.members["m"], JobsSeen((), {}), now)
        one = reading(1, queue=found.reading.queue)
        read = {"m": MemberState(one, found.member)}
        return look(spec, record, read, ask, now).record

    record = step(begun(spec, m=1), NOW)
    (ref,) = record.members["m"].unconfirmed
    done = [(SubmitJobs(member="m", jobs=(ref,)), Done("", {ref: JobId(7)}))]
    record = confirm(spec, record, done, NOW)
    record = step(record, NOW + later)
    assert (record.members["m"].ended is not None) is ends
