# SPDX-License-Identifier: MIT
"""What must hold in the simulated world, after each step or after each tick.

use       a live burst has a job that runs on it or will start on it, or a request, or
          is idle for less than its deadline; each waiting state ends
apart     where users are kept apart, no job begins on nodes of another user's burst
harm      nothing of ours blocks another job, and no job that is not ours is touched
disjoint  no rank is in two live leases, and no host exists twice
limits    are not passed by anything new
isolation one provider, user, record or RPC never ends the daemon or quarantines others
bounded   records, calls and ticks
recorded  all that exists is on record; nothing is reaped under a job
once      no demand is bursted twice, no isolated job runs twice
money     nothing bought takes a budget past its limit, of all, a user or a bank; each
          burst is settled once
trial     what had failed is tried by one burst at a time
told      each pending job has a verdict; one that fits no node is told of none, and
          none is told that no host will do where one is declared
unread    while the lead is not read no deadline runs, and no work is booked
asked     a provider is asked for no more than it says it has, and again for what a
          burst had that has gone (`scarcity.py`)
standing  a refusal that was not looked at again is what it would be if it were

What must hold in the end (liveness, and that nothing is left) is in `ending.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec

from burst.core.burst_actions import next_deadline
from burst.core.jobs.refusal_cache import without_refusals
from burst.core.money.budget import Budgets
from burst.core.obstacles import AGAIN_S
from burst.core.plan.capacity import usable_nodes
from burst.core.plan.catalog import coming_bursts, running_trials
from burst.core.plan.fit import nodes_needed
from burst.core.plan.offers import drain_time
from burst.core.plan.slots import DRAIN_TAG
from burst.core.provider_health import FailureKind, FailureRecord
from burst.core.tick import run_tick
from burst.errors import RecordUnreadable
from burst.model.burst import State
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.model.record import decode_record
from burst.model.request import BurstPreferences
from tests.machine.finality import wrongly_excluded
from tests.machine.money import Spending
from tests.machine.scarcity import Scarcity
from tests.machine.world import OWN, World

# A record of the few jobs of one interleaving; one is at most 64 KiB in production.
RECORD_MOST = 16 * 1024
# An online burst on which nothing runs is given up after so long whatever was hoped
# for; the sum of all deadlines that may follow each other, in seconds.
IN_VAIN = 400.0
STOPPED = 100.0
"""The daemon was stopped (SIGSTOP) that did not look for so long, in seconds."""
_COUNTED_ON = (State.NEW, State.PROVISION, State.JOIN, State.ONLINE)
_ENDING = (State.DRAIN, State.REAP)
# What a job is told for which there are nodes, or will be.
_PROMISES = (
    *(Reason.LOCAL, Reason.PROPOSED, Reason.ASSIGNED, Reason.GROWING, Reason.COMING),
    *(Reason.RELEASED, Reason.RESERVED, Reason.ISOLATED_ACTIVE),
)


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, name: str, what: str, story: str = ""):
        super().__init__(f"{name}: {what}\n{story}")
        self.name = name
        self.what = what


class Since:
    """For how long something has been so, of which only healthy ticks count."""

    def __init__(self) -> None:
        self._ticks: dict[Any, list[float]] = {}

    def note(self, keys, now: float) -> None:
        """Note of what it is so now; of all else it is not."""
        # Kept: the first two ticks, and the last two.
        old = {key: self._ticks.get(key, []) for key in keys}
        self._ticks = {k: [*seen[:2], *seen[2:][-1:], now] for k, seen in old.items()}

    def ticks(self, key) -> int:
        return len(self._ticks.get(key, ()))

    def lasting(self, key, seconds: float) -> bool:
        """Tell whether it was so for longer, from the second tick to the last but one.

        The daemon may see it at the second, and in the last it may be just so again.
        """
        seen = self._ticks.get(key, ())
        return len(seen) > 3 and seen[-2] - seen[1] > seconds

    def clear(self) -> None:
        self._ticks = {}


class Invariants:
    """Looks at a world, and raises Broken."""

    def __init__(self, world: World):
        self.world = world
        self._spending = Spending(world)
        self._scarcity = Scarcity(world)
        self.reaped_under_a_job: list[str] = []
        self.taken_back: set[int] = set()
        """Jobs of which the user had his say, so that they may run twice by him."""
        self.enlarged: Counter[str] = Counter()
        """How often a person had each burst grow, be it for less than a tick."""
        self._partly: set[str] = set()
        """Bursts that were counted on by a job that lacked a part."""
        self._awaiting: set[str] = set()
        """Bursts that some job could have started on."""
        self._unneeded, self._unused = Since(), Since()
        self._ready, self._waits, self._blocked = Since(), Since(), Since()
        self._deadlines = Since()
        self._before: dict[str, frozenset[JobId]] = {}
        self._sizes: dict[str, int] = {}
        self._help: dict[int, int] = {}
        self._left: dict[str, tuple[State, float]] = {}
        """Of bursts: in which state, and how long it might last, when the lead was
        read last."""
        self._worked: dict[str, tuple[float, float]] = {}
        """Of bursts: until when its time was counted, and how much was work."""
        self._read_at, self._missed, self._boots = -math.inf, True, 0
        """When the lead was read last, whether it could not be since, and by which
        daemon."""
        self.healthy = 0

    def watch_reaps(self):
        """Note each burst that a provider is told to delete under a job."""
        for provider in self.world.providers.values():
            provider.reap = self._watched(provider, provider.reap)
            provider.resize = self._watched_resize(provider, provider.resize)

    def _watched(self, provider, reap):
        def watched(burst_id):
            used = self.world.lead.ranks_used_by()
            burst = provider._mine().get(burst_id)
            if burst and any(rank in used for rank in burst.spec.ranks):
                self.reaped_under_a_job.append(burst_id)
            reap(burst_id)

        return watched

    def _watched_resize(self, provider, resize):
        def watched(spec):
            used = self.world.lead.ranks_used_by()
            burst = provider._mine().get(spec.burst_id)
            known = burst.spec.ranks if burst else ()
            if any(rank in used for rank in set(known).difference(spec.ranks)):
                self.reaped_under_a_job.append(spec.burst_id)
            resize(spec)

        return watched

    # Around a tick.

    def before_tick(self):
        world = self.world
        self._before = {b.id: b.jobs for b in world.live}
        self._sizes = {b.id: b.lease.nodes for b in world.live}
        self._worked = {
            name: (entry.at, entry.spent.work)
            for name, entry in world.records.entries.items()
        }
        self._help = self._help_on_the_way()
        self._scarcity.before_tick()

    def after_tick(self, healthy: bool, storing: bool = True):
        """`storing`: the store takes records. All else may be healthy without it."""
        self.healthy = self.healthy + 1 if healthy else 0
        self._spending.note()
        self._new()
        self._trials()
        self._minimums()
        self._limits()
        for name, holds, what in self._scarcity.after_tick():
            self.must(name, holds, what)
        self._unread()
        if self.world.scenario.get("standing"):
            self._standing()
        if not healthy:
            self.count_anew()
            return
        self._use(storing)
        if storing:
            self._harm()
            self._told()

    def _unread(self):
        """What was under way when the lead was read last has as long to go as then."""
        world = self.world
        snapshot = world.engine.snapshot
        if snapshot.now != world.now:
            return
        if snapshot.world.lead is None:
            self._missed = True
            return
        begins = world.boots != self._boots
        away = self._missed or world.now - self._read_at > STOPPED
        if away and not begins:
            for burst in world.bursts:
                state, left = self._left.get(burst.id, (None, 0.0))
                # It is drained as its lease ends, whoever was away.
                lease, drain = burst.lease, world.settings.deadlines.drain
                over = drain_time(lease.created, lease.end, drain) < world.now
                late = (
                    left > 1.0
                    and not over
                    and any(
                        event.timestamp == world.now
                        and event.context.get("type") == "timeout"
                        for event in burst.events
                    )
                )
                text = f"{burst.id} had {left:g} s left to {state}"
                self.must("unread", not late, text)
        if (away or begins) and not world.stepped:
            self._no_work_unread()
        self._read_at, self._missed, self._boots = world.now, False, world.boots
        started, now = world.lead.known.started, world.now
        self._left = {
            b.id: (b.state, next_deadline(b, world.settings, started, now) - now)
            for b in world.live
        }

    def _no_work_unread(self):
        """No more was booked than jobs had of it since its time was counted."""
        for name, entry in self.world.records.entries.items():
            burst, known = self.world.records.bursts.get(name), self._worked.get(name)
            if burst is None or known is None or burst.lease.isolated:
                continue
            at, before = known
            jobs = self.world.lead.jobs.values()
            most = sum(
                len(job.ran_on.intersection(burst.lease.ranks))
                * max(0.0, (job.t_finish or entry.at) - max(at, job.t_start))
                for job in jobs
            )
            more = entry.spent.work - before
            text = f"{name} has {more:g} node-seconds of work, and jobs had {most:g}"
            self.must("unread", more <= most + 0.01, text)

    def count_anew(self):
        """Forget for how long anything has been so, as no daemon could see it."""
        for since in (self._unneeded, self._unused, self._ready, self._blocked):
            since.clear()
        self._deadlines.clear()
        self._waits.clear()

    def anytime(self):
        self._apart()
        self._disjoint()
        self._recorded()
        self._isolation()
        self._once()
        self._money()
        largest = self.world.lead.disk.largest
        self.must(
            "bounded", largest <= RECORD_MOST, f"a record of {largest} characters"
        )

    def must(self, name: str, holds: object, what: str):
        if not holds:
            raise Broken(name, what, self.world.story())

    # One by one.

    def _apart(self):
        """Not of jobs from before: what was not confined when it came is so later."""
        lead = self.world.lead
        begun, lead.new = lead.new, []
        for job, ranks in begun if lead.apart else ():
            if job.confined_to is None and lead.confines:
                continue
            for burst in self.world.live:
                its = burst.lease.userids
                fits = (
                    not its or job.userid in its or ranks.isdisjoint(burst.lease.ranks)
                )
                what = f"job {job.id} of user {job.userid} runs on {burst.id} of {its}"
                self.must("apart", fits, what)

    def _use(self, storing: bool):
        """Nothing idle is kept. While nothing can be stored, nothing else is begun."""
        world = self.world
        deadlines = world.settings.deadlines
        users = world.lead.ranks_used_by()
        live = [b for b in world.live if not b.quarantined and not b.lease.isolated]
        online = [b for b in live if b.state is State.ONLINE]
        used = {b.id for b in live if any(r in users for r in b.lease.ranks)}
        pending = {job.id for job in world.lead.pending()}
        up = {b.id for b in online if b.lost_since is None}
        ready = set()
        for job in pending:
            bursts = [b for b in live if job in b.jobs]
            request = world.lead.jobs[job].request
            # What a person has drained is none that the job could have.
            drained = world.lead.drained.keys()
            there = sum(len(b.expected - drained) for b in bursts)
            # One that lacks a part is held, and gives its part back by a deadline.
            whole = request is not None and there >= request.nodes
            if bursts and whole and all(b.id in up for b in bursts):
                ready.add(job)
                self._awaiting.update(b.id for b in bursts)
            if not whole:
                self._partly.update(b.id for b in bursts)
        self._ready.note(ready, world.elapsed)
        late = {j for j in ready if self._ready.lasting(j, deadlines.release + 1.0)}
        stuck = late if storing else set()
        unneeded = [
            b for b in live if b.id not in used and not b.jobs & (pending - stuck)
        ]
        coming = [
            b.id for b in unneeded if b.state in _COUNTED_ON[:3] and b.lease.userids
        ]
        # What a person makes larger ahead of jobs is idle from then on.
        online = [b for b in online if not b.coming]
        idle = [b.id for b in unneeded if b in online and not self._is_kept(b)]
        self._unneeded.note([*coming, *idle], world.elapsed)
        idling = [b for b in online if b.id not in used and not self._is_kept(b)]
        unused = {b.id: self._uses(b) for b in idling}
        self._unused.note(unused.values(), world.elapsed)
        for burst in coming if storing else ():
            held = self._unneeded.ticks(burst) >= 3 and self._unneeded.lasting(burst, 5)
            self.must("use", not held, f"{burst} comes, and no job needs it")
        told = world.engine.snapshot.decisions.values()
        reserves = any(decision.reason is Reason.RESERVED for decision in told)
        took = {b.id: _time_to_make(b) for b in online if reserves}
        for burst in idle:
            # That a job counted on it for a while, and ran elsewhere, is no use. One
            # that the job with a reservation is to have may stay for as long as it
            # took to make.
            held = self._unneeded.ticks(burst) >= 3
            limit = max(deadlines.idle, took.get(burst, 0.0)) + 1.0
            # A job that lacks a part may keep the rest for as long as that, once: it is
            # idle from when it was given back, or from before the job came.
            # Both deadlines are seen to be over by the next tick, in 5 s at most.
            limit += deadlines.complete + 10.0 if burst in self._partly else 0.0
            # For so long a released job is waited for, and it may have come before.
            limit += deadlines.release if burst in self._awaiting else 0.0
            held = held and self._unused.lasting(unused[burst], limit)
            self.must("use", not held, f"{burst} is idle past its deadline")
        if not storing:
            return
        for burst, key in unused.items():
            held = self._unused.lasting(key, IN_VAIN)
            self.must("use", not held, f"nothing has run on {burst} for long")
        self._states(live, users)

    def _is_kept(self, burst):
        site = self.world.sites.get(burst.lease.provider, {})
        return bool(burst.lease.standing and site.get("keeps"))

    def _minimums(self):
        """Not more is made for a standing minimum than it lacks."""
        known = self._before.keys() | self.world.spoiled
        there = [b for b in self.world.live if b.state in _COUNTED_ON]
        for name, site in self.world.sites.items():
            its = [b for b in there if b.lease.provider == name and b.lease.standing]
            new = [burst.id for burst in its if burst.id not in known]
            nodes = sum(burst.lease.nodes for burst in its)
            fits = not new or nodes <= site.get("keeps", 0)
            self.must("once", fits, f"{new} are made, so that {nodes} nodes stand")

    def _uses(self, burst):
        """Return what changes when something begins on a burst, or is to by a person.

        Of a job that began and ended between two looks nobody can tell where it ran.
        """
        begun = self.world.lead.begun
        ran = [job for job, times in burst.sums.recent if times.started is not None]
        on_ranks = sum(begun.get(rank, 0) for rank in burst.lease.ranks)
        return burst.id, on_ranks, len(ran), self.enlarged[burst.id]

    def _states(self, live, users):
        """Each waiting state ends by its deadline."""
        settings = self.world.settings
        join = settings.deadlines.join
        # That of both providers.
        provision = settings.provision_limit("a")
        ends = {
            State.NEW: 1.0,
            State.PROVISION: provision,
            State.JOIN: join,
        }
        waits = {(b.id, b.state) for b in live if b.state in ends}
        grows = {b.id for b in live if b.coming}
        waits |= {(burst, State.ONLINE) for burst in grows}
        ends[State.ONLINE] = provision + join
        # A provider that hangs delays no deadline.
        self._deadlines.note(waits, self.world.elapsed)
        for burst, state in waits:
            held = self._deadlines.lasting((burst, state), ends[state] + 1.0)
            self.must("use", not held, f"{burst} stays in {state.value}")
        quiet = {
            b.id
            for b in live
            if b.state is State.DRAIN and not any(r in users for r in b.lease.ranks)
            if not self._is_cleaned(b)
        }
        self._waits.note(quiet, self.world.elapsed)
        for burst in quiet:
            held = self._waits.lasting(burst, 10.0)
            self.must(
                "use", not held, f"{burst} stays in drain, and nothing runs on it"
            )

    def _is_cleaned(self, burst):
        """Tell whether housekeeping runs on it, for which it is waited so long."""
        began = self.world.lead.housekeeping
        limit = self.world.settings.deadlines.housekeeping + 2 * AGAIN_S
        return any(began.get(r, 0) > self.world.now - limit for r in burst.lease.ranks)

    def _harm(self):
        """No job that we could hold stands in Flux's queue for ranks that are down."""
        world, lead = self.world, self.world.lead
        up = lead.online - set(lead.drained)
        blocked = set()
        for job in lead.waiting():
            ours = (
                job.id not in lead.plain
                and job.request
                and job.id not in self.taken_back
            )
            if not ours or world.is_obeyed(job) or lead.mode == "scheduler":
                continue
            if (
                lead.is_feasible(job)
                and len(lead.admitted(job) & up) < job.request.nodes
            ):
                blocked.add(job.id)
        self._blocked.note(blocked, world.elapsed)
        for job in blocked:
            held = self._blocked.lasting(job, 5.0)
            self.must("harm", not held, f"job {job} blocks the queue for absent ranks")
        touched = set(lead.touched) & lead.plain
        self.must("harm", not touched, f"jobs {touched} are not burstable")

    def _told(self):
        snapshot = self.world.engine.snapshot
        view = snapshot.world.lead
        if view is None:
            return
        silent = [
            job.id
            for job in view.jobs.values()
            if job.state is JobState.SCHED and job.id not in snapshot.decisions
        ]
        self.must("told", not silent, f"jobs {silent} have no verdict")
        excluded = wrongly_excluded(self.world)
        self.must("told", not excluded, f"jobs {excluded} are told that no host does")
        shapes = set(self.world.lead.known.shapes)
        promised = [
            job
            for job, decision in snapshot.decisions.items()
            if decision.reason in _PROMISES
            and (request := view.jobs[job].request) is not None
            and not any(nodes_needed(request, shape) for shape in shapes)
        ]
        self.must(
            "told", not promised, f"jobs {promised} fit no node, and are to start"
        )

    def _limits(self):
        world = self.world
        limits, live, jobs = world.settings.limits, world.live, world.lead.jobs
        users: Counter[int] = Counter()
        grown: set[int] = set()
        for burst in live:
            if not burst.lease.userids:
                continue  # requested ahead of jobs: nobody bears it
            given = burst.jobs - world.running_at_look
            its = {jobs[job].userid for job in given} | set(burst.lease.userids)
            users.update(dict.fromkeys(its, burst.lease.nodes))
            before = self._before.get(burst.id)
            if before is None:
                grown |= its
            else:
                bore = {jobs[job].userid for job in before} | set(burst.lease.userids)
                grown |= its - bore
        most = limits.max_nodes_per_user
        for user in grown:
            fits = not most or users[user] <= most
            self.must("limits", fits, f"user {user} has {users[user]} nodes of {most}")
        known = self._before.keys() | world.spoiled
        new = [
            b
            for b in live
            if b.id not in known or b.lease.nodes > self._sizes.get(b.id, 99)
        ]
        if not new:
            return
        nodes = sum(b.lease.nodes for b in live)
        fits = not limits.max_nodes or nodes <= limits.max_nodes
        self.must("limits", fits, f"{nodes} nodes, max_nodes {limits.max_nodes}")
        fits = not limits.max_bursts or len(live) <= limits.max_bursts
        self.must("limits", fits, f"{len(live)} bursts, max_bursts {limits.max_bursts}")
        most = limits.max_nodes_per_burst
        for burst in new:
            fits = not most or burst.lease.nodes <= most
            self.must("limits", fits, f"{burst.id} has {burst.lease.nodes} of {most}")

    def _new(self):
        """A new burst is for jobs that lack nodes: not helped twice, not running."""
        world = self.world
        for burst in world.live:
            for job in burst.jobs - self._before.get(burst.id, frozenset()):
                view = world.lead.jobs[job]
                if job in world.running_at_look and view.t_start:
                    continue  # Flux has started it there by itself
                self._lease_is_long_enough(burst, view)
                if burst.id in self._before or burst.quarantined:
                    continue
                assert view.request is not None
                need = nodes_needed(view.request, burst.lease.shape)
                ended = any(
                    job in b.jobs
                    # Also where a growth for it has failed.
                    and (b.state in _ENDING or b.quarantined or b.leaving)
                    for b in world.bursts
                )
                displaced = any(
                    job in self._before.get(b.id, ())
                    and (self._taken(b, job) or self._shrank_below(b))
                    for b in world.live
                )
                enough = self._help.get(job, 0) >= need and not ended
                enough = enough and not displaced
                self.must("once", not enough, f"{burst.id} is a second for job {job}")
            vain = burst.id not in self._before and burst.jobs
            vain = (
                vain
                and burst.id not in world.spoiled
                and burst.jobs <= world.running_at_look
                and not burst.lease.isolated
            )
            # One that has waited long enough gets a burst at the next moment.
            vain = vain and any(self._is_patient(job) for job in burst.jobs)
            self.must("use", not vain, f"{burst.id} is made for jobs that run already")
            if burst.id not in self._before and burst.id not in world.spoiled:
                needless = self._alone_on_own_nodes() & burst.jobs
                what = f"{burst.id} is made for {needless}, and own nodes are free"
                self.must("use", not needless, what)

    def _alone_on_own_nodes(self):
        """Return the only job that waits, if own nodes are free and it is to wait.

        They are free for it where a person has stopped the queues, for one.
        """
        lead = self.world.lead
        waiting = [j for j in self.world.jobs(JobState.SCHED) if j.urgency or j.queue]
        held = [j for j in lead.pending() if self.world.is_held_by_us(j)]
        (job, *others) = {j.id: j for j in [*waiting, *held]}.values() or (None,)
        if others or job is None or job.queue or not job.request:
            return frozenset()
        broken = lead.drained.keys() | lead.housekeeping.keys()
        free = set(OWN) & lead.online - lead._used() - broken & lead.admitted(job)
        enough = sum(lead.holds(job, rank) for rank in free) >= job.request.nodes
        plain = job.preferences in (BurstPreferences(), BurstPreferences(urgency=16))
        alone = enough and plain and self._is_patient(job.id)
        return frozenset({job.id}) if alone else frozenset()

    def _trials(self):
        """What failed gets one burst, or those of one job, until that is online."""
        world, coming = self.world, coming_bursts(self.world.live)
        for name in running_trials(world.records.health, coming, world.now):
            provider, _, offer = name.partition("/")
            row = world.records.health[provider].row(FailureKind.OFFER, offer)
            aside = row or FailureRecord(0)
            tries = [
                burst
                for burst in coming
                if burst.lease.provider == provider
                and offer in {"", burst.lease.offer}
                and burst.lease.nodes >= aside.nodes
            ]
            known = self._before.keys() | world.spoiled
            new = [burst for burst in tries if burst.id not in known]
            requested = not any(burst.lease.userids for burst in new)
            its = [frozenset(burst.jobs) for burst in new]
            one = requested or bool(frozenset.intersection(*its))
            fits = not new or (len(new) == len(tries) and one)
            self.must("trial", fits, f"{[b.id for b in tries]} all try {name}")

    def _is_patient(self, job):
        patience = self.world.settings.intake.local_wait
        view = self.world.lead.jobs[job]
        waited = self.world.now - max(view.t_submit, view.t_eligible)
        return view.preferences.wait is None and waited < patience

    def _lease_is_long_enough(self, burst, job):
        end, limit = burst.lease.end, job.duration
        if not end or not limit:
            return
        late = self.world.now + limit - end
        self.must("use", late <= 0, f"job {job.id} ends {late:g} s after {burst.id}")

    def _standing(self):
        """What was not looked at again is what it would be if it were."""
        last = self.world.engine.snapshot
        again = (last.records, last.world, last.settings, last.now + 0.01)
        # What has changed is looked at once the pause after the last pass is over.
        cache = last.refusal_cache
        cache = cache and msgspec.structs.replace(cache, pause=0.0)
        quick = run_tick(*again, cache)
        slow = run_tick(*again, without_refusals(cache))
        same = quick.records == slow.records and quick.actions == slow.actions
        self.must("standing", same, "decisions differ")
        # A job that may be starting at this moment is left alone in either way.
        starting = {j for j, v in slow.decisions.items() if v.reason is Reason.STARTING}
        verdicts = [
            {j: v.reason for j, v in decided.decisions.items() if j not in starting}
            for decided in (quick, slow)
        ]
        self.must(
            "standing", verdicts[0] == verdicts[1], f"verdicts differ: {verdicts}"
        )

    def _disjoint(self):
        ranks = Counter(r for b in self.world.live for r in b.lease.ranks)
        twice = [rank for rank, count in ranks.items() if count > 1]
        self.must("disjoint", not twice, f"ranks {twice} are in two live leases")
        declared = self.world.lead.known.hosts
        for burst in self.world.live:
            lease = burst.lease
            right = lease.isolated or lease.hosts == tuple(
                declared[rank] for rank in lease.ranks
            )
            self.must("disjoint", right, f"{burst.id} has {lease}")
            known = len({host.rpartition("-")[0] for host in lease.hosts})
            one = lease.isolated or known == 1
            self.must("disjoint", one, f"{burst.id} has ranks of several slots")
        strays = self.world.strays
        hosts = Counter(
            host
            for _, key, burst in self.world.made()
            if key[2] not in strays
            for host in burst.made
        )
        twice = [host for host, count in hosts.items() if count > 1]
        self.must("disjoint", not twice, f"hosts {twice} exist twice")

    def _recorded(self):
        world = self.world
        records = world.lead.disk.records
        for _, key, _burst in world.made():
            name = key[2]
            if name in world.strays:
                continue
            text = records.get(f"burst/{name}")
            self.must("recorded", text is not None, f"{name} exists without a record")
            assert text is not None
            try:
                record = decode_record(text)
            except RecordUnreadable:
                self.must("recorded", name in world.spoiled, f"{name} is unreadable")
                continue
            self.must(
                "recorded", record.lease.id == name, f"{name} has another's record"
            )
            self.must("recorded", f"entry/{name}" in records, f"{name} has no entry")
            reaped = "reaped" in [event.name for event in record.events]
            self.must("recorded", not reaped, f"{name} exists, and was reaped")
        under = self.reaped_under_a_job
        self.must("recorded", not under, f"{under} were reaped under a job")

    def _isolation(self):
        world = self.world
        found = [
            b.id
            for b in world.bursts
            if b.quarantined
            and b.id not in world.spoiled
            and b.lease.place not in world.left
        ]
        self.must("isolation", not found, f"{found} are quarantined")
        disabled = {n for n, health in world.records.health.items() if health.disabled}
        disabled -= world.refusing
        self.must("isolation", not disabled, f"{disabled} are disabled for one spec")
        ours = {r: why for r, why in world.lead.drained.items() if r in OWN}
        ours = {r: why for r, why in ours.items() if why.startswith(DRAIN_TAG)}
        self.must("isolation", not ours, f"we drained {ours}")

    def _once(self):
        world = self.world
        jobs = {
            b.id: b.lease.isolated.job
            for b in world.bursts
            if b.lease.isolated and b.lease.isolated.job
        }
        begun: Counter[JobId] = Counter()
        for cloud in world.clouds.values():
            begun.update(jobs[burst] for burst in cloud.begun if burst in jobs)
        twice = [job for job, times in begun.items() if times > 1]
        self.must("once", not twice, f"jobs {twice} were begun twice elsewhere")
        both = [
            job
            for job in begun
            if job not in self.taken_back and world.lead.jobs[job].state is JobState.RUN
        ]
        self.must("once", not both, f"jobs {both} run here and elsewhere")

    def _money(self):
        """All that lives is reserved for; what has ended is settled, once.

        Beside what bursts have cost that lived longer than their deadlines allow.
        """
        world, records = self.world, self.world.records
        live = {b.id for b in world.live if b.id not in world.spoiled}
        self.must("money", live <= records.entries.keys(), "a burst has no entry")
        ended = {b.id for b in world.bursts if not b.live} - world.spoiled
        twice = ended & records.entries.keys()
        self.must("money", not twice, f"{twice} ended and are not settled")
        self.must("money", ended <= records.settled.keys(), "no row of what ended")
        settled = list(records.settled.values())
        sums = sum(period.total.total for period in records.periods.values())
        rows = sum(each.costs.total for each in settled)
        self.must("money", sums == rows, f"settled are {sums}, the rows are {rows}")
        count = sum(period.bursts for period in records.periods.values())
        self.must("money", count == len(settled), f"{count} of {len(settled)} settled")
        late = sum(each.grown for each in settled)
        self._spending.note()
        for state in Budgets(world.settings.budget, records, {}, world.now).states():
            counts, bought = self._spending.used(state)
            text = f"{state.budget}: {counts} are used, not {state.used}"
            self.must("money", counts == state.used, text)
            text = f"{state.budget}: {bought - late} of {state.limit} bought"
            self.must("money", bought - late <= state.limit, text)

    def _help_on_the_way(self):
        """Nodes that each pending job can count on before the tick."""
        view = self.world.engine.snapshot.world.lead
        help_: dict[int, int] = {}
        if view is None:
            return {}
        for burst in self.world.live:
            if burst.state in _COUNTED_ON:
                lost = len(self.world.lead.drained.keys() & set(burst.lease.ranks))
                most = burst.lease.nodes - lost
                its = min(most, usable_nodes(burst, view))
                for job in burst.jobs:
                    help_[job] = help_.get(job, 0) + its
        return help_

    def _taken(self, burst, job):
        """The ranks of a burst that a job has lost to others that it is not for."""
        ours = self._spending.given(burst.id) | {job}
        jobs = self.world.lead.jobs.items()
        others = [other.ranks for number, other in jobs if number not in ours]
        return frozenset(burst.lease.ranks).intersection(frozenset().union(*others))

    def _shrank_below(self, burst):
        """Tell whether a burst has shrunk below what its jobs needed together."""
        if not any(event.name == "shrunk" for event in burst.events):
            return False
        jobs = (self.world.lead.jobs[job] for job in self._before[burst.id])
        waits = (job.request for job in jobs if job.state is not JobState.INACTIVE)
        needs = (nodes_needed(each, burst.lease.shape) for each in waits if each)
        return sum(needs) > burst.lease.nodes


def _time_to_make(burst):
    """Return how long it took from `provision` to online, in seconds."""
    times = {event.name: event.timestamp for event in burst.events}
    return times["online"] - times["provision-start"]
