# SPDX-License-Identifier: MIT
"""Random members, workloads, algorithms that say anything, members that cannot be read.

What holds in all: sizes stay within bounds and limits, they change at most so often,
and what has ended stays so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
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
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import MemberRecord
from burst_ensemble.core.wishes import AlgorithmFault, Answer
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
# Sizes, limits and windows are small, so that most checks meet one of them.
MEMBERS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 3, 4]),
        st.integers(0, 2),
        st.integers(2, 5),
        st.sampled_from([0.5, 1.0, 3.0]),
        st.sampled_from([*["anything"] * 9, *OPTIONS]),
        st.sampled_from([*["joined"] * 5, "isolated"]),
    ),
    min_size=2,
    max_size=3,
)
WINDOWS = st.tuples(
    st.sampled_from([0.0, 10.0, 10.0, 30.0]), st.sampled_from([0.0, 10.0, 10.0, 60.0])
)
RAISES = "raises"
ENDS = "ends"
WISHES = st.sampled_from(
    [*[0, 0, 9, 9, *range(1, 7)] * 9, *[None] * 6, 30, -5, RAISES, ENDS]
)


class Happens(msgspec.Struct, frozen=True):
    """What happens at a check."""

    wishes: tuple[int | str | None, ...]
    """What each member's algorithm that may say anything says of nodes."""
    submit: tuple[str, ...]
    """The jobs that it wants."""
    unread: int
    """The member that cannot be read; below 0 for none."""
    lost: str
    """Whether the daemon is killed before it does what it decided, or after that and
    before that is confirmed."""


HAPPENS = st.builds(
    Happens,
    wishes=st.tuples(WISHES, WISHES, WISHES),
    submit=st.sampled_from([(), (), ("own",), ("shared", "shared", "own")]),
    unread=st.integers(-3, 2),
    lost=st.sampled_from(["", "", "all", "all", "confirmations"]),
)


def says(happens: Happens, number: int) -> Answer:
    """What an algorithm says that may say anything."""
    wish = happens.wishes[number]
    if wish == RAISES:
        return AlgorithmFault("raised")
    return MemberDecision(
        nodes=None if isinstance(wish, str) else wish,
        submit=happens.submit,
        end=wish == ENDS,
        why="drawn",
    )


