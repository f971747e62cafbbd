# SPDX-License-Identifier: MIT
"""What never happens to a job that is to run in an isolated burst."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from burst.core import commands
from burst.model.burst import Isolated, State
from burst.model.lead import JobState
from burst.model.request import Wish
from tests.build import whole
from tests.shell.test_crashes import PENDING, WhatNeverHappens


class WhatNeverHappensElsewhere(WhatNeverHappens):
    """The same world, in which jobs run elsewhere too."""

    modes = ("joined", "isolated")

    def __init__(self):
        super().__init__()
        self.taken_back: set[int] = set()

    @rule(nodes=st.sampled_from([1, 3, 3, 4]), duration=st.sampled_from([0.0, 20.0]))
    def submit_isolated(self, nodes, duration):
        """As flux submit --burst does, or so that Flux may be faster than a hold."""
        wish = Wish(mode="isolated", urgency=16 if nodes == 1 else 0)
        urgency = 0 if nodes == 1 else 16
        self.sim.lead.submit(
            whole(nodes), userid=1, wish=wish, urgency=urgency, duration=duration
        )

    @precondition(lambda self: self.jobs(PENDING))
    @rule(data=st.data(), urgency=st.sampled_from([0, 8, 16, 20]))
    def user_changes_urgency(self, data, urgency):
        job = data.draw(st.sampled_from(self.jobs(PENDING)))
        self.taken_back.add(job)
        self.sim.lead.change(job, urgency=urgency)

    @rule()
    def release_all(self):
        self.taken_back.update(self.jobs(PENDING))
        super().release_all()

    @rule(kind=st.sampled_from(["interactive", "command"]))
    def request_isolated(self, kind):
        def ask(books, world, its_settings, now):
            demand = commands.request_isolated(1, "", Isolated(kind=kind))
            return commands.burst_ahead(books, world, its_settings, demand, now)

        self.sim.engine.post(ask)

    @precondition(lambda self: self.known_to_be_made())
    @rule(data=st.data(), fails=st.booleans(), turns=st.integers(0, 4))
    def cloud_loses(self, data, fails, turns):
        """Of what is lost before we heard that it was made, nobody would know."""
        burst = data.draw(st.sampled_from(self.known_to_be_made()))
        if fails:
            self.sim.provider.fail(burst, "crash loop")
        else:
            self.sim.provider.lose(burst)
        self.time_passes(turns)

    def known_to_be_made(self):
        making = {b.id for b in self.sim.bursts if b.state is State.PROVISION}
        return sorted(k[2] for k in self.sim.cloud.bursts if k[2] not in making)

    @rule(status=st.sampled_from([0, 1, None]), runs_for=st.integers(0, 3))
    def programs_end(self, status, runs_for):
        self.sim.provider.ends_with = status
        self.sim.provider.runs_for = runs_for

    @invariant()
    def no_job_runs_twice_elsewhere(self):
        jobs = {
            burst.id: burst.lease.isolated.job
            for burst in self.sim.bursts
            if burst.lease.isolated
        }
        begun = Counter(jobs[burst] for burst in self.sim.cloud.begun if jobs[burst])
        assert not [job for job, times in begun.items() if times > 1], self.sim.story()

    @invariant()
    def no_job_runs_both_here_and_elsewhere(self):
        lead = self.sim.lead
        for burst in self.sim.bursts:
            job = burst.lease.isolated and burst.lease.isolated.job
            if (
                not job
                or job in self.taken_back
                or burst.id not in self.sim.cloud.begun
            ):
                continue
            assert lead.jobs[job].state is not JobState.RUN, self.sim.story()

    def teardown(self):
        """What stays until it is taken down is taken down."""
        self.sim.provider.ends_with = 0
        self.sim.lead.unreadable = self.sim.lead.disk.full = False
        self.sim.lead.disk.crash = ""
        self.sim.tick()
        for burst in self.sim.bursts:
            if burst.live and burst.lease.isolated:
                self.sim.engine.post(_taking_down(burst.id))
        super().teardown()


def _taking_down(name):
    def ask(books, world, its_settings, now):
        return commands.bring_down(books, name, "enough", now), None

    return ask


def _case() -> type:
    case: Any = WhatNeverHappensElsewhere.TestCase
    case.settings = settings(
        max_examples=400,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    marked: type = pytest.mark.timeout(1200)(case)
    return marked


TestElsewhere = _case()
