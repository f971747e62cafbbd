# SPDX-License-Identifier: MIT
"""What can happen: users, persons, providers, the lead, the store, and the daemon.

Each step is a method of Steps with the values that each of its arguments may have. It
can be taken in any state of the world, where it may do nothing: so any part of an
interleaving is one, too, and those that fail can be shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, NamedTuple

import msgspec

from burst.core import burst_requests, commands
from burst.core.resize_request import WantedSize, resize_burst
from burst.errors import (
    InsufficientCapacity,
    JobspecError,
    Refused,
    SpecRefused,
    StoreError,
    Transient,
    Unreadable,
)
from burst.model.burst import Isolated, State
from burst.model.lead import JobState
from burst.model.request import (
    BurstPreferences,
    parse_duration,
    parse_preferences,
    parse_request,
)
from tests.builders import whole
from tests.fakes import Crash
from tests.machine.hostile import JOBSPECS
from tests.machine.invariants import Invariants
from tests.machine.world import OWN, World

ERRORS: dict[str, Callable[[], Exception]] = {
    "busy": lambda: Transient("busy"),
    "later": lambda: Transient("quota", "wait", retry_after=5.0),
    "none": lambda: InsufficientCapacity("none"),
    "refused": lambda: Refused("no"),
    "denied": lambda: SpecRefused("a policy denies it"),
    "forbidden": lambda: SpecRefused("a rule forbids it", by_rule=True),
    "bug": lambda: OSError("bug"),
}
CALLS = ("offers", "provision", "observe", "reap", "resize")
_OF_ONE_SPEC = ("provision", "resize")
"""Calls of which a SpecRefused is of that spec alone."""
DELAYS = ("listed_after", "starts_after", "ends_after", "listed_still")
CONSTRAINTS = (
    "",
    '{"properties":["burst"]}',
    '{"hostlist":["burst-1-[0-3]"]}',
    '{"hostlist":["burst-0-3"]}',
    '{"and":[{"properties":["burst"]},{"not":[{"hostlist":["burst-0-0"]}]}]}',
)
WISHES = (
    BurstPreferences(),
    BurstPreferences(where="together"),
    BurstPreferences(provider="a"),
    BurstPreferences(provider="b"),
    BurstPreferences(max_price=1.0),
    BurstPreferences(wait=0.0),
)
BANKS = ("", "physics", "maths")
RPCS = (
    *("hold", "release", "tell", "drain", "undrain", "store", "observe", "fail"),
    *("move", "lend", "jobspec", "finish", "confine", "sweep"),
)
CHANGES: tuple[dict[str, dict[str, Any]], ...] = (
    {"limits": {"max_nodes": 8, "max_bursts": 3}},
    {"limits": {"max_nodes": 4, "max_bursts": 1}},
    {"limits": {"max_nodes_per_user": 4}},
    {"limits": {"max_nodes_per_user": 0}},
    {"limits": {"max_nodes_per_burst": 2}},
    {"limits": {"max_nodes_per_burst": 0}},
    {"intake": {"mode": "hold"}},
    {"intake": {"mode": "queue"}},
    {"intake": {"mode": "scheduler"}},
    {"lead": {"slots": ["burst-0-[0-1]", "burst-0-[2-3]", "burst-1-[0-3]"]}},
    {"lead": {"slots": ["burst-0-[0-3]", "burst-1-[0-3]"]}},
    {"plan": {"share_users": True}},
    {"plan": {"share": False, "spread": False}},
    {"plan": {"share": True, "spread": True, "share_users": False}},
    {"deadlines": {"lease": "300s"}},
    {"providers": {"a": {"enabled": False}}},
    {"providers": {"a": {"enabled": True}}},
    {"providers": {"b": {"enabled": False}}},
    {"providers": {"b": {"enabled": True}}},
    {"providers": {"a": {"place": "elsewhere"}}},
    {"providers": {"a": {"place": "a"}}},
)
GARBAGE: tuple[Any, ...] = (None, 7, "text", [None], [{"name": "nodes"}], [object()])


class Step(NamedTuple):
    """One kind of step: how often it is taken, and what its arguments can be."""

    weight: int
    values: dict[str, Sequence[Any]]


STEPS: dict[str, Step] = {}


def step(weight: int, **values: Sequence[Any]):
    """Declare a method as a step."""

    def declare(method):
        STEPS[method.__name__] = Step(weight, values)
        return method

    return declare


_ANY = range(8)


class Steps:
    """Takes steps in a world, and looks at the invariants after each."""

    def __init__(self, scenario: dict[str, Any]):
        self.world = World(scenario)
        self.invariants = Invariants(self.world)
        self.invariants.watch_reaps()
        self.answers: list[Any] = []
        self.tick(1.0)
        self.tick(1.0)

    def take(self, name: str, arguments: dict[str, Any]) -> None:
        """Take one step. Raises Broken, and whatever the daemon raises."""
        getattr(self, name)(**arguments)
        self.invariants.anytime()

    # Users.

    @step(
        9,
        nodes=[1, 2, 2, 3, 4, 4, 5, 8, 9],
        user=[1, 2, 3],
        wish=range(len(WISHES)),
        constraint=[0, 0, 1, 2, 3, 4],
        duration=[0.0, 30.0, 300.0],
        held=[False, True],
    )
    def submit(self, nodes, user, *, wish=0, constraint=0, duration=0.0, held=False):
        """As `flux submit --setattr=burstable`, or `--burst`, which submits it held."""
        asked = WISHES[wish]
        urgency = 16
        if held:
            asked, urgency = msgspec.structs.replace(asked, urgency=16), 0
        request = whole(nodes, constraint=CONSTRAINTS[constraint])
        self._submit(
            request, user, preferences=asked, urgency=urgency, duration=duration
        )

    @step(3, nodes=[1, 1, 2, 4], seconds=[5.0, 15.0, 60.0], held=[False, True])
    def submit_later(self, nodes, seconds, *, held=False):
        """`--begin-time`, or a dependency: Flux's scheduler gets it after that."""
        wish = BurstPreferences(urgency=16 if held else 0)
        urgency = 0 if held else 16
        job = self._submit(whole(nodes), 2, preferences=wish, urgency=urgency)
        self.world.lead.put_off(job, seconds)

    @step(3, nodes=[1, 1, 2])
    def submit_plain(self, nodes):
        """A job that is not burstable."""
        lead = self.world.lead
        lead.plain.add(lead.submit(whole(nodes), userid=9))

    @step(3, nodes=[1, 3, 4], duration=[0.0, 20.0], held=[True, False])
    def submit_isolated(self, nodes, duration, held):
        wish = BurstPreferences(mode="isolated", urgency=16 if held else 0)
        urgency = 0 if held else 16
        self._submit(
            whole(nodes), 1, preferences=wish, urgency=urgency, duration=duration
        )

    @step(2, nodes=[1, 2], cores=[3, 9], whole_nodes=[True, False])
    def submit_wide(self, nodes, cores, *, whole_nodes):
        """`-N nodes -c cores`, or as many slots of a core on each of so many nodes.

        No own node has 3 cores, and none at all has 9.
        """
        request = whole(nodes, cores_per_slot=cores)
        if not whole_nodes:
            slots = nodes * cores
            request = whole(nodes, slots=slots, exclusive=False)
        self._submit(request, 1, preferences=BurstPreferences())

    @step(2, kind=sorted(JOBSPECS), user=[1, 2])
    def submit_hostile(self, kind, user):
        """A jobspec that Flux accepts, and that is made to harm."""
        spec = JOBSPECS[kind]
        lead = self.world.lead
        fields: dict[str, Any] = {"request": None}
        try:
            fields = {
                "request": parse_request(spec),
                "preferences": parse_preferences(spec),
                "duration": parse_duration(spec),
            }
        except JobspecError as error:
            fields["unreadable"] = str(error)
        job = lead.submit(**fields, userid=user, queue=self._queue())
        lead.specs[job] = spec

    @step(3, job=_ANY, urgency=[0, 8, 16, 16, 20])
    def user_changes_urgency(self, job, urgency):
        found = self._one(self.world.jobs(JobState.SCHED), job)
        if found:
            self.invariants.taken_back.add(found.id)
            self.world.lead.change(found.id, urgency=urgency)

    @step(4, job=_ANY, result=["completed", "canceled"])
    def job_ends(self, job, result):
        found = self._one(self.world.jobs(JobState.SCHED, JobState.RUN), job)
        if found:
            self.world.lead.finish(found.id, result)

    @step(4)
    def running_jobs_end(self):
        for job in self.world.jobs(JobState.RUN):
            self.world.lead.finish(job.id)

    @step(1, job=_ANY, duration=[0.0, 10.0, 1000.0])
    def user_updates_duration(self, job, duration):
        found = self._one(self.world.jobs(JobState.SCHED), job)
        if found:
            self.world.lead.change(found.id, duration=duration)

    @step(2, job=_ANY)
    def prolog_fails(self, job):
        """Of a job that has lent nodes only: Flux drains them, and the job fails."""
        running = self.world.jobs(JobState.RUN)
        found = self._one([j for j in running if not j.ranks & set(OWN)], job)
        if found:
            self.world.lead.fail_prolog(found.id)

    @step(2, runs=[True, False], deaf=[0, 0, 1, 2])
    def housekeeping_is_slow(self, runs, deaf):
        """After each job from now on it runs on lent nodes until a signal ends it."""
        lead = self.world.lead
        hosts = range(len(lead.known.hosts))
        lead.cleans = tuple(rank for rank in hosts if runs and rank not in OWN)
        lead.fatal_signals = ((9, 15), (9,), ())[deaf]

    @step(2)
    def housekeeping_ends(self):
        self.world.lead.housekeeping.clear()

    @step(2)
    def flux_schedules(self):
        self.world.lead.schedule()

    # A person with the command line.

    @step(3, nodes=[1, 2, 4, 5], provider=["", "", "a", "zz"])
    def request(self, nodes, provider):
        self._ask(self._ahead(burst_requests.request_nodes, nodes, provider))

    @step(1, kind=["interactive", "command"])
    def request_isolated(self, kind):
        isolated = Isolated(kind=kind)
        self._ask(self._ahead(burst_requests.request_isolated, 1, "", isolated))

    @step(3, burst=_ANY)
    def down(self, burst):
        live = [b for b in self.world.bursts if b.live]
        found = self._one(live, burst)
        if found:
            self._ask(taking_down(found.id))

    @step(8, burst=_ANY, nodes=[0, 1, 1, 2, 3, 4, 4, 5])
    def resize(self, burst, nodes):
        """`burst resize`; most that are asked for it are not online, or not so wide."""
        online = [b for b in self.world.live if b.state is State.ONLINE]
        found = self._one(online, burst)
        if found:
            self._ask(resizing(found.id, nodes, self.invariants.enlarged))

    @step(1)
    def release_all(self):
        """`burst release --all`: then the jobs are their users', wherever they run."""
        pending = self.world.jobs(JobState.SCHED)
        self.invariants.taken_back.update(job.id for job in pending)

        def let_go(tx):
            commands.release_jobs(tx, commands.held_jobs(tx))

        self._ask(let_go)

    @step(2, name=["a", "b"])
    def enable(self, name):
        self._ask(enabling(name))

    @step(1, stopped=[True, False, False])
    def person_stops_queues(self, stopped):
        self.world.lead.stopped = stopped

    # Followers and providers.

    @step(2, rank=_ANY)
    def follower_joins(self, rank):
        running = [h for p in self.world.providers.values() for h in p.running()]
        ranks = sorted({self.world.rank(host) for host in running} - {-1})
        found = self._one(ranks, rank)
        if found:
            self.world.lead.online.add(found)

    @step(2, rank=_ANY)
    def follower_dies(self, rank):
        found = self._one(sorted(self.world.lead.online - set(OWN)), rank)
        if found:
            self.world.lead.lose(found)

    @step(2, joins=[True, False])
    def network(self, joins):
        self.world.joins = joins

    @step(2, burst=_ANY, fails=[True, False])
    def cloud_loses(self, burst, fails):
        """What exists fails or vanishes; of isolated ones, what is known to be made.

        Of what is lost before we heard that it was made, nobody would know.
        """
        making = {b.id for b in self.world.bursts if b.state.value == "provision"}
        made = [
            (provider, name)
            for provider in self.world.providers.values()
            for name, found in provider._mine().items()
            if not (found.spec.program and name in making)
        ]
        chosen = self._one(made, burst)
        if chosen:
            provider, name = chosen
            provider.fail(name, "crash loop") if fails else provider.lose(name)

    @step(2, burst=_ANY, host=[0, 1], again=[True, False])
    def follower_ends(self, burst, host, again):
        """One of several ends in order, unasked, as where its host is maintained.

        `again`: its provider is to start another one (`cloud_restores`).
        """
        chosen = self._one(self._joined(), burst)
        if chosen:
            provider, name, found = chosen
            hosts = found.spec.hosts
            if len(hosts) > 1 and hosts[host] in found.made:
                if again:
                    provider.evict(name, hosts[host], "was evicted")
                else:
                    provider.end(name, hosts[host])

    @step(2, burst=_ANY, host=[None, 0, 1], ends=[True, False])
    def cloud_reclaims(self, burst, host, ends):
        """The cloud takes back all nodes of a burst or one, as those of spot offers."""
        chosen = self._one(self._joined(), burst)
        if chosen:
            provider, name, found = chosen
            hosts = () if host is None else found.spec.hosts[host : host + 1]
            if host is None or hosts:
                provider.reclaim(name, hosts, ends=ends)

    @step(2, burst=_ANY)
    def cloud_restores(self, burst):
        """What was taken back is started elsewhere."""
        made = [
            (provider, name)
            for provider in self.world.providers.values()
            for name, found in provider._mine().items()
            if (found.reclaimed or found.evicted)
            and not found.failed
            and found.ends_in is None
        ]
        chosen = self._one(made, burst)
        if chosen:
            chosen[0].restore(chosen[1])

    @step(4, name=["a", "b"], error=sorted(ERRORS), call=CALLS)
    def provider_fails(self, name, error, call):
        provider = self.world.providers.get(name)
        if provider:
            setattr(provider, f"next_{call}_error", ERRORS[error]())
            one_spec = error in ("denied", "forbidden") and call in _OF_ONE_SPEC
            if not one_spec:  # what it may be disabled for
                self.world.refusing.add(name)

    @step(2, name=["a", "b"], knob=DELAYS, count=range(4))
    def provider_is_slow(self, name, knob, count):
        provider = self.world.providers.get(name)
        if provider:
            setattr(provider, knob, count)

    @step(2, name=["a", "b"], lost=[True, False], only=[None, 0, 1])
    def provider_breaks_off(self, name, lost, only):
        provider = self.world.providers.get(name)
        if provider:
            provider.next_answer_lost, provider.build_only = lost, only

    @step(1, name=["a", "b"], only=[None, None, 0, 1, 3])
    def some_never_start(self, name, only):
        provider = self.world.providers.get(name)
        if provider:
            provider.starts_only = only

    @step(1, name=["a", "b"], hangs=[True, False])
    def provider_hangs(self, name, hangs):
        hung = self.world.executor.hung
        hung.add(name) if hangs else hung.discard(name)

    @step(2, name=["a", "b"], capacity=[0, 2, 4, 100, 100])
    def capacity_changes(self, name, capacity):
        if name in self.world.providers:
            self.world.set_capacity(name, capacity)

    @step(1, status=[0, 1, None], runs_for=range(3))
    def programs_end(self, status, runs_for):
        for provider in self.world.providers.values():
            provider.ends_with, provider.runs_for = status, runs_for

    # The lead, the store, time, and the daemon itself.

    @step(2, unreadable=[True, False, False], deaf=[True, False, False])
    def lead_is_troubled(self, unreadable, deaf):
        self.world.lead.unreadable = unreadable
        self.world.lead.deaf = deaf

    @step(3, lagging=[True, False])
    def journal_lags(self, lagging):
        self.world.lead.lagging = lagging

    @step(2, full=[True, True, False])
    def store_is_full(self, full):
        self.world.lead.disk.full = full

    @step(1)
    def provider_answers_one(self):
        if self.world.executor.tasks:
            self.world.executor.step()

    @step(26, seconds=[0.1, 1.0, 1.0, 7.0, 40.0])
    def tick(self, seconds):
        """One tick of everything; what does not work keeps it from being healthy."""
        world, lead = self.world, self.world.lead
        self.invariants.before_tick()
        silences = lead.silence.came
        ended = False
        with suppress(StoreError, Unreadable):
            world.tick(seconds)
            ended = True
        troubled = lead.unreadable or lead.deaf or lead.stopped
        unanswered = lead.silence.came > silences
        # A store that takes nothing is no reason to do nothing.
        healthy = not troubled and not unanswered and (ended or lead.disk.full)
        self.invariants.after_tick(healthy, storing=not lead.disk.full)

    @step(2, seconds=[200.0, 1000.0], ends=[True, False], dies=[True, False])
    def daemon_is_away(self, seconds, *, ends, dies):
        """It gets SIGSTOP, and SIGCONT after a while, or is dead; all else goes on.

        Half of that time later the jobs end that run.
        """
        world = self.world
        world.now += seconds / 2
        world.lead.now = world.now
        if ends:
            self.running_jobs_end()
        if dies:
            world.now += seconds / 2
            self._reboot()
            self.invariants.count_anew()
            return
        self.invariants.before_tick()
        with suppress(StoreError, Unreadable):
            world.tick(seconds / 2)
        self.invariants.after_tick(healthy=False)

    @step(3, ticks=[2, 3, 5])
    def time_passes(self, ticks):
        for _ in range(ticks):
            self.tick(1.0)

    @step(1, when=["before", "after"])
    def crash_at_a_write(self, when):
        disk = self.world.lead.disk
        disk.crash = when
        self.invariants.before_tick()
        try:
            with suppress(StoreError, Unreadable):
                self.world.tick()
        except Crash:
            self._reboot()
        else:
            # With nothing to write it was a tick as any other.
            self.invariants.after_tick(healthy=False)
        disk.crash = ""

    @step(1, done=[True, False])
    def crash_at_a_call(self, done):
        """The provider was asked; whether it heard, nobody knows."""
        if done:
            self.world.executor.pump()
        self._reboot()

    @step(1, seconds=[-7200.0, -60.0, 45.0, 3600.0])
    def clock_is_set(self, seconds):
        """The daemon sees it and starts anew; what has so long to live still has."""
        self._jump(lambda: self.world.set_clock(seconds))

    @step(1, seconds=[60.0, 400.0, 7200.0], ends=[True, False])
    def machine_is_suspended(self, seconds, *, ends):
        """That of the daemon and the lead: followers and clouds go on.

        To the daemon it is a step of the clock. What followers have of their leases is
        less by so much than it believes: some end before it has them go.
        """
        self._jump(lambda: self.world.suspend(seconds))
        if ends:
            self.running_jobs_end()

    def _jump(self, clock):
        before = self._ages()
        clock()
        self._reboot()
        after = self._ages()
        other = {key for key in before.keys() & after if before[key] != after[key]}
        self.invariants.must("clock", not other, f"{other} have another time left")

    def _ages(self) -> dict[tuple[str, ...], tuple[int, int]]:
        """Return how old each live burst is in its state, and how long it has to live.

        By burst and events: what the store has may lack some of them, or have others.
        """
        now = self.world.now
        return {
            (burst.id, *(event.name for event in burst.events)): (
                round(now - burst.since),
                round(burst.lease.end - now) if burst.lease.end else 0,
            )
            for burst in self.world.live
            if burst.id not in self.world.spoiled
        }

    @step(3, change=range(len(CHANGES)), reload=[True, False])
    def settings_change(self, change, reload):
        """A reload happens wholly or not at all; a restart drops what is under way."""
        world = self.world
        tables, sites = deepcopy(world.tables), deepcopy(world.sites)
        for table, values in CHANGES[change].items():
            if table == "providers":
                for name, site in values.items():
                    if name in world.sites:
                        world.sites[name] |= site
            else:
                world.tables[table] |= values
        if not reload:
            self._reboot()
        elif world.reload():
            self.invariants.watch_reaps()
        else:
            world.tables, world.sites = tables, sites

    @step(3, rpc=RPCS, took_effect=[True, False])
    def rpc_is_not_answered(self, rpc, took_effect):
        self.world.lead.silence.next[rpc] = took_effect

    @step(2, name=["a", "b"], call=["offers", "observe"], kind=range(len(GARBAGE)))
    def provider_answers_garbage(self, name, call, kind):
        if name in self.world.providers:
            self.world.garbage[name, call] = GARBAGE[kind]

    @step(1, name=["a", "b"], burst=["burst-0-000000", "burst-9-abcdef", "x" * 70])
    def stray_appears(self, name, burst):
        """Something bears our tag that no record explains."""
        if name in self.world.providers:
            self.world.make_stray(name, burst)

    @step(1, burst=_ANY, text=["", "{", "null", '{"version":99}', "\\x00"])
    def record_is_spoiled(self, burst, text):
        """Somebody wrote into the store while no daemon ran."""
        kinds = ("burst/", "job/")
        keys = [k for k in self.world.lead.disk.records if k.startswith(kinds)]
        key = self._one(sorted(keys), burst)
        if key:
            self.world.spoiled.add(key.split("/")[1])
            self.world.lead.disk.records[key] = text
            self._reboot()

    @step(1, rank=range(10), drains=[True, False])
    def person_drains(self, rank, drains):
        lead = self.world.lead
        if drains:
            lead.drained.setdefault(rank, "broken fan")
        elif lead.drained.get(rank) == "broken fan":
            del lead.drained[rank]

    @step(2, seconds=[3.0, 10.0])
    def coast(self, seconds):
        """Nothing happens; the daemon runs ticks when it says that they are due."""
        world = self.world
        end, ticks = world.now + seconds, 0
        calls = world.executor.calls.copy()
        while world.now < end:
            ticks += 1
            woken = bool(world.executor.tasks) and not world.executor.hung
            pause = 0.01 if woken else world.due - world.now
            self.tick(min(max(pause, 0.0001), end - world.now + 0.01))
            most = 40 + 8 * seconds
            self.invariants.must("bounded", ticks < most, f"{ticks} ticks in a while")
        for name, count in (world.executor.calls - calls).items():
            text = f"{count} calls of {name} in {seconds:g} s"
            self.invariants.must("bounded", count < 30 + 4 * seconds, text)

    # Parts of the above.

    def _submit(self, request, user, **fields):
        queue = self._queue()
        # By turns, so that a user names several, and now and then another's.
        bank = BANKS[len(self.world.lead.jobs) % len(BANKS)]
        job = self.world.lead.submit(
            request, userid=user, queue=queue, bank=bank, **fields
        )
        if fields.get("urgency") == 0 and not fields["preferences"].urgency:
            self.invariants.taken_back.add(job)
        return job

    def _queue(self) -> str:
        return "burst" if self.world.settings.intake.mode == "queue" else ""

    def _joined(self):
        """Return what there is of joined bursts: provider, name, and what it made."""
        return [
            (provider, name, found)
            for provider in self.world.providers.values()
            for name, found in provider._mine().items()
            if not found.spec.program and found.ends_in is None
        ]

    def _one(self, found: Sequence[Any], index: int) -> Any:
        return found[index % len(found)] if found else None

    def _ask(self, command):
        self.answers.append(self.world.engine.post(command))

    def _ahead(self, make, *arguments):
        def ask(tx):
            return burst_requests.make_requested_burst(tx, make(*arguments))[0]

        return ask

    def _reboot(self):
        self.answers = []  # whoever asked sees the connection end
        self.world.boot()
        if self.world.lead.disk.full:  # what was seen and not stored is seen anew
            self.invariants.count_anew()
        self.invariants.watch_reaps()


def taking_down(name, provider=""):
    def ask(tx):
        commands.take_down_any(tx, commands.TakeDown(name, provider=provider))

    return ask


def resizing(name, nodes, enlarged):
    def ask(tx):
        answer = resize_burst(tx, WantedSize(name, nodes))
        enlarged[name] += any(event.name == "grow" for _, event in tx.events)
        return answer

    return ask


def enabling(name):
    def ask(tx):
        commands.enable_provider(tx, name)

    return ask
