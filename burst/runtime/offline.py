# SPDX-License-Identifier: MIT
"""Looks at a lead once, or takes its daemon's place for a moment, without a daemon."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from burst import log
from burst.config import Settings
from burst.core.commands import held_jobs, release_jobs
from burst.core.orphans import Orphan, find_orphans
from burst.core.placement.slots import find_slots
from burst.core.provider_health import Outcome, Verb, pause_after
from burst.core.world import LastCall, ProviderView, World, observe, repeat_at
from burst.errors import BurstError, LeadError
from burst.lead import JobFailures, Lead, ServiceRequest
from burst.model.burst import BurstId
from burst.model.jobid import JobId
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.clock import Clock
from burst.runtime.connect import with_public_endpoint
from burst.runtime.engine import Snapshot
from burst.runtime.executor import ProviderCall, read_offers, read_statuses, run_call
from burst.runtime.record_store import RecordStore
from burst.runtime.service_api import describe_process


def read_snapshot(
    lead: Lead, settings: Settings, providers: Mapping[str, Provider] | None = None
) -> Snapshot:
    """Read lead, store and providers once; do nothing. Raises BurstError."""
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
        providers={
            name: _ask(name, provider, clock) for name, provider in providers.items()
        },
    )
    return Snapshot(
        now=clock(),
        records=records,
        world=world,
        settings=settings,
        decisions={},
        orphans=find_orphans(records, world),
    )


def read_records_snapshot(lead: Lead, settings: Settings) -> Snapshot:
    """Read lead and store once, and ask no provider. Raises BurstError."""
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

    Returns those that have it, and why others have not. For when there is no daemon
    any more: it holds the daemon's lock meanwhile. Raises ServiceTaken if there is
    one, LeadError for a job that is not held.
    """
    now = Clock()()
    lead.serve(_refuse, describe_process(now))
    ledger = RecordStore(lead.store())
    records = ledger.load(now)
    wanted = held_jobs(records) if jobs is None else jobs
    release_jobs(records, wanted, now)
    failures = lead.release({job: records.holds[job].urgency for job in wanted})
    # Recorded afterwards, unlike what a daemon does, as nobody would try again. A held
    # job that is free without a record of it counts as freed by its user.
    free = [job for job in wanted if job not in failures]
    ledger.write(records, release_jobs(records, free, now).records)
    return free, failures


def _refuse(_: ServiceRequest) -> dict[str, object]:
    raise LeadError("this is not the daemon, but burst release; ask again in a moment")


def _ask(name: str, provider: Provider, clock: Clock) -> ProviderView:
    asked = (
        ProviderCall(
            provider=name, verb=Verb.OFFERS, run=lambda: read_offers(provider)
        ),
        ProviderCall(
            provider=name, verb=Verb.OBSERVE, run=lambda: read_statuses(provider)
        ),
    )
    offers, seen = (run_call(task, clock) for task in asked)
    for answer in (offers, seen):
        if answer.outcome is not Outcome.OK:
            raise BurstError(
                f"provider {name}: {answer.task.verb.value}: {answer.note}"
            )
    return observe(
        ProviderView(offers=tuple(offers.value)), seen.value, [], seen.began_at
    )


def reap_orphans(
    orphans: Sequence[Orphan],
    providers: Mapping[str, Provider],
    tell: Callable[[str], None],
    limit: float,
) -> dict[BurstId, str]:
    """Have orphans deleted as a daemon would, for at most `limit` seconds.

    Each is asked for until its provider has nothing of it any more, later each time.
    Returns those that are left, and why.
    """
    clock = Clock()
    ends = clock() + limit
    calls = {
        (o.provider, o.burst): LastCall(verb=Verb.REAP, attempts=0) for o in orphans
    }
    due = dict.fromkeys(calls, clock())
    while due and (now := min(due.values())) < ends:
        time.sleep(max(0.0, now - clock()))
        key = min(due, key=lambda key: due[key])
        before = calls[key]
        calls[key] = _reap(providers[key[0]], key, before, clock)
        due[key] = repeat_at(calls[key])
        note = calls[key].note or "it is being deleted"
        if calls[key].outcome is Outcome.NOT_FOUND:
            tell(f"{key[1]} of provider {key[0]}: nothing of it is left")
            del due[key]
        elif calls[key].note != before.note or not before.attempts:
            tell(f"{key[1]} of provider {key[0]}: {note}")
    return {burst: calls[name, burst].note or "still there" for name, burst in due}


def _reap(
    provider: Provider, key: tuple[str, BurstId], before: LastCall, clock: Clock
) -> LastCall:
    name, burst = key
    task = ProviderCall(
        provider=name, verb=Verb.REAP, burst=burst, run=lambda: provider.reap(burst)
    )
    answer = run_call(task, clock)
    if answer.error and answer.note != before.note:
        log.failure("provider %s: reap of %s raised", name, burst, error=answer.error)
    attempts = before.attempts + 1
    pause = pause_after(answer.outcome, attempts, answer.retry_after)
    return LastCall(
        verb=Verb.REAP,
        outcome=answer.outcome,
        note=answer.note,
        attempts=attempts,
        done_at=answer.done_at,
        retry_at=answer.done_at + pause,
    )
