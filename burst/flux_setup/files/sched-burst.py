# SPDX-License-Identifier: MIT
"""Flux scheduler in which jobs that may burst wait without blocking other jobs.

    flux module load DIR/sched-burst.py [policy=fifo|backfill] [lent=burst]
                                         [log-level=LEVEL]

It is Flux's own sched-fifo or sched-backfill (flux-core 0.84 or later) with one
addition. Ranks with the property `burst` in R are lent: their brokers may be absent. A
burstable job runs either on lent ranks or on the instance's own, never on both:

* It has its place in the shipped scheduler's queue as long as it could run on the own
  ranks that are up, if they were idle, and no burst is on its way for it.
* Otherwise it is stepped over. It keeps its place, blocks no other job, and is never
  denied as infeasible: the burst daemon knows what providers offer, and fails the job
  with the reason if no offer could ever serve it.
* In either case it starts as soon as its lent ranks are up and free, also ahead of an
  own job at the head of the queue, which could not use them.

The shipped code itself serves all other jobs. On an instance with guests they get own
ranks only, whatever constraint they come with: each broker accepts jobs by the table
`[ingest]` of its own file, so a broker without that table lets any job in, and guests
can send requests to all brokers.

The daemon tells which ranks are leased for which jobs by the request `sched-burst.lend`
(owner only): `{"jobs": {"JOBID": IDSET}, "ranks": IDSET}`. Leased ranks are for their
jobs only. Lent ranks without a lease are for any burstable job; on an instance with
guests they are for none, unless the site lets users share bursts (frob-burst.py has the
keys). The last request stays valid across a reload and a restart of the lead.

By `sched-burst.starts` (owner only) the daemon tells when pending jobs are expected to
start: `{"starts": {"JOBID": SECONDS}}`. All pending jobs are annotated with that, as
`sched.t_estimate`. While the daemon tells nothing, the shipped forecast is used.

This file runs in a broker, by Flux's Python, without any other package of ours.
"""

import errno
import heapq
import importlib.util
import json
import os
import sys
import time

try:
    from flux.brokermod import request_handler
    from flux.scheduler import Scheduler  # noqa: F401 - the shipped files need it
except ImportError as error:
    raise ImportError(
        f"{error}; sched-burst needs flux-core 0.84 or later: update it, or let the"
        ' daemon hold jobs instead ([intake] mode = "hold")'
    ) from error
from flux.conf_builtin import conf_builtin_get
from flux.idset import IDset

# The shipped forecast would see all jobs of this queue; in sched-fifo it sees eight.
# Start times are estimated for this many.
_FORECAST = 8
# Seconds for which start times from the daemon are used; it sends them each minute.
_STARTS_S = 150.0
# Most levels of a constraint, and most parts: the frobnicator allows users 32 and 256,
# and adds some.
_DEEPEST, _MOST_PARTS = 40, 320


def _load(path):
    """Import a file whose name is not a valid module name."""
    name = os.path.basename(path).removesuffix(".py").replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_beside = os.path.dirname(__file__)
jobs = _load(os.path.join(_beside, "sched-burst-jobs.py"))
leases = _load(os.path.join(_beside, "sched-burst-leases.py"))
frobnicator = _load(os.path.join(_beside, "frob-burst.py"))