class EnsembleMachine(RuleBasedStateMachine):
    """An ensemble over simulated members."""

    @initialize(
        members=MEMBERS,
        windows=WINDOWS,
        spare=st.sampled_from([1, 2, 3, 4, 5, 6, 7, 30]),
        money=st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.6, 3.0]),
        down=st.sampled_from([200.0, *[math.inf] * 5]),
    )
    def begin(
        self, members: Any, windows: Any, spare: int, money: float, down: float
    ) -> None:
        made = []
        for number, (least, first, more, *others) in enumerate(members):
            share, algorithm, mode = others
            made.append(
                MemberSpec(
                    name=f"m{number}",
                    provider="local",
                    mode=mode,
                    size=least + first,
                    min=least,
                    max=max(1, least + first + more),
                    share=share,
                    jobs=(JobSpec(name="own", command="true", count=6),),
                    algorithms=(AlgorithmSpec(name=algorithm),),
                )
            )
        floors = sum(each.min for each in made)
        limits = EnsembleLimits(
            nodes=floors + spare,
            money=money,
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
        self.down = down
        self.record = new_record(self.spec, 0.0)
        self.there = {
            each.name: (
                SimulatedIsolatedMember if each.is_isolated else SimulatedMember
            )(NodeTimes(boot=25.0, teardown=75.0))
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

    @rule(happens=HAPPENS)
    def check(self, happens: Happens) -> None:
        """One check; all else that happens ends with one."""
        if self.now >= self.down:
            self.record = end_all(self.record, "down", self.now)
        for member in self.there.values():
            member.advance(self.now)
        read = {
            name: member.read(self.record.members[name], self.now)
            for number, (name, member) in enumerate(self.there.items())
            if number != happens.unread
        }
        wanted: dict[str, MemberDecision] = {}

        def ask(view: MemberView, memory: Any) -> dict[str, Answer]:
            key = self.spec.member(view.name).algorithms[0].name
            if key == "anything":
                answer = says(happens, int(view.name[1:]))
            else:
                answer = self.algorithms[key].decide(
                    view, memory.get(key, {}), self.now
                )
            if isinstance(answer, MemberDecision):
                wanted[view.name] = answer
            return {key: answer}

        before = self.record.members
        step = look(self.spec, self.record, read, ask, self.now)
        # Written and read again, as after a restart.
        self.record = rewritten(step.record)
        assert self.record == step.record
        self._see_sizes(before, read, wanted)
        if happens.lost != "all":
            done = [(intent, self._do(intent)) for intent in step.intents]
            if not happens.lost:
                self.record = confirm(self.spec, self.record, done, self.now)
        self.now += CHECK

    def _see_sizes(
        self,
        before: Mapping[str, MemberRecord],
        read: Mapping[str, MemberState],
        wanted: Mapping[str, MemberDecision],
    ) -> None:
        """Note which sizes changed, and look at whether they might."""
        grew = False
        for name, one in self.record.members.items():
            if one.ended is None and one.nodes != before[name].nodes:
                assert name in wanted, "its size changed, and it was not asked"
                more = one.nodes > before[name].nodes
                self.changes[name].append((self.now, more))
                grew |= more and read[name].reading.nodes_paid > 0
            if one.ended is None and before[name].grown is None and name in wanted:
                self._begins(self.spec.member(name), one.nodes, wanted[name].nodes)
        if grew and self.spec.limits.money:
            self._can_be_paid(read)

    def _begins(self, member: MemberSpec, nodes: int, wished: int | None) -> None:
        """A member begins with its `size`, or what its algorithm wants in its place.

        It does so at once, with all of that, or it tells which limit leaves it less.
        """
        first = member.size if wished is None else wished
        first = max(member.min, min(member.max, first))
        assert nodes <= first
        assert nodes == first or self.record.members[member.name].limited

    def _can_be_paid(self, read: Mapping[str, MemberState]) -> None:
        """What is left of the money pays ten minutes of all nodes that are there.

        What is not read has no price, and one without nodes may begin.
        """
        per_hour = 0.0
        for name, state in read.items():
            member, paid = self.record.members[name], state.reading.nodes_paid
            if paid:
                nodes = member.nodes if member.ended is None else 0
                per_hour += max(paid, nodes) * state.reading.price
        assert self.record.spent + per_hour / 6 <= self.spec.limits.money + 1e-9

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
        number=st.integers(0, 2),
        nodes=st.integers(1, 9),
        seconds=st.integers(1, 200),
        happens=HAPPENS,
    )
    def somebody_submits(
        self, number: int, nodes: int, seconds: int, happens: Happens
    ) -> None:
        member = self.there.get(f"m{number}")
        if member is not None and not member.ended:
            member.advance(self.now)
            member.submit(SimulatedJob("users", nodes, float(seconds)), self.now)
        self.check(happens)

    @rule(seconds=st.sampled_from([5.0, 30.0, 200.0]), happens=HAPPENS)
    def nobody_looks_for_a_while(self, seconds: float, happens: Happens) -> None:
        self.now += seconds
        self.check(happens)

    @invariant()
    def no_more_nodes_are_paid_or_promised_than_the_limit(self) -> None:
        promised = 0
        for name, member in self.there.items():
            one = self.record.members[name]
            nodes = one.nodes if one.ended is None else 0
            promised += max(member.nodes_paid, nodes)
        assert promised <= self.spec.limits.nodes

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
    stateful_step_count=24,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestEnsembleMachine = EnsembleMachine.TestCase
