# SPDX-License-Identifier: MIT
"""Ensembles under crashes of the daemon, lost answers and moody algorithms."""

from __future__ import annotations

from typing import Any

import pytest
from burst_ensemble.algorithm import MemberDecision
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.model.lead import JobState
from tests.core.isolation import BOTH
from tests.fakes import Crash
from tests.plugins.ensemble.runtime.ensemble_site import (
    MEMBER,
    WINDOWS,
    EnsembleSite,
    Scripted,
)

JOBS = {"jobs": [{"name": "md", "command": "run", "count": 6, "nodes": 1}]}
MEMBERS = [{**MEMBER, **JOBS}]
DECISIONS = st.builds(
    MemberDecision,
    nodes=st.none() | st.integers(-2, 9),
    submit=st.lists(st.just("md"), max_size=3).map(tuple),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["step", "step", "restart", "before", "after", "lost", "end"]),
        DECISIONS,
    ),
    max_size=12,
)


def act(site: EnsembleSite, what: str) -> None:
    """Have something go wrong, and the daemon started again where it died."""
    if what in ("before", "after"):
        site.sim.lead.disk.crash = what
    site.lead.lost = what == "lost"
    try:
        site.step()
    except Crash:
        site.restart()
    finally:
        site.sim.lead.disk.crash = ""
        site.lead.lost = False
    if what == "restart":
        site.restart()
    if what == "end":
        for job in site.sim.lead.running():
            site.end_job(job)


def check(site: EnsembleSite) -> None:
    """What always holds."""
    records = site.sim.engine.snapshot.records
    live = [burst for burst in records.live if burst.lease.tag]
    assert sum(burst.lease.nodes for burst in live) <= 3
    assert site.member("a").nodes in range(4)
    # `Submitted` fails for a name that it has already.
    assert len(site.lead.names) <= 6


@pytest.mark.no_cover
@settings(deadline=None, max_examples=8)
@given(STEPS)
def test_no_job_twice_no_node_too_many_and_nothing_left(
    steps: list[tuple[str, MemberDecision]],
) -> None:
    site = EnsembleSite()
    script: Scripted = site.up(members=MEMBERS, **WINDOWS)["a"]
    for what, decision in steps:
        script.says = decision
        act(site, what)
        check(site)
    script.says = MemberDecision(submit=("md",) * 6, nodes=3)
    jobs: list[Any] = []
    for _ in range(30):
        act(site, "end")
        jobs = list(site.sim.lead.jobs.values())
        if len(jobs) == 6 and {job.state for job in jobs} == {JobState.INACTIVE}:
            break
    site.step(2)
    assert len(jobs) == 6, "none is lost"
    assert {job.state for job in jobs} == {JobState.INACTIVE}
    tally = script.saw[-1].tally
    assert (tally.success, tally.events["submit"], tally.events["start"]) == (6, 6, 6)
    script.says = MemberDecision(end=True, why="done")
    site.step(6)
    assert site.sim.engine.snapshot.records.live == []


WIDE = {"name": "wide", "command": "run", "count": 2, "nodes": 2}
FAR = [
    {**each, "mode": "isolated", "jobs": [*JOBS["jobs"], WIDE], "max": 4}
    for each in MEMBERS
]
FAR_DECISIONS = st.builds(
    MemberDecision,
    nodes=st.none() | st.integers(-2, 9),
    submit=st.lists(st.sampled_from(["md", "wide"]), max_size=3).map(tuple),
)
HAPPENS = [
    "step",
    "step",
    "restart",
    "before",
    "after",
    "lost",
    "end",
    "hiccup",
    "full",
]
FAR_STEPS = st.lists(st.tuples(st.sampled_from(HAPPENS), FAR_DECISIONS), max_size=12)


class FarStory:
    """An isolated member, and which bursts each of its jobs has had begun."""

    def __init__(self) -> None:
        self.site = EnsembleSite(modes=BOTH, limits={"cooldown": "20s"})
        self.runs: dict[Any, set[Any]] = {}
        self.size = 0
        self.script: Scripted = self.site.up(members=FAR)["a"]

    def act(self, what: str) -> None:
        """One step of the daemon; programs end only in those that are called so."""
        sim = self.site.sim
        sim.provider.ends_with = 0 if what == "end" else None
        sim.provider.next_answer_lost = what == "hiccup"
        sim.cloud.full = what == "full"
        act(self.site, "step" if what in ("end", "hiccup", "full") else what)
        self.check()

    def check(self) -> None:
        """What always holds."""
        records = self.site.sim.engine.snapshot.records
        begun = set(self.site.sim.cloud.begun)
        for burst in records.bursts.values():
            if burst.id in begun:
                self.runs.setdefault(burst.lease.isolated_job, set()).add(burst.id)
        assert all(len(bursts) == 1 for bursts in self.runs.values()), "a job ran twice"
        assert len(begun) == len(self.site.sim.cloud.begun), "a program began twice"
        live = sum(burst.lease.nodes for burst in records.live)
        # A member that shrinks has more than its size until jobs end.
        assert live <= max(self.site.member("a").nodes, self.size) <= 4
        self.size = live
        assert len(self.site.lead.names) <= 8


@pytest.mark.no_cover
@settings(deadline=None, max_examples=8)
@given(FAR_STEPS)
def test_isolated_no_job_twice_no_node_too_many_and_nothing_left(
    steps: list[tuple[str, MemberDecision]],
) -> None:
    story = FarStory()
    site, script = story.site, story.script
    for what, decision in steps:
        script.says = decision
        story.act(what)
    script.says = MemberDecision(submit=("md",) * 6 + ("wide",) * 2, nodes=4)
    jobs: list[Any] = []
    for _ in range(40):
        story.act("end")
        jobs = list(site.sim.lead.jobs.values())
        if len(jobs) == 8 and {job.state for job in jobs} == {JobState.INACTIVE}:
            break
    site.step(2)
    assert len(jobs) == 8, "none is lost"
    assert {job.result for job in jobs} == {"completed"}
    assert len(story.runs) == 8, "each has run"
    tally = script.saw[-1].tally
    assert (tally.success, tally.events["submit"], tally.events["start"]) == (8, 8, 8)
    script.says = MemberDecision(end=True, why="done")
    site.step(6)
    assert site.sim.engine.snapshot.records.live == []
    assert not site.sim.cloud.bursts
