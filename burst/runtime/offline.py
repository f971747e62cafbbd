# SPDX-License-Identifier: MIT
"""What the command line does without a daemon: read a snapshot, release jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from burst import log
from burst.config import LeadSettings, Settings
from burst.core.commands import held_jobs, release_jobs
from burst.core.orphans import Orphan, find_orphans
from burst.core.plan.slots import find_slots
from burst.core.provider_health import Outcome, Verb
from burst.core.records import RecordChanges, Records
from burst.core.sync import with_holds
from burst.core.world import ProviderView, World, after_observation
from burst.errors import BurstError, LeadError, LeadGone, Unreadable
from burst.lead import JobFailures, Lead, ServiceRequest
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView
from burst.provider import Provider
from burst.runtime import provider_registry
from burst.runtime.clock import Clock
from burst.runtime.connect import owner_tag, require_owner, with_settings
from burst.runtime.executor import CallResult
from burst.runtime.lead_reader import read_once
from burst.runtime.ledger_archive import LedgerArchive, archive_path
from burst.runtime.reap_bursts import ANSWERED_WITHIN, call_each
from burst.runtime.record_store import RecordStore
from burst.runtime.service_answers import describe_process
from burst.runtime.snapshot import Snapshot


def read_snapshot(
    lead: Lead,
    settings: Settings,
    providers: Mapping[str, Provider] | None = None,
    limit: float = ANSWERED_WITHIN,
) -> Snapshot:
    """Read lead, store and providers once; change nothing. Raises BurstError.

    Each call of a provider has `limit` seconds.
    """
    clock = Clock()
    identity = with_settings(lead.identity(), settings.lead)
    if providers is None:
        providers = provider_registry.load_providers(settings, identity.owner)
    records = RecordStore(lead.store()).load(clock())
    world = World(
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        lead=read_once(lead, records),
        providers=_ask(providers, limit),
    )
    now = clock()
    return Snapshot(
        now=now,
        records=records,
        world=world,
        settings=settings,
        decisions={},
        orphans=find_orphans(records, world, now),
    )


def read_orphans(
    lead: Lead, providers: Mapping[str, Provider], limit: float = ANSWERED_WITHIN
) -> tuple[tuple[Orphan, ...], dict[str, str]]:
    """Return the orphans, and the providers that did not answer, with the reason.

    Each provider has `limit` seconds. Raises BurstError, for root also if the lead is
    another user's, whose bursts the providers of root would not see.
    """
    require_owner(lead.identity(), os.geteuid(), starts_something=False)
    clock = Clock()
    records = RecordStore(lead.store()).load(clock())
    results = call_each(providers, limit=limit)
    told = {name: _why_no_answer(results.get(name), limit) for name in providers}
    failed = {name: why for name, why in told.items() if why}
    views = {
        name: after_observation(ProviderView(), result.value, [], result.began_at)
        for name, result in results.items()
        if name not in failed
    }
    world = World(identity=lead.identity(), slots=(), lead=None, providers=views)
    return find_orphans(records, world, clock()), failed


def read_records_snapshot(lead: Lead, settings: Settings) -> Snapshot:
    """Read lead and store once, and call no provider. Raises BurstError."""
    now = Clock()()
    identity = _with_owner(lead.identity(), settings.lead)
    records = RecordStore(lead.store()).load(now)
    seen = read_once(lead, records)
    world = World(
        identity=identity,
        slots=find_slots(identity, settings.lead.slots),
        lead=seen,
        places=dict.fromkeys(_enabled(records, settings), ""),
    )
    return Snapshot(
        now=now,
        records=with_holds(records, seen, now),
        world=world,
        settings=settings,
        decisions={},
        archive=LedgerArchive(archive_path(identity)),
    )


def _with_owner(identity: LeadIdentity, settings: LeadSettings) -> LeadIdentity:
    """Return the identity with the owner tag of a daemon, empty if it is not known.

    A user who may read the lead's records need not be allowed to ask the cluster.
    """
    try:
        owner = owner_tag(identity, settings)
    except BurstError:
        owner = ""
    return msgspec.structs.replace(identity, owner=owner)


def release_held_jobs(
    lead: Lead, jobs: list[JobId] | None
) -> tuple[list[JobId], JobFailures]:
    """Give jobs that a daemon left held their urgency back; None for all of them.

    Jobs that `flux submit --burst` submitted held since then are released as well, if
    the lead can be read; if not, that is logged.
    Returns the jobs that were released, and why others were not. The service `burst` is
    registered meanwhile, so that no daemon starts. Raises ServiceTaken if a daemon
    serves, BurstError for a job that is not held.
    """
    now = Clock()()
    lead.serve(_refuse, describe_process(now))
    ledger = RecordStore(lead.store())
    stored = ledger.load(now)
    seen = _look(lead, stored)
    records = stored if seen is None else with_holds(stored, seen, now)
    wanted = held_jobs(records) if jobs is None else jobs
    release_jobs(RecordChanges(records, now), wanted, seen)
    failures = lead.release({job: records.holds[job].urgency for job in wanted})
    # Recorded afterwards, unlike in a daemon, as no later tick would try again. A held
    # job that got its urgency back without a record counts as released by its user.
    free = [job for job in wanted if job not in failures]
    tx = RecordChanges(records, now)
    release_jobs(tx, free, seen)
    ledger.write(stored, tx.result())
    return free, failures


def _look(lead: Lead, records: Records) -> LeadView | None:
    """Return what the lead tells; None if it cannot be read now. Raises LeadGone."""
    try:
        return read_once(lead, records)
    except LeadGone:
        raise
    except Unreadable as error:
        # Urgencies can be set all the same, such as while no scheduler is loaded.
        told = "only jobs on record are released, as the lead cannot be read: %s"
        log.warn(told, error)
        return None


def _refuse(_: ServiceRequest) -> dict[str, object]:
    raise LeadError(
        "no daemon serves this lead, as burst release is running; try again in a moment"
    )


def _ask(providers: Mapping[str, Provider], limit: float) -> dict[str, ProviderView]:
    """Return what all providers tell. Raises BurstError for one that fails or hangs."""
    answers: list[dict[str, CallResult]] = []
    for verb in (Verb.OFFERS, Verb.OBSERVE):
        results = call_each(providers, verb, limit)
        for name in providers:
            if why := _why_no_answer(results.get(name), limit):
                raise BurstError(f"provider {name}: {verb.value}: {why}")
        answers.append(results)
    offers, seen = answers
    return {
        name: after_observation(
            ProviderView(offers=tuple(offers[name].value)),
            seen[name].value,
            [],
            seen[name].began_at,
        )
        for name in providers
    }


def _why_no_answer(result: CallResult | None, limit: float) -> str:
    """Return why a provider's call has no result; empty if it has one."""
    if result is None:
        return f"no answer within {format_fsd(limit)}"
    return "" if result.outcome is Outcome.OK else result.note


def _enabled(records: Records, settings: Settings) -> list[str]:
    """Return the providers that the settings enable; none of them is called.

    Without any table no settings were read: then return those with live bursts.
    """
    if not settings.providers:
        return [burst.lease.provider for burst in records.live]
    return [name for name, table in settings.providers.items() if table.enabled]
