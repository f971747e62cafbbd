# SPDX-License-Identifier: MIT
"""What never happens, whatever happens: a machine of faults, users and crashes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from burst.core import commands
from burst.core.demand import nodes_needed
from burst.core.reconcile import reconcile
from burst.core.room import capacity
from burst.core.slots import DRAIN_TAG
from burst.errors import (
    InsufficientCapacity,
    Refused,
    StoreError,
    Transient,
)
from burst.model.burst import State
from burst.model.lead import JobState
from burst.model.record import decode_record
from tests.build import whole
from tests.conftest import COUNTS
from tests.fakes import Crash
from tests.sim import Sim

MAX_NODES = 6
MAX_BURSTS = 3
PENDING = (JobState.SCHED,)
FAULTS = st.sampled_from(
    [Transient("busy"), InsufficientCapacity("none"), Refused("no"), OSError("bug")]
)


class WhatNeverHappens(RuleBasedStateMachine):
    """Each example is one interleaving; a crash starts the daemon from the store."""

    modes: tuple[str, ...] = ("joined",)

    def __init__(self):
        super().__init__()
        COUNTS["interleavings of faults, users and crashes"] += 1
        self.reaped_under_a_job = []
        self.sim = Sim(
            modes=self.modes,
            deadlines={
                "idle": "20s",
                "join": "30s",
                "provision": "60s",
                "rejoin": "20s",
                "drain": "60s",
            },
            limits={"max_nodes": MAX_NODES, "max_bursts": MAX_BURSTS},
            intake={"patience": "30s"},
        )
        self.watch_reaps()
        self.turn(1.0)
        self.turn(1.0)

    # Users.

    @rule(nodes=st.sampled_from([1, 3, 3, 4, 5, 9]), userid=st.sampled_from([1, 2]))
    def submit(self, nodes, userid):
        self.sim.lead.submit(whole(nodes), userid=userid)

    @precondition(lambda self: self.jobs(PENDING))
    @rule(data=st.data(), urgency=st.sampled_from([0, 8, 16, 20]))
    def user_changes_urgency(self, data, urgency):
        job = data.draw(st.sampled_from(self.jobs(PENDING)))
        self.sim.lead.change(job, urgency=urgency)

    @precondition(lambda self: self.jobs((JobState.SCHED, JobState.RUN)))
    @rule(data=st.data(), result=st.sampled_from(["completed", "canceled"]))
    def job_ends(self, data, result):
        jobs = self.jobs((JobState.SCHED, JobState.RUN))
        self.sim.lead.finish(data.draw(st.sampled_from(jobs)), result)

    @rule()
    def flux_schedules(self):
        self.sim.lead.schedule()

    # A person with the command line.

    @rule(nodes=st.integers(1, 5))
    def request(self, nodes):
        def ask(books, world, its_settings, now):
            demand = commands.request_nodes(nodes)
            return commands.burst_ahead(books, world, its_settings, demand, now)

        self.sim.engine.post(ask)

    @precondition(lambda self: self.sim.bursts)
    @rule(data=st.data(), turns=st.integers(0, 4))
    def down(self, data, turns):
        used = [b for b in self.sim.bursts if b.started] or self.sim.bursts
        burst = data.draw(st.sampled_from([b.id for b in used]))

        def ask(books, world, its_settings, now):
            return commands.bring_down(books, burst, "said so", now), None

        self.sim.engine.post(ask)
        self.time_passes(turns)

    @rule()
    def release_all(self):
        def ask(books, world, its_settings, now):
            return commands.let_go(books, commands.held_jobs(books), now), None

        self.sim.engine.post(ask)

    @rule()
    def enable(self):
        def ask(books, world, its_settings, now):
            return commands.enable(books, "local", now), None

        self.sim.engine.post(ask)

    # Followers and the provider.

    @rule(data=st.data())
    def follower_joins(self, data):
        known = self.sim.lead.known
        waiting = [
            rank
            for rank, host in enumerate(known.hosts)
            if host in self.sim.provider.running()
        ]
        if waiting:
            self.sim.lead.online.add(data.draw(st.sampled_from(waiting)))

    @precondition(lambda self: self.sim.lead.online - {0, 1})
    @rule(data=st.data())
    def follower_dies(self, data):
        ranks = sorted(self.sim.lead.online - {0, 1})
        self.sim.lead.lose(data.draw(st.sampled_from(ranks)))

    @rule(joins=st.booleans())
    def network(self, joins):
        self.sim.joins = joins

    @precondition(lambda self: self.sim.cloud.bursts)
    @rule(data=st.data(), fails=st.booleans(), turns=st.integers(0, 4))
    def cloud_loses(self, data, fails, turns):
        burst = data.draw(st.sampled_from(sorted(k[2] for k in self.sim.cloud.bursts)))
        if fails:
            self.sim.provider.fail(burst, "crash loop")
        else:
            self.sim.provider.lose(burst)
        self.time_passes(turns)

    @rule(
        fault=FAULTS, call=st.sampled_from(["offers", "provision", "observe", "reap"])
    )
    def provider_fails(self, fault, call):
        setattr(self.sim.provider, f"next_{call}_error", fault)

    @rule(
        knob=st.sampled_from(
            ["listed_after", "starts_after", "ends_after", "listed_still"]
        ),
        count=st.integers(0, 4),
    )
    def provider_is_slow(self, knob, count):
        setattr(self.sim.provider, knob, count)

    @rule(lost=st.booleans(), only=st.sampled_from([None, 0, 1]))
    def provider_breaks_off(self, lost, only):
        self.sim.provider.next_answer_lost = lost
        self.sim.provider.build_only = only

    # The lead, the store, time, and the daemon itself.

    @rule(unreadable=st.booleans(), deaf=st.booleans())
    def lead_is_troubled(self, unreadable, deaf):
        self.sim.lead.unreadable = unreadable
        self.sim.lead.deaf = deaf

    @rule(full=st.booleans())
    def store_is_full(self, full):
        self.sim.lead.disk.full = full

    @rule()
    def provider_answers_one(self):
        if self.sim.executor.tasks:
            self.sim.executor.step()

    @rule(seconds=st.sampled_from([0.1, 1.0, 7.0, 40.0]))
    def turn(self, seconds):
        before = {b.id for b in self.sim.bursts}
        help_before = self.help_on_the_way()
        try:
            self.sim.tick(seconds=seconds)
        except StoreError:
            return
        self.check_new(before, help_before)
        self.check_standing()

    @rule(turns=st.integers(2, 4))
    def time_passes(self, turns):
        for _ in range(turns):
            self.turn(1.0)

    @rule(when=st.sampled_from(["before", "after"]))
    def crash_at_a_write(self, when):
        self.sim.lead.disk.crash = when
        try:
            self.sim.tick()
        except StoreError:
            self.sim.lead.disk.crash = ""
        except Crash:
            self.reboot()
        self.sim.lead.disk.crash = ""

    @rule(done=st.booleans())
    def crash_at_a_call(self, done):
        """The provider was asked; whether it heard, nobody knows."""
        if done:
            self.sim.executor.pump()
        self.reboot()

    # What must hold at any time.

    @invariant()
    def no_rank_is_leased_twice(self):
        ranks = [r for b in self.sim.bursts if b.live for r in b.lease.ranks]
        assert len(ranks) == len(set(ranks)), self.sim.story()

    @invariant()
    def no_limit_is_passed(self):
        live = [b for b in self.sim.bursts if b.live]
        assert sum(b.lease.nodes for b in live) <= MAX_NODES
        assert len(live) <= MAX_BURSTS

    @invariant()
    def all_that_exists_is_on_record(self):
        records = self.sim.lead.disk.records
        for _, _, burst in self.sim.cloud.bursts:
            record = decode_record(records[f"burst/{burst}"])
            assert record.lease.id == burst
            assert "reaped" not in [event.name for event in record.events]

    @invariant()
    def nothing_is_quarantined(self):
        assert not [b for b in self.sim.bursts if b.quarantined], self.sim.story()

    @invariant()
    def only_our_ranks_are_drained(self):
        assert not {0, 1} & set(self.sim.lead.drained)

    def teardown(self):
        """Heal everything: each intent must end, and nothing of ours remain."""
        sim = self.sim
        lead = sim.lead
        lead.unreadable = lead.deaf = lead.disk.full = False
        lead.disk.crash = ""
        for job in self.jobs((JobState.SCHED, JobState.RUN)):
            lead.finish(job, "canceled")
        sim.joins = True
        provider = sim.provider
        provider.next_offers_error = provider.next_provision_error = None
        provider.next_observe_error = provider.next_reap_error = None
        provider.listed_still = 0
        sim.tick(3)
        sim.until(self.at_rest, turns=300, seconds=20.0)
        assert sim.engine.snapshot.books.holds == {}, sim.story()
        assert not [r for r in lead.drained.values() if r.startswith(DRAIN_TAG)]

    def at_rest(self):
        ended = all(b.state is State.INACTIVE for b in self.sim.bursts)
        undone = any(b.drained for b in self.sim.bursts)
        return ended and not undone and not self.sim.cloud.bursts

    # Parts of the above.

    def jobs(self, states):
        return [j.id for j in self.sim.lead.jobs.values() if j.state in states]

    def reboot(self):
        self.sim.boot()
        self.watch_reaps()

    def watch_reaps(self):
        """Note each burst that the provider is told to delete under a job."""
        sim, provider = self.sim, self.sim.provider
        reap = provider.reap

        def watched(burst_id):
            used = {r for job in sim.lead.jobs.values() for r in job.ranks}
            for key, burst in sim.cloud.bursts.items():
                if key[2] == burst_id and used.intersection(burst.spec.ranks):
                    self.reaped_under_a_job.append(burst_id)
            reap(burst_id)

        sim.provider.reap = watched  # type: ignore[method-assign]

    @invariant()
    def no_allocated_rank_is_reaped(self):
        assert not self.reaped_under_a_job, self.sim.story()

    def help_on_the_way(self):
        """Nodes that each pending job can count on before the tick."""
        if self.sim.lead.unreadable:
            return {}
        view = self.sim.lead.observe()
        counted = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
        nodes: dict[int, int] = {}
        for burst in self.sim.bursts:
            if burst.state in counted:
                for job in burst.jobs:
                    nodes[job] = nodes.get(job, 0) + capacity(burst, view)
        return nodes

    def check_new(self, before, help_before):
        """No demand is bursted twice: a new burst is for jobs that lacked nodes."""
        for burst in self.sim.bursts:
            if burst.id in before or not burst.live:
                continue
            for job in burst.jobs:
                request = self.sim.lead.jobs[job].request
                assert request is not None
                need = nodes_needed(request, burst.lease.shape)
                ended = [
                    b
                    for b in self.sim.bursts
                    if job in b.jobs and b.state in {State.DRAIN, State.REAP}
                ]
                assert help_before.get(job, 0) < need or ended, self.sim.story()

    def check_standing(self):
        """What was not looked at again is what it would be if it were."""
        last = self.sim.engine.snapshot
        again = (last.books, last.world, last.settings, last.now + 0.01)
        quick, slow = reconcile(*again, last.standing), reconcile(*again)
        assert quick.books == slow.books, self.sim.story()
        assert quick.actions == slow.actions, self.sim.story()
        assert {job: v.reason for job, v in quick.verdicts.items()} == {
            job: v.reason for job, v in slow.verdicts.items()
        }, self.sim.story()


# In parts, so that several workers of pytest-xdist have a share. Each draws its own.
PARTS = 4


def _part() -> type:
    part: Any = type("Part", (WhatNeverHappens,), {})
    case = part.TestCase
    case.settings = settings(
        max_examples=2100 // PARTS,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    # With coverage and on a busy machine it is slow, and it does not wait for anything.
    marked: type = pytest.mark.timeout(1200)(case)
    return marked


TestPart1, TestPart2, TestPart3, TestPart4 = (_part() for _ in range(PARTS))
