# SPDX-License-Identifier: MIT
"""An engine with a fake lead and a fake cloud whose followers join that lead."""

from __future__ import annotations

from burst.core import burst_requests, burst_story, commands
from burst.core.job_report import explain
from burst.core.plan.slots import find_slots
from burst.core.records import jobs_on_record
from burst.model.burst import State
from burst.model.request import BurstPreferences
from burst.runtime.engine import Engine
from burst.runtime.engine_config import EngineConfig
from burst.runtime.side_threads import NO_SIDE_THREADS
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from tests.builders import LENT, NODE, T0, settings, whole
from tests.fakes import FakeLead, HandExecutor, has_failed


class Sim:
    """Runs everything by hand: `tick` is one tick of all of it, a second long."""

    provider_type = FakeProvider

    def __init__(
        self,
        lead=None,
        nodes=8,
        capacity=1_000,
        modes=("joined",),
        total=0,
        *,
        provision="15m",
        **tables,
    ):
        self.now = T0
        self.lead = lead or FakeLead()
        self.cloud = FakeCloud()
        ours = {"type": "fake", "provision": provision}
        self.tables = {"providers": {"local": ours}, **tables}
        self.fake_settings = FakeSettings(
            max_nodes=nodes, shape=NODE, capacity=capacity, modes=modes, total=total
        )
        self.joins = True
        self.fails = False
        """Whether the test is about a daemon that fails as it decides."""
        self.enabled = True
        self.beside = NO_SIDE_THREADS
        self.boot()

    @classmethod
    def at_rest(cls, *parts, **tables):
        """Make one whose provider has told its offers."""
        made = cls(*parts, **tables)
        made.tick(2)
        return made

    def clock(self):
        """What the clock shows to calls of the provider."""
        return self.now

    def boot(self):
        """Start the daemon (again), with nothing but the store to remember by."""
        self.settings = settings(**self.tables)
        known = self.lead.identity()
        self.provider = self.provider_type(
            "local", self.fake_settings, known.owner, self.cloud
        )
        self.executor = HandExecutor(self.clock)
        self.engine = Engine(
            self.lead, self.config(), self.executor, self.now, self.beside
        )
        self.lead.listen(
            lambda: None, lambda: jobs_on_record(self.engine.snapshot.records)
        )

    def config(self, **changes):
        """What the engine goes by, with these parts changed."""
        known = self.lead.identity()
        parts = {
            "settings": self.settings,
            "identity": known,
            "slots": find_slots(known),
            "providers": {"local": self.provider} if self.enabled else {},
        }
        return EngineConfig(**parts | changes)

    def change(self, **changes):
        """Have the engine go on by another configuration, as after a reload."""
        self.engine.change(self.config(**changes))

    def tick(self, ticks=1, seconds=1.0):
        for _ in range(ticks):
            self.now += seconds
            self.lead.now = self.now
            self.executor.pump()
            self.meet()
            self.lead.schedule()
            self.engine.tick(self.now)
            assert self.fails or not has_failed(self.engine.snapshot), "see the log"
            self.lead.schedule()

    def meet(self):
        """Followers that run join the lead; those that are gone leave it."""
        known = self.lead.known
        ranks = {host: rank for rank, host in enumerate(known.hosts)}
        there = {ranks[host] for host in self.cloud.followers() if host in ranks}
        own = {rank for rank, host in enumerate(known.hosts) if host[:4] == "lead"}
        for rank in self.lead.online - own - there:
            self.lead.lose(rank)
        if self.joins:
            running = self.provider.running()
            self.lead.online |= {ranks[host] for host in running if host in ranks}

    def until(self, reached, ticks=60, seconds=1.0):
        """Tick until something is so; fail if it does not come."""
        for _ in range(ticks):
            if reached():
                return
            self.tick(seconds=seconds)
        assert reached(), self.story()

    @property
    def records(self):
        return self.engine.snapshot.records

    @property
    def bursts(self):
        return list(self.records.bursts.values())

    @property
    def live(self):
        return [burst for burst in self.bursts if burst.live]

    @property
    def burst(self):
        """The one burst there is."""
        (found,) = self.bursts
        return found

    def state(self):
        return self.burst.state

    def names(self, burst=None):
        """The events of a burst, by name."""
        return [event.name for event in burst_story.known_events(burst or self.burst)]

    def in_state(self, state: State):
        return lambda: bool(self.bursts) and self.bursts[-1].state is state

    def submit_lent(self, nodes, **changes):
        """Submit a job that runs on lent nodes only, as `flux submit --burst` does."""
        return self.lead.submit(
            whole(nodes, constraint=LENT),
            urgency=0,
            preferences=BurstPreferences(urgency=16),
            **changes,
        )

    def run_job(self, request=None, **changes):
        """Submit a job, of four whole nodes by default; return it once it runs."""
        job = self.lead.submit(request or whole(4), **changes)
        self.until(lambda: job in self.lead.running())
        return job

    def end_job(self, job):
        """End a job that runs, and tick until its burst is gone."""
        self.lead.finish(job)
        self.until(self.in_state(State.INACTIVE))

    def decision(self, job):
        """What the last tick decided about a job."""
        return self.engine.snapshot.decisions[job]

    def told(self, job):
        """What the memo of a job says of why it waits."""
        return self.lead.memos[job]["why"]

    def explained(self, job):
        """What `burst explain` has of a job."""
        snapshot = self.engine.snapshot
        row = explain(snapshot.records, snapshot.world, snapshot.decisions, job)
        assert row is not None
        return row

    def ask(self, command):
        """Have a command carried out in the next tick; return its answer."""
        answer = self.engine.post(command)
        self.tick()
        return answer.result(0)

    def request(self, demand):
        """What `burst request` does."""
        return self.ask(lambda tx: burst_requests.make_requested_burst(tx, demand)[0])

    def take_down(self, name, note="odd", provider=""):
        """What `burst down` does."""
        asked = commands.TakeDown(name, note, provider)
        return self.ask(lambda tx: commands.take_down_any(tx, asked))

    def story(self):
        return "\n".join(
            f"{b.id} {e.timestamp - T0:g} {e.name} {e.context}"
            for b in self.bursts
            for e in burst_story.known_events(b)
        )
