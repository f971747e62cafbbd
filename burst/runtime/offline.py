# SPDX-License-Identifier: MIT
"""What the command line does without a daemon: read a snapshot, release, delete."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from burst.config import Settings
from burst.core.commands import held_jobs, release_jobs
from burst.core.orphans import Orphan, find_orphans
from burst.core.placement.slots import find_slots
from burst.core.provider_health import Outcome, Verb
from burst.core.world import LastCall, ProviderView, World, observe, repeat_at
from burst.errors import BurstError, LeadError
from burst.lead import JobFailures, Lead, ServiceRequest
from burst.model.burst import BurstId
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.clock import Clock
from burst.runtime.connect import with_public_endpoint
from burst.runtime.engine import Snapshot
from burst.runtime.executor import (
    CallResult,
    ProviderWorkers,
    QueuedCall,
    run_call,
)
from burst.runtime.last_call import (
    ProviderBurst,
    describe_reap,
    ended_call,
    next_call,
)
from burst.runtime.record_store import RecordStore
from burst.runtime.service_answers import describe_process

# Seconds that a provider may take to return its bursts.
_ANSWERED_WITHIN = 60.0


def read_snapshot(
    lead: Lead, settings: Settings, providers: Mapping[str, Provider] | None = None
) -> Snapshot:
    """Read lead, store and providers once; change nothing. Raises BurstError."""
    clock = Clock()
    identity = with_public_endpoint(lead.identity(), settings.lead)
    if providers is None:
        providers = provider_registry.load_providers(settings, identity.owner)
    lead.listen(lambda: None)
    records = RecordStore(lead.store()).load(clock())
    world = World(
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        lead=lead.observe(),
        providers={name: _ask(name, providers, clock) for name in providers},
    )
    return Snapshot(
        now=clock(),
        records=records,
        world=world,
        settings=settings,
        decisions={},
        orphans=find_orphans(records, world),
    )


def read_orphans(
    lead: Lead, providers: Mapping[str, Provider], limit: float = _ANSWERED_WITHIN
) -> tuple[tuple[Orphan, ...], dict[str, str]]:
    """Return what no record explains, and which providers did not tell, with why.

    Each is asked on a thread of its own and has `limit` seconds, so that one that fails
    or hangs does not keep the others from being read. Raises BurstError.
    """
    clock = Clock()
    records = RecordStore(lead.store()).load(clock())
    results = _observe_each(providers, clock, limit)
    views: dict[str, ProviderView] = {}
    failed: dict[str, str] = {}
    for name in providers:
        result = results.get(name)
        if result is None:
            failed[name] = f"no answer within {format_fsd(limit)}"
        elif result.outcome is not Outcome.OK:
            failed[name] = result.note
        else:
            views[name] = observe(ProviderView(), result.value, [], result.began_at)
    world = World(identity=lead.identity(), slots=(), lead=None, providers=views)
    return find_orphans(records, world), failed


def _observe_each(
    providers: Mapping[str, Provider], clock: Clock, limit: float
) -> dict[str, CallResult]:
    """Return what came of asking each provider what it has; those that answered."""
    answered = threading.Event()
    workers = ProviderWorkers(clock, answered.set)
    for name in providers:
        call = QueuedCall(provider=name, verb=Verb.OBSERVE, providers=providers)
        workers.submit(call)
    results: dict[str, CallResult] = {}
    ends = clock() + limit
    while len(results) < len(providers) and (left := ends - clock()) > 0:
        answered.wait(left)
        answered.clear()
        results |= {result.call.provider: result for result in workers.collect()}
    workers.close()
    return results


def read_records_snapshot(lead: Lead, settings: Settings) -> Snapshot:
    """Read lead and store once, and call no provider. Raises BurstError."""
    now = Clock()()
    identity = lead.identity()
    records = RecordStore(lead.store()).load(now)
    lead.listen(lambda: None)
    world = World(
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        lead=lead.observe(),
    )
    return Snapshot(
        now=now, records=records, world=world, settings=settings, decisions={}
    )


def release_held_jobs(
    lead: Lead, jobs: list[JobId] | None
) -> tuple[list[JobId], JobFailures]:
    """Give jobs that a daemon left held their urgency back; None for all of them.

    Returns those that were released, and why others were not. It registers the service
    `burst` meanwhile, so that no daemon starts. Raises ServiceTaken if one serves,
    LeadError for a job that is not held.
    """
    now = Clock()()
    lead.serve(_refuse, describe_process(now))
    ledger = RecordStore(lead.store())
    records = ledger.load(now)
    wanted = held_jobs(records) if jobs is None else jobs
    release_jobs(records, wanted, now)
    failures = lead.release({job: records.holds[job].urgency for job in wanted})
    # Recorded afterwards, unlike in a daemon, as no later tick would try again. A held
    # job that has its urgency without a record of it counts as released by its user.
    free = [job for job in wanted if job not in failures]
    ledger.write(records, release_jobs(records, free, now).records)
    return free, failures


def _refuse(_: ServiceRequest) -> dict[str, object]:
    raise LeadError(
        "no daemon serves this lead: burst release runs; try again in a moment"
    )


def _ask(name: str, providers: Mapping[str, Provider], clock: Clock) -> ProviderView:
    offers, seen = (
        run_call(QueuedCall(provider=name, verb=verb, providers=providers), clock)
        for verb in (Verb.OFFERS, Verb.OBSERVE)
    )
    for result in (offers, seen):
        if result.outcome is not Outcome.OK:
            verb = result.call.verb.value
            raise BurstError(f"provider {name}: {verb}: {result.note}")
    view = ProviderView(offers=tuple(offers.value))
    return observe(view, seen.value, [], seen.began_at)


def reap_orphans(
    orphans: Sequence[Orphan],
    providers: Mapping[str, Provider],
    tell: Callable[[str], None],
    limit: float,
) -> dict[BurstId, str]:
    """Delete orphans as a daemon would, for at most `limit` seconds.

    `reap` of each is called until NotFound, with longer pauses each time. Returns those
    that are left, and why.
    """
    clock = Clock()
    ends = clock() + limit
    due = {(orphan.provider, orphan.burst): clock() for orphan in orphans}
    calls: dict[ProviderBurst, LastCall] = {}
    while due and (now := min(due.values())) < ends:
        time.sleep(max(0.0, now - clock()))
        key = min(due, key=lambda key: due[key])
        name, burst = key
        before = calls.get(key)
        note_before = before.note if before else None
        reap = QueuedCall(
            provider=name, verb=Verb.REAP, burst=burst, providers=providers
        )
        result = run_call(reap, clock)
        call = ended_call(next_call(before, Verb.REAP), result, note_before)
        if call.note != note_before:
            tell(describe_reap(key, call))
        calls[key] = call
        due[key] = repeat_at(call)
        if call.outcome is Outcome.NOT_FOUND:
            del due[key]
    notes = {key: calls[key].note if key in calls else "" for key in due}
    return {burst: note or "still there" for (_, burst), note in notes.items()}
