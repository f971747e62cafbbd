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
WIDE = {"name": "wide", "command": "run", "count": 2, "nodes": 2}
HAPPENS = ["step", "step", "restart", "before", "after", "lost", "end"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from([*HAPPENS, "hiccup", "full"]),
        st.builds(
            MemberDecision,
            nodes=st.none() | st.integers(-2, 9),
            submit=st.lists(st.sampled_from(["md", "wide"]), max_size=3).map(tuple),
        ),
    ),
    max_size=12,
)


class Story:
    """A joined member, of which all jobs are to run once."""

    jobs: tuple[str, ...] = ("md",) * 6
    most = 3

    def __init__(self) -> None:
        self.site = self.begin()

    def begin(self) -> EnsembleSite:
        """Return a site whose ensemble has been started."""
        site = EnsembleSite()
        site.up(members=[{**MEMBER, **JOBS}], **WINDOWS)
        return site

    @property
    def script(self) -> Scripted:
        """The algorithm of the member."""
        found = self.site.algorithms["a"]
        assert isinstance(found, Scripted)
        return found

    def act(self, what: str) -> None:
        """Have something go wrong, and the daemon started again where it died."""
        site = self.site
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
            self.end_jobs()
        self.check()

    def end_jobs(self) -> None:
        """End those that run."""
        for job in self.site.sim.lead.running():
            self.site.end_job(job)

    def check(self) -> None:
        """What always holds."""
        live = [burst for burst in self.site.records.live if burst.lease.tag]
        assert sum(burst.lease.nodes for burst in live) <= self.most
        assert self.site.member("a").nodes in range(self.most + 1)
        # `Submitted` fails for a name that it has already.
        assert len(self.site.lead.names) <= len(self.jobs)

    def play(self, steps: list[tuple[str, MemberDecision]]) -> None:
        """Let that happen, and then all jobs run and the member end."""
        site, script, count = self.site, self.script, len(self.jobs)
        for what, decision in steps:
            mine = tuple(job for job in decision.submit if job in self.jobs)
            script.says = MemberDecision(nodes=decision.nodes, submit=mine)
            self.act(what)
        script.says = MemberDecision(submit=self.jobs, nodes=self.most)
        jobs: list[Any] = []
        for _ in range(40):
            self.act("end")
            jobs = list(site.sim.lead.jobs.values())
            if len(jobs) == count and site.states() == {JobState.INACTIVE}:
                break
        site.step(2)
        assert len(jobs) == count, "none is lost"
        assert {job.result for job in jobs} == {"completed"}
        tally = script.saw[-1].tally
        counts = tally.success, tally.events["submit"], tally.events["start"]
        assert counts == (count,) * 3
        script.says = MemberDecision(end=True, why="done")
        site.step(6)
        assert site.records.live == []


class FarStory(Story):
    """An isolated member, and which bursts each of its jobs has had begun."""

    jobs = (*Story.jobs, "wide", "wide")
    most = 4

    def begin(self) -> EnsembleSite:
        """Return a site whose ensemble has been started."""
        self.runs: dict[Any, set[Any]] = {}
        self.size = 0
        site = EnsembleSite(modes=BOTH, limits={"cooldown": "20s"})
        jobs = [*JOBS["jobs"], WIDE]
        site.up(members=[{**MEMBER, "mode": "isolated", "jobs": jobs, "max": 4}])
        return site

    def act(self, what: str) -> None:
        """One step of the daemon; programs end only in those that are called so."""
        sim = self.site.sim
        sim.provider.ends_with = 0 if what == "end" else None
        sim.provider.next_answer_lost = what == "hiccup"
        sim.cloud.full = what == "full"
        super().act(what)

    def end_jobs(self) -> None:
        """They have ended by themselves."""

    def check(self) -> None:
        """What always holds."""
        super().check()
        begun = set(self.site.sim.cloud.begun)
        for burst in self.site.records.bursts.values():
            if burst.id in begun:
                self.runs.setdefault(burst.lease.isolated_job, set()).add(burst.id)
        assert all(len(bursts) == 1 for bursts in self.runs.values()), "a job ran twice"
        assert len(begun) == len(self.site.sim.cloud.begun), "a program began twice"
        live = sum(burst.lease.nodes for burst in self.site.records.live)
        # A member that shrinks has more than its size until jobs end.
        assert live <= max(self.site.member("a").nodes, self.size)
        self.size = live


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", [Story, FarStory])
@settings(deadline=None, max_examples=8)
@given(STEPS)
def test_no_job_twice_no_node_too_many_and_nothing_left(
    kind: type[Story], steps: list[tuple[str, MemberDecision]]
) -> None:
    story = kind()
    story.play(steps)
    if isinstance(story, FarStory):
        assert len(story.runs) == len(story.jobs), "each has run"
        assert not story.site.sim.cloud.bursts
