# SPDX-License-Identifier: MIT
"""The daemon's engine with all that is around it: a lead, clouds, a store, a clock."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from burst.config import Settings
from burst.core import burst_story
from burst.core.jobs.confinement import confines_jobs, keeps_users_apart
from burst.core.observation import why_out_of_reach
from burst.core.plan.slots import find_slots
from burst.core.records import jobs_on_record
from burst.model.banks import NOT_VERIFIED, Associations, Banks
from burst.model.burst import BurstId, State
from burst.model.hold import HoldState
from burst.model.lead import GuestAccess, JobState
from burst.provider import BurstSpec
from burst.runtime.clock import ClockMark
from burst.runtime.engine import Engine
from burst.runtime.engine_config import EngineConfig
from burst.runtime.executor import run_call
from burst.runtime.side_threads import SideThreads
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from burst.testing.cloud import FakeBurst
from tests.builders import NODE, T0, identity, parse_with_constants
from tests.fakes import HandExecutor, KnownBanks, has_failed
from tests.machine.lead import SimLead

OWN = (0, 1)
_OURS = (HoldState.HOLDING, HoldState.HELD, HoldState.RELEASING)
VERIFIED = Banks(
    Associations(
        {1: frozenset({"physics", "maths"}), 2: frozenset({"maths"})}, {1: "physics"}
    )
)
"""As flux-accounting says where a scenario has `banks`; user 3 has none."""
_PARSED: dict[str, Settings] = {}
STORE_PAUSE = 5.0
"""When the daemon runs the next tick after one that the store refused."""
TABLES: dict[str, dict[str, Any]] = {
    "deadlines": {
        "idle": "20s",
        "join": "30s",
        "rejoin": "20s",
        "drain": "60s",
        "release": "60s",
        "complete": "120s",
        "housekeeping": "20s",
        "reap": "60s",
        "run": "1h",
    },
    "limits": {"max_nodes": 8, "max_bursts": 3, "cooldown": "20s"},
    "intake": {"local_wait": "10s"},
    "plan": {},
    "lead": {},
    "daemon": {},
}
"""What each scenario starts from; deadlines are such that steps pass them."""


class SimExecutor(HandExecutor):
    """Each provider has a worker of its own, so one that hangs delays no other."""

    def __init__(self, clock):
        super().__init__(clock)
        self.hung: set[str] = set()
        self.calls: Counter[str] = Counter()

    def submit(self, task):
        self.calls[task.provider] += 1
        super().submit(task)

    def pump(self):
        """Run the tasks of all providers that answer."""
        while ready := [task for task in self.tasks if task.provider not in self.hung]:
            self.tasks = [task for task in self.tasks if task.provider in self.hung]
            for task in ready:
                self.answers.append(run_call(task, self._clock))


class SimProvider(FakeProvider):
    """Its next answers may be garbage, as the world says."""

    world: World

    def offers(self):
        return self._answer("offers", super().offers())

    def observe(self):
        return self._answer("observe", super().observe())

    def _answer(self, call, right):
        return self.world.garbage.pop((self.name, call), right)


class World:
    """Everything that the steps change and the invariants look at."""

    def __init__(self, scenario: dict[str, Any]):
        self.now = T0 + scenario.get("begins", 0.0)
        self.scenario = scenario
        self.tables = {
            name: {**table, **scenario.get(name, {})} for name, table in TABLES.items()
        }
        self.sites: dict[str, dict[str, Any]] = {
            name: dict(site) for name, site in scenario["providers"].items()
        }
        hosts = scenario.get("hosts", "lead-[0-1],burst-0-[0-3],burst-1-[0-3]")
        access = GuestAccess(allow_guest_user=bool(scenario.get("guests")))
        self.lead = SimLead(known=identity(hosts, access=access))
        self.clouds: dict[str, FakeCloud] = {}
        self.joins = True
        self.strays: set[str] = set()
        """Ids of what bears our tag and was never made by us."""
        self.spoiled: set[str] = set()
        """Bursts of which a record was spoiled."""
        self.refusing: set[str] = set()
        """Providers that have failed at more than one spec."""
        self.left: set[str] = set()
        """Places that a provider was in before it was told to be elsewhere."""
        self.running_at_look: set[int] = set()
        self.garbage: dict[tuple[str, str], Any] = {}
        """What a provider's method returns next, if it is not what it should."""
        self.boots = 0
        self.clock = ClockMark("one boot", 0.0)
        self.stepped = False
        """Whether Flux's times of jobs are by several clocks."""
        self.boot()

    def boot(self):
        """Start the daemon (again), with nothing but the store to remember by."""
        self.boots += 1
        self._note_places()
        self.settings = self._settings()
        self._set_up_lead()
        self.executor = SimExecutor(lambda: self.now)
        self.providers = self._make_providers()
        self.due = self.now
        banks = VERIFIED if self.scenario.get("banks") else NOT_VERIFIED
        beside = SideThreads(banks=KnownBanks(banks))
        self.engine = Engine(self.lead, self._config(), self.executor, self.now, beside)
        self.engine.reload_records(self.now, self.clock)
        self.lead.now = self.now
        self.lead.listen(lambda: None, lambda: jobs_on_record(self.records))

    @property
    def elapsed(self) -> float:
        """Seconds that no step of the clock is a part of."""
        return float(self.now - self.clock.offset)

    def suspend(self, seconds: float) -> None:
        """Have the machine of the daemon sleep: its monotonic clock stands still.

        Of isolated bursts, the lease of those ends meanwhile that are known to be made:
        of what is gone before we heard that it was made, nobody would know.
        """
        making = {burst.id for burst in self.bursts if burst.state is State.PROVISION}
        self._step(seconds)
        programs = [b for _, _, b in self.made() if b.spec.program]
        self._move_leases([b for b in programs if b.spec.burst_id in making], seconds)

    def _step(self, seconds: float) -> None:
        self.now += seconds
        self.lead.now = self.now
        self.stepped = True
        self.clock = ClockMark(self.clock.boot, self.clock.offset + seconds)

    def set_clock(self, seconds: float) -> None:
        """Have the system clock set while no daemon ticks.

        Followers wait for durations: for them, the ends of their leases stay.
        """
        self._step(seconds)
        self._move_leases([burst for _, _, burst in self.made()], seconds)

    def _move_leases(self, bursts, seconds):
        for burst in bursts:
            end = burst.spec.lease_end
            if end:
                later = end + seconds
                burst.spec = msgspec.structs.replace(burst.spec, lease_end=later)

    def reload(self) -> bool:
        """Have the engine go on with other settings; tell whether it may, as Runtime.

        It may not while a provider has live bursts that is gone or elsewhere then.
        """
        places = self._places()
        lost = [b for b in self.live if b.lease.provider not in places]
        if lost or any(why_out_of_reach(b.lease, places) for b in self.live):
            return False
        self._note_places()
        self.settings = self._settings()
        self._set_up_lead()
        self.providers = self._make_providers()
        self.engine.change(self._config())
        return True

    def _set_up_lead(self) -> None:
        """Have the lead as `burst setup` makes it for the settings."""
        settings, lead = self.settings, self.lead
        lead.mode = settings.intake.mode
        lead.confines = confines_jobs(lead.known, settings)
        lead.apart = keeps_users_apart(lead.known, settings)

    def _note_places(self) -> None:
        """Note that bursts may be where their provider will not be."""
        if self._is_elsewhere():
            self.left |= {"fake a", "fake elsewhere"}

    def _is_elsewhere(self) -> bool:
        return any(site.get("place") == "elsewhere" for site in self.sites.values())

    def _config(self) -> EngineConfig:
        known = self.lead.identity()
        return EngineConfig(
            settings=self.settings,
            identity=known,
            slots=find_slots(known, self.settings.lead.slots),
            providers=self.providers,
            places=self._places(),
        )

    def _places(self) -> dict[str, str]:
        return {
            name: f"fake {site.get('place', name)}"
            for name, site in self.sites.items()
            if site.get("enabled", True)
        }

    def _make_providers(self):
        return {
            name: self._provider(name, site)
            for name, site in self.sites.items()
            if site.get("enabled", True)
        }

    def tick(self, seconds: float = 1.0):
        """Let time pass, and then everything and everybody runs once."""
        self.now += seconds
        self.lead.now = self.now
        self.executor.pump()
        self.meet()
        self.lead.settle()
        self.lead.schedule()
        self.running_at_look = {job.id for job in self.jobs(JobState.RUN)}
        self.due = self.now + STORE_PAUSE
        self.due = self.engine.tick(self.now)
        assert not has_failed(self.engine.snapshot), "see the log"
        self.lead.schedule()

    def meet(self):
        """Followers that run join the lead; those that are gone leave it."""
        lead = self.lead
        for cloud, key, burst in self.made():
            if 0 < burst.spec.lease_end < self.now:
                del cloud.bursts[key]
        there = {self.rank(host) for host in self.followers()}
        for rank in lead.online - set(OWN) - there:
            lead.lose(rank)
        if self.joins:
            for provider in self.providers.values():
                lead.online |= {self.rank(host) for host in provider.running()}
            lead.online.discard(-1)

    def rank(self, host: str) -> int:
        """Return the rank of a host; -1 if it is of another instance."""
        hosts = self.lead.known.hosts
        return hosts.index(host) if host in hosts else -1

    def followers(self) -> list[str]:
        """Return the hosts that exist, in all clouds; twice what is there twice."""
        return [
            host
            for cloud in self.clouds.values()
            for burst in cloud.bursts.values()
            for host in burst.made
        ]

    def made(self, place=""):
        """Return what exists, in one place or all: cloud, key in it, and the burst."""
        return [
            (cloud, key, burst)
            for where, cloud in sorted(self.clouds.items())
            if place in {"", where}
            for key, burst in sorted(cloud.bursts.items())
        ]

    @property
    def records(self):
        return self.engine.snapshot.records

    @property
    def bursts(self):
        return list(self.records.bursts.values())

    @property
    def live(self):
        return [burst for burst in self.bursts if burst.live]

    def jobs(self, *states: JobState):
        return [job for job in self.lead.jobs.values() if job.state in states]

    def is_held_by_us(self, job) -> bool:
        hold = self.records.holds.get(job.id)
        return hold is not None and hold.state in _OURS

    def is_obeyed(self, job) -> bool:
        """Tell whether its user took it back from us."""
        hold = self.records.holds.get(job.id)
        return hold is not None and hold.state is HoldState.TAKEN_BACK

    def story(self) -> str:
        """Return what happened to the bursts, and the jobs as they are."""
        events = [
            f"{burst.id} {event.timestamp - T0:g} {event.name} {event.context}"
            for burst in self.bursts
            for event in burst_story.known_events(burst)
        ]
        jobs = []
        for job in self.lead.jobs.values():
            hold = self.records.holds.get(job.id)
            kind = "plain" if job.id in self.lead.plain else ""
            said = self.lead.memos.get(job.id, {}).get("why", "")
            jobs.append(
                f"job {job.id} {kind} {job.state.value} urgency {job.urgency}"
                f" nodes {job.request and job.request.nodes} user {job.userid}"
                f" on {sorted(job.ranks)} {hold.state.value if hold else ''} {said}"
            )
        return "\n".join([f"now {self.now - T0:g}", *events, *jobs])

    def _settings(self):
        providers = {
            name: {
                "type": "fake",
                "provision": "60s",
                "enabled": site.get("enabled", True),
                "standing": [{"nodes": n} for n in [site.get("keeps", 0)] if n],
            }
            for name, site in self.sites.items()
        }
        budget = self.scenario.get("budget", [])
        tables = {**self.tables, "providers": providers, "budget": budget}
        # The same few are asked for again and again, and parsing takes long.
        key = repr(tables)
        if key not in _PARSED:
            _PARSED[key] = parse_with_constants(tables, "machine.toml")
        return _PARSED[key]

    def _provider(self, name: str, site: dict[str, Any]):
        wanted = FakeSettings(
            max_nodes=site.get("max_nodes", 4),
            shape=NODE,
            capacity=site.get("capacity", 1_000),
            total=site.get("total", 0),
            price=site.get("price", 0.0),
            modes=tuple(site.get("modes", ("joined",))),
        )
        cloud = self.clouds.setdefault(site.get("place", name), FakeCloud())
        provider = SimProvider(name, wanted, self.lead.known.owner, cloud)
        provider.world = self
        provider.starts_after = site.get("starts_after", 0)
        return provider

    def make_stray(self, name: str, burst: str):
        """Make something that bears our tag and that no record explains."""
        provider = self.providers[name]
        host = f"{burst}-0"
        spec = BurstSpec(
            burst_id=BurstId(burst),
            owner=provider.owner,
            offer="nodes",
            hosts=(host,),
            ranks=(),
            shape=NODE,
            lead=self.lead.known,
        )
        if self.records.bursts.get(spec.burst_id) is None:
            self.strays.add(burst)
            key = provider.owner, name, spec.burst_id
            provider.cloud.bursts[key] = FakeBurst(spec, made=[host])

    def set_capacity(self, name: str, capacity: int):
        provider = self.providers[name]
        provider.settings = msgspec.structs.replace(
            provider.settings, capacity=capacity
        )
