# SPDX-License-Identifier: MIT
"""Random members, workloads, algorithms that say anything, members that cannot be read.

What holds in all: sizes stay within bounds and limits, they change at most so often,
and what has ended stays so.
"""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
from burst_ensemble.algorithm import MemberDecision, MemberView
from burst_ensemble.config.spec import (
    AlgorithmSpec,
    EnsembleLimits,
    EnsembleSpec,
    JobSpec,
    MemberSpec,
)
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.controller import confirm, end_all, look, new_record
from burst_ensemble.core.intents import (
    Done,
    EndMember,
    JobRef,
    ResizeMember,
    SubmitJobs,
)
from burst_ensemble.core.wishes import AlgorithmFault
from burst_ensemble_replay.member import (
    NodeTimes,
    SimulatedIsolatedMember,
    SimulatedJob,
    SimulatedMember,
)
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from burst.config import Seconds, convert
from burst.config.convert import SecondsOrNumber
from burst.model.jobid import JobId
from tests.plugins.ensemble.core.ensembles import rewritten

CHECK = 10.0
OPTIONS: dict[str, dict[str, Any]] = {
    "workload-demand": {"scaleUpStrategy": "total", "scaleChecks": 1},
    "more-jobs": {"batch": 3},
    "stop": {"successTarget": 7},
}
MEMBERS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 5),
        st.sampled_from([0.5, 1.0, 3.0]),
        st.sampled_from([*OPTIONS, "anything"]),
        st.sampled_from(["joined", "joined", "isolated"]),
    ),
    min_size=1,
    max_size=4,
)
WINDOWS = st.tuples(st.sampled_from([10.0, 30.0, 70.0]), st.sampled_from([10.0, 60.0]))
ANYTHING = st.builds(
    MemberDecision,
    nodes=st.none() | st.integers(-5, 30),
    submit=st.lists(st.sampled_from(["own", "shared"]), max_size=4).map(tuple),
    end=st.integers(0, 30).map(lambda n: n == 0),
    why=st.just("drawn"),
) | st.just(AlgorithmFault("raised"))