class Lending:
    """The additions to a shipped scheduler; the first base class of BurstScheduler."""

    queue_depth = "unlimited"
    # Whether a job that the shipped schedule() has just started is still in its queue
    # when it yields; interrupted there, it would start the job twice.
    forgets_late = False
    # Most constraints to remember as sound, and shapes of jobs to remember as fitting
    # or not, since users may write any number of them.
    remembers = 10_000

    def __init__(self, h, *args):
        super().__init__(h, *args)
        self._lent = "burst"
        for arg in list(self._pending_args):
            name, _, value = arg.partition("=")
            if name == "lent" and value:
                self._lent = value
                self._pending_args.remove(arg)
        self._bursts = {}  # all pending burst jobs: jobid to jobs.BurstJob
        self._memory = leases.Memory(h)
        self._leases = leases.Leases({})  # from the daemon
        self._apart = True  # until the configuration is read
        self._stale = True  # whether the next three, and the queue, are out of date
        self._own_up = None  # pool of own ranks that are up
        self._lent_up = IDset()
        self._fits = {}  # a burst job's key to whether it fits on those own ranks
        self._sound = set()  # constraints that can be evaluated, or keys of burst jobs
        self._started = set()
        self._passing = self._again = False  # in schedule(), and whether once more
        self._starts = {}  # jobid to seconds since the epoch, from the daemon
        self._starts_end = 0.0  # until when they are used, by the monotonic clock

    @request_handler("config-reload")
    def _handle_config_reload(self, msg):
        """Use the configuration that the lead has read again: it may let guests in."""
        try:
            self.keep_users_apart_by(msg.payload)
        except leases.WRONG as error:
            why = f"[ingest.frobnicator.burst] cannot be read: {error!r}"
            self.handle.respond_error(msg, errno.EINVAL, why)
            return
        self.handle.respond(msg)
        self._request_schedule()

    @request_handler("starts")
    def _handle_starts(self, msg):
        try:
            told = msg.payload["starts"].items()
            self._starts = {int(job): float(at) for job, at in told}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self.handle.respond_error(msg, errno.EINVAL, f"starts: {error!r}")
            return
        self._starts_end = time.monotonic() + _STARTS_S
        self.handle.respond(msg, {})
        self._request_forecast()

    @request_handler("lend")
    def _handle_lend(self, msg):
        def answer(why):
            if why is None:
                self.handle.respond(msg, {})
            else:
                self.handle.respond_error(msg, errno.EIO, f"lend: {why}")

        try:
            told = leases.Leases(msg.payload)
        except leases.WRONG as error:
            self.handle.respond_error(msg, errno.EINVAL, f"lend: {error!r}")
        else:
            self.lend(told)
            self._memory.keep(told, answer)

    def lend(self, told):
        """Use these leases from now on."""
        self._leases, self._stale = told, True
        self._request_schedule()

    def keep_users_apart_by(self, config):
        """Read from the lead's configuration who may use lent ranks without a lease.

        Raises one of leases.WRONG; then nothing is changed.
        """
        self._apart, self._stale = leases.keeps_apart(config), True

    def run(self):
        # Do not wait for the answer: while the module `config` reads files again, it
        # answers nobody until all modules have taken what it read.
        self.handle.rpc("config.get").then(self._take_config)
        try:
            self._leases = self._memory.recall()
        except leases.WRONG as error:
            why = f"{leases.KEY} in the KVS cannot be read: {error!r}"
            self.log.error(why)  # noqa: TRY400 - not logging's
        super().run()

    def _take_config(self, future):
        try:
            self.keep_users_apart_by(future.get())
            self._request_schedule()
        except leases.WRONG as error:
            self.log.error(  # noqa: TRY400 - not logging's
                f"users are kept apart, as the configuration cannot be read: {error!r}"
            )

    # Methods of Flux's Scheduler that a subclass may override.

    def alloc(self, request, jobid, priority, userid, t_submit, jobspec):
        if not jobs.is_burstable(jobspec):
            try:
                jobspec = self._for_own_ranks(jobspec)
            except Exception as error:  # noqa: BLE001 - what a user wrote, in any form
                request.deny(f"cannot evaluate its constraints: {error}")
                return
            super().alloc(request, jobid, priority, userid, t_submit, jobspec)
            return
        queue, self._queue = self._queue, []
        try:
            super().alloc(request, jobid, priority, userid, t_submit, jobspec)
        finally:
            new, self._queue = self._queue, queue
        for job in new:  # none if the jobspec was denied
            try:
                self._check(job.resource_request.constraint)
                burst = jobs.BurstJob(job, self._lent)
                if burst.key not in self._sound:
                    burst.evaluate(self.resources)
                    self._add_sound(burst.key)
            except Exception as error:  # noqa: BLE001 - what a user wrote, in any form
                request.deny(f"cannot evaluate its constraints: {error}")
                return
            self._bursts[jobid] = burst
            if not self._stale and self._stands(burst):
                heapq.heappush(self._queue, job)

    def cancel(self, jobid):
        burst = self._bursts.pop(jobid, None)
        if burst is None or any(job is burst.job for job in self._queue):
            super().cancel(jobid)
        else:
            burst.job.request.cancel()

    def prioritize(self, priorities):
        for jobid, priority in priorities:
            if jobid in self._bursts:
                self._bursts[jobid].job.priority = priority
        super().prioritize(priorities)

    def resource_update(self):
        self._stale = True
        self._sound.clear()
        super().resource_update()

    def feasibility_check(self, msg, jobspec):
        burstable = jobs.is_burstable(jobspec)
        try:
            if burstable:
                self.resources.parse_resource_request(jobspec)
            else:
                jobspec = self._for_own_ranks(jobspec)
        except Exception as error:  # noqa: BLE001 - as the shipped one does
            self.handle.respond_error(msg, errno.EINVAL, str(error))
            return
        if burstable:
            self.handle.respond(msg, None)
        else:
            super().feasibility_check(msg, jobspec)

    def stats_get(self):
        told = {"burst_jobs": len(self._bursts), "policy": self.policy}
        return {**super().stats_get(), **told}

    def schedule(self):
        if self._passing:
            # sched-backfill calls this again for each job that it starts. Calls within
            # calls would end the scheduler at Python's limit of them.
            self._again = True
            return
        if self._bursts:
            if self._stale:
                self._look()
            yield from self._start_lent()
        self._passing = self._again = True
        try:
            while self._again:
                self._again = False
                yield from super().schedule()
                if self._again:
                    yield  # after each start, as sched-fifo does
        finally:
            self._passing = False
            if self.forgets_late and self._started:
                self._queue = [j for j in self._queue if j.jobid not in self._started]
                heapq.heapify(self._queue)
            self._started.clear()

    def forecast(self):
        if time.monotonic() < self._starts_end:
            yield from self._annotate_starts()
            return
        plan = super().forecast()
        if plan is None:
            return
        # The shipped forecast takes its jobs from the queue when it begins.
        queue, self._queue = self._queue, jobs.first(self._queue, _FORECAST)
        try:
            next(plan, None)
        finally:
            self._queue = queue
        yield
        yield from plan

    def _annotate_starts(self):
        """Annotate each pending job with the start that the daemon told, if any.

        A start that has passed while the job is still pending is not used any more.
        """
        now = time.time()
        pending = {job.jobid: job for job in self._queue}
        pending.update((jobid, burst.job) for jobid, burst in self._bursts.items())
        for jobid, job in pending.items():
            at = self._starts.get(jobid)
            at = at if at is not None and at > now else None
            if job._last_annotation != at:
                job._last_annotation = at
                job.request.annotate({"sched": {"t_estimate": at}})
                yield

    def _request_forecast(self):
        # The shipped method does nothing while the queue is empty; it looks at nothing
        # else in the queue before forecast() runs.
        queue, self._queue = self._queue, self._queue or list(self._bursts)
        try:
            super()._request_forecast()
        finally:
            self._queue = queue

    def _request_schedule(self):
        if self._queue:
            super()._request_schedule()
        elif self._bursts:
            self.start_schedule()

    def _try_alloc(self, job, **options):
        done = super()._try_alloc(job, **options)
        if done:
            self._bursts.pop(job.jobid, None)
            self._started.add(job.jobid)
        return done

    def _for_own_ranks(self, jobspec):
        """Return the jobspec by which a job that does not burst is scheduled.

        If users are kept apart, it raises now what an evaluation of the constraint
        raises, so that this cannot happen later: Flux's scheduler would end.
        """
        if not self._apart:
            return jobspec
        narrowed = jobs.without_lent(jobspec, self._lent)
        constraint = narrowed["attributes"]["system"]["constraints"]
        if constraint != jobs.keeping_off(self._lent):
            self._evaluate(constraint)
        return narrowed

    def _evaluate(self, constraint):
        """Raise what a constraint raises on any rank; remember those that are sound."""
        text = json.dumps(constraint, sort_keys=True)
        if text in self._sound:
            return
        self._check(constraint)
        self.resources.to_resource_set().copy_constraint(constraint)
        self._add_sound(text)

    def _add_sound(self, what):
        if len(self._sound) >= self.remembers:
            self._sound.clear()
        self._sound.add(what)

    def _check(self, constraint):
        """Raise ValueError if users are kept apart and this constraint is not valid."""
        if self._apart and constraint:
            size = int(self.handle.attr_get("size"))
            frobnicator.check_constraint(constraint, size, _DEEPEST, _MOST_PARTS)

    # Which burstable jobs are in the shipped scheduler's queue, and which start.

    def _look(self):
        """Find again which ranks are up, and which burst jobs belong in the queue."""
        self._stale = False
        everything = self.resources.to_resource_set()
        down = self.resources.copy_down().ranks
        lent = everything.copy_constraint({"properties": [self._lent]}).ranks
        self._lent_up = lent.difference(down)
        self._own_up = self.resources.copy()
        self._own_up.remove_ranks(down.union(lent))
        self._fits, self._sound = {}, set()
        queue = [job for job in self._queue if job.jobid not in self._bursts]
        queue += [b.job for b in self._bursts.values() if self._stands(b)]
        heapq.heapify(queue)
        self._queue = queue

    def _stands(self, burst):
        """Tell whether the job has a place in the shipped scheduler's queue."""
        if burst.job.jobid in self._leases.jobs:
            return False
        if burst.key not in self._fits:
            if len(self._fits) >= self.remembers:
                self._fits.clear()
            self._fits[burst.key] = jobs.fits(self._own_up, burst.own)
        return self._fits[burst.key]

    def _start_lent(self):
        """Start the burstable jobs whose lent ranks are up and free, in order."""
        if not self._lent_up:
            return
        free = self._lent_up.difference(self._leases.ranks)
        anyones = IDset() if self._apart else free
        able = self._bursts.keys()
        if not anyones:  # only jobs with a lease, not the many that wait without one
            able = able & self._leases.jobs.keys()
        failed = set()
        for burst in sorted(map(self._bursts.get, able), key=jobs.BurstJob.order):
            if self._bursts.get(burst.job.jobid) is not burst:
                continue  # canceled at a `yield` below
            ranks = self._leases.jobs.get(burst.job.jobid, anyones)
            what = burst.key, str(ranks)
            if not ranks.intersect(self._lent_up) or what in failed:
                continue
            if self._try_lent(burst, ranks):
                yield
            else:
                failed.add(what)

    def _try_lent(self, burst, ranks):
        job = burst.job
        request = jobs.restricted(burst.lent, {"ranks": str(ranks)})
        job.resource_request = request
        try:  # checked first: if infeasible on these ranks, the job would be denied
            started = jobs.fits(self.resources, request) and self._try_alloc(job)
        finally:
            job.resource_request = burst.own
        if started and job in self._queue:
            self._queue = [other for other in self._queue if other is not job]
            heapq.heapify(self._queue)
        return started


def _shipped(policy):
    """Return the module of a scheduler of Flux's, whose file's name has a dash."""
    places = os.environ.get("FLUX_MODULE_PATH", "").split(":")
    for place in (*filter(None, places), conf_builtin_get("module_path")):
        path = os.path.join(place, f"sched-{policy}.py")
        if os.path.exists(path):
            return _load(path)
    raise ValueError(f"policy={policy}: Flux has no sched-{policy}.py")


def make_class(policy):
    """Return the scheduler for `fifo` or `backfill`. Raises ValueError."""
    names = {"fifo": "FIFOScheduler", "backfill": "BackfillScheduler"}
    if policy not in names:
        raise ValueError(f"policy={policy}: use {' or '.join(names)}")

    class BurstScheduler(Lending, getattr(_shipped(policy), names[policy])):
        forgets_late = policy == "backfill"

        def __init__(self, h, *args):
            self.policy = policy
            super().__init__(h, *args)

    return BurstScheduler


def mod_main(h, *args):
    """Run as a broker module."""
    given = [arg for arg in args if arg.startswith("policy=")]
    scheduler = make_class(given[-1].removeprefix("policy=") if given else "fifo")
    scheduler(h, *(arg for arg in args if arg not in given)).run()