class EnsembleMachine(RuleBasedStateMachine):
    """An ensemble over simulated members."""

    @initialize(
        members=MEMBERS,
        windows=WINDOWS,
        spare=st.none() | st.integers(0, 6),
        money=st.booleans(),
    )
    def begin(self, members: Any, windows: Any, spare: int | None, money: bool) -> None:
        made = []
        for number, (least, more, share, algorithm, mode) in enumerate(members):
            made.append(
                MemberSpec(
                    name=f"m{number}",
                    provider="local",
                    mode=mode,
                    size=least,
                    min=least,
                    max=max(1, least + more),
                    share=share,
                    jobs=(JobSpec(name="own", command="true", count=6),),
                    algorithms=(AlgorithmSpec(name=algorithm),),
                )
            )
        floors = sum(each.min for each in made)
        limits = EnsembleLimits(
            nodes=0 if spare is None else max(1, floors + spare),
            money=3.0 if money else 0.0,
        )
        pool = (JobSpec(name="shared", command="true", count=9),)
        self.spec = EnsembleSpec(
            name="e",
            members=tuple(made),
            jobs=pool,
            limits=limits,
            check=SecondsOrNumber(CHECK),
            grow_window=Seconds(windows[0]),
            shrink_window=Seconds(windows[1]),
        )
        self.now = 0.0
        self.record = new_record(self.spec, 0.0)
        self.there = {
            each.name: (
                SimulatedIsolatedMember if each.is_isolated else SimulatedMember
            )(NodeTimes(boot=25.0, teardown=15.0))
            for each in made
        }
        self.changes: dict[str, list[tuple[float, bool]]] = {
            each.name: [] for each in made
        }
        self.ended: dict[str, Any] = {}
        self.given: dict[JobRef, JobId] = {}
        self.algorithms = {
            name: BUILT_IN[name](convert(BUILT_IN[name].Options, options, "x"))
            for name, options in OPTIONS.items()
        }

    @rule(
        data=st.data(),
        unread=st.sets(st.integers(0, 3), max_size=1),
        lose=st.booleans(),
    )
    def check(self, data: Any, unread: set[int], lose: bool) -> None:
        """One check; a member may not be read, and confirmations may be lost."""
        for member in self.there.values():
            member.advance(self.now)
        read = {
            name: member.read(self.record.members[name], self.now)
            for number, (name, member) in enumerate(self.there.items())
            if number not in unread
        }

        def ask(view: MemberView, memory: Any) -> dict[str, Any]:
            key = self.spec.member(view.name).algorithms[0].name
            if key == "anything":
                return {key: data.draw(ANYTHING, label=view.name)}
            its = memory.get(key, {})
            return {key: self.algorithms[key].decide(view, its, self.now)}

        before = {name: one.nodes for name, one in self.record.members.items()}
        paid = sum(member.nodes_paid for member in self.there.values())
        step = look(self.spec, self.record, read, ask, self.now)
        self._do_step(step, before, paid, lose)
        self.now += CHECK

    def _do_step(self, step: Any, before: Any, paid: int, lose: bool) -> None:
        # Written and read again, as after a restart.
        self.record = rewritten(step.record)
        assert self.record == step.record
        for name, one in self.record.members.items():
            if one.ended is None and one.nodes != before[name]:
                self.changes[name].append((self.now, one.nodes > before[name]))
        if self.spec.limits.nodes:
            promised = sum(
                max(self.there[name].nodes_paid, one.nodes if one.ended is None else 0)
                for name, one in self.record.members.items()
            )
            assert promised <= max(self.spec.limits.nodes, paid)
        done = [(intent, self._do(intent)) for intent in step.intents]
        if not lose:
            self.record = confirm(self.spec, self.record, done, self.now)

    def _do(self, intent: Any) -> Done:
        member = self.there[intent.member]
        jobs = {}
        if isinstance(intent, ResizeMember):
            assert self.record.members[intent.member].ended is None
            member.resize(intent.nodes, self.now)
        elif isinstance(intent, EndMember):
            member.end(self.now)
        elif isinstance(intent, SubmitJobs):
            for ref in intent.jobs:
                owner = "" if ref.shared else intent.member
                key = msgspec.structs.replace(ref, group=f"{owner}/{ref.group}")
                # A job that is there already is not submitted again.
                if key not in self.given:
                    job = SimulatedJob(ref.group, 1, 35.0, ref.number % 3 != 0)
                    member.submit(job, self.now)
                    self.given[key] = job.id
                jobs[ref] = self.given[key]
        return Done(jobs=jobs)

    @rule(
        number=st.integers(0, 3), nodes=st.integers(1, 9), seconds=st.integers(1, 200)
    )
    def somebody_submits(self, number: int, nodes: int, seconds: int) -> None:
        member = self.there.get(f"m{number}")
        if member is not None and not member.ended:
            member.submit(SimulatedJob("users", nodes, float(seconds)), self.now)

    @rule(seconds=st.sampled_from([5.0, 100.0, 1000.0]))
    def nobody_looks_for_a_while(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.now > 300)
    @rule()
    def down(self) -> None:
        self.record = end_all(self.record, "down", self.now)

    @invariant()
    def sizes_are_within_bounds(self) -> None:
        for each in self.spec.members:
            nodes = self.record.members[each.name].nodes
            begun = self.record.members[each.name].grown is not None
            assert (each.min if begun else 0) <= nodes <= each.max

    @invariant()
    def sizes_change_only_so_often(self) -> None:
        for each in self.spec.members:
            changes = self.changes[each.name]
            for (last, _), (now, grew) in itertools.pairwise(changes):
                window = self.spec.grow_window if grew else self.spec.shrink_window
                assert now - last >= window

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        for name, member in self.record.members.items():
            if member.ended is not None:
                facts = (member.ended, member.why, member.nodes)
                assert self.ended.setdefault(name, facts) == facts
            else:
                assert name not in self.ended
        assert (self.record.ended is not None) == all(
            member.ended is not None for member in self.record.members.values()
        )

    @invariant()
    def no_job_is_given_out_twice_or_beyond_the_file(self) -> None:
        numbers = [ref for ref in self.given if ref.shared]
        assert len(numbers) <= 9
        assert self.record.shared.get("shared", 0) <= 9
        for member in self.record.members.values():
            assert member.submitted.get("own", 0) <= 6


EnsembleMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestEnsembleMachine = EnsembleMachine.TestCase
