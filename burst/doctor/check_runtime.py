# SPDX-License-Identifier: MIT
"""Checks the present state: daemon, records, rank slots, orphans."""

from __future__ import annotations

import shlex
import time
from collections.abc import Container

from burst import __version__
from burst.core.commands import held_jobs
from burst.core.plan.slots import (
    DRAIN_TAG,
    RankSlot,
    drained_by_hand,
    ends_with_lease,
    slot_holders,
)
from burst.core.records import unread_leases
from burst.core.report import ENABLE_AGAIN, NOT_ENABLED
from burst.doctor.facts import ReadFailure, RuntimeFacts
from burst.model.decision import name_ranks
from burst.model.finding import Finding, note, ok, wrong
from burst.model.jobid import format_f58
from burst.model.lead import LeadView
from burst.model.ranks import format_idset

# How many jobs of a long list a message names.
_NAMED = 5
_FAILING = {"failed", "activating"}
_NO_REASON_LEFT = "when the reason no longer holds"
_UNDRAIN = "flux resource undrain"


def check_daemon(facts: RuntimeFacts, path: str) -> list[Finding]:
    """Check whether a daemon serves the lead, or which jobs and bursts need one."""
    start = shlex.join(["burst", "daemon", *(("-c", path) if path else ())])
    if isinstance(facts.daemon, ReadFailure):
        text = f"the daemon does not answer: {facts.daemon.what}"
        return [wrong(text, facts.daemon.advice or "its log may say why")]
    if facts.daemon is not None:
        trouble = facts.daemon.get("halt", "")
        advice = facts.daemon.get("halt_advice", "")
        return [_serving(facts.daemon), *([wrong(trouble, advice)] if trouble else [])]
    if facts.unit:
        start = "systemctl start burst"
    found = [note("no daemon serves this lead", f"start one: {start}")]
    if facts.unit in _FAILING:
        text = f"no daemon serves this lead: burst.service is {facts.unit}"
        found = [wrong(text, "`systemctl status burst` shows why")]
    if isinstance(facts.records, ReadFailure):
        return found
    held = [format_f58(job) for job in held_jobs(facts.records)]
    if held:
        names = " ".join(held[:_NAMED]) + (" and others" if held[_NAMED:] else "")
        text = (
            f"jobs are held, and without a daemon nothing releases them ({len(held)}):"
            f" {names}"
        )
        found.append(wrong(text, f"{start}, or `burst release --all`"))
    live = ", ".join(sorted(burst.id for burst in facts.records.live))
    if live:
        text = f"bursts are live, and without a daemon nothing takes them down: {live}"
        found.append(wrong(text, start))
    return found


def _serving(holder: dict[str, object]) -> Finding:
    since = time.strftime(
        "%Y-%m-%dT%H:%M:%S", time.localtime(float(str(holder["since"])))
    )
    text = (
        f"burst {holder['version']} serves this lead: pid {holder['pid']} on"
        f" {holder['host']}, since {since}"
    )
    if holder["version"] != __version__:
        return note(f"{text}; this is {__version__}", "restart the daemon")
    return ok(text)


def check_records(
    facts: RuntimeFacts, enabled: Container[str] | None = None
) -> list[Finding]:
    """Check store and archive, and find the records that a person has to look at.

    `enabled` are the names of the enabled providers; None if no settings were read.
    """
    records, archive = facts.records, facts.archive
    if isinstance(records, ReadFailure):
        return [
            wrong(
                records.what,
                records.advice or "repair the store, then run burst doctor again",
            )
        ]
    unreadable = [
        wrong(
            f"record {key} cannot be read: {why}",
            "its burst and rank slot are left alone; run the version of burst that"
            " wrote it",
        )
        for key, why in records.unreadable.items()
    ]
    quarantined = [
        wrong(
            f"burst {burst.id} is quarantined, so the daemon does not act on it:"
            f" {burst.quarantined}",
            ""
            if burst.out_of_reach
            else f"check what exists of it, then take it down: burst down {burst.id}",
        )
        for burst in records.live
        if burst.quarantined
    ]
    unseen = [
        wrong(f"burst {burst.id}: provider {name} {NOT_ENABLED}", ENABLE_AGAIN)
        for burst in records.live
        if enabled is not None and (name := burst.lease.provider) not in enabled
    ]
    unkept = [wrong(archive.what, archive.advice)] if archive else []
    fine = ok(f"the store can be read; records of bursts: {len(records.bursts)}")
    return unreadable + quarantined + unseen + unkept or [fine]


def check_unleased_slots(facts: RuntimeFacts) -> list[Finding]:
    """Check whether the rank slots that no burst leases can be leased."""
    view, records = facts.view, facts.records
    if isinstance(view, ReadFailure):
        return [wrong(f"ranks cannot be read: {view.what}", view.advice or "try again")]
    leased: Container[str] = ()
    if not isinstance(records, ReadFailure):
        leased = slot_holders(facts.slots, records.live, unread_leases(records))
    found = []
    for slot in facts.slots:
        if slot.name not in leased:
            found += _why_not_free(slot, view)
        found += _closed_ranks(slot, view)
    return found or [
        ok(
            "no free rank slot is drained, excluded, unfreed, allocated, or used by"
            " unknown brokers"
        )
    ]


def _why_not_free(slot: RankSlot, view: LeadView) -> list[Finding]:
    ranks = frozenset(slot.ranks)
    blocked = f"rank slot {slot.name} is not leased:"
    found = []
    up = (view.online | view.torpid) & ranks
    if up:
        text = f"{blocked} brokers of no known burst are up on {_ranks(up)}"
        advice = (
            "`burst gc` lists what this lead made, `burst gc --provider NAME"
            " --any-owner` what others did; stop other brokers by hand"
        )
        found.append(wrong(text, advice))
    drained = {rank: why for rank, why in view.drained.items() if rank in ranks}
    for why in sorted(filter(ends_with_lease, set(drained.values()))):
        theirs = [rank for rank, reason in drained.items() if reason == why]
        who = "burst" if why.startswith(DRAIN_TAG) else "Flux"
        text = f"{blocked} {_ranks(theirs)} drained by {who}: {why}"
        advice = f"{_NO_REASON_LEFT}: {_UNDRAIN} {format_idset(theirs)}"
        found.append(note(text, advice))
    # The scheduler gives no job an offline rank: what it alone has allocated there is
    # of a job that has ended. (`unfreed` is known after a minute, and this looks once.)
    unfreed = ranks.intersection(view.granting) - up
    stuck = (view.allocated & ranks) - up - unfreed
    if stuck:
        text = f"{blocked} Flux has jobs on offline {_ranks(stuck)}"
        advice = (
            "flux jobs -o '{id} {ranks}' shows them, flux cancel ends those that run"
            " on no other node"
        )
        found.append(wrong(text, advice))
    if unfreed:
        text = f"{blocked} the scheduler has {_ranks(unfreed)} allocated to no job"
        advice = (
            "it was not told of the end of a job, perhaps as the lead was killed:"
            f" {view.scheduler.reload}"
        )
        found.append(wrong(text, advice))
    return found


def _closed_ranks(slot: RankSlot, view: LeadView) -> list[Finding]:
    """Return why single ranks of a slot get no jobs, whoever leases the others."""
    which = f"rank slot {slot.name}: no burst gets"
    found = []
    for why, ranks in drained_by_hand(view.drained, slot.ranks).items():
        advice = f"{_NO_REASON_LEFT}: {_UNDRAIN} {format_idset(ranks)}"
        found.append(note(f"{which} {_ranks(ranks)}, drained by hand: {why}", advice))
    excluded = view.excluded & frozenset(slot.ranks)
    if excluded:
        text = f"{which} {_ranks(excluded)}, excluded"
        found.append(note(text, "see exclude under [resource] of the lead"))
    return found


def _ranks(ranks: frozenset[int] | list[int]) -> str:
    return name_ranks(format_idset(ranks))


def check_orphans(facts: RuntimeFacts) -> list[Finding]:
    """Check that there are no orphans, as far as bursts could be listed."""
    found = [
        note(f"not checked: {cause}", "correct that, then run burst doctor again")
        for cause in facts.unlisted
    ]
    found += [
        wrong(
            f"orphan {orphan.burst} of provider {orphan.provider}: {orphan.why}",
            "look at it, then delete it: burst gc --yes",
        )
        for orphan in facts.orphans
    ]
    return found or [ok("there are no orphans")]
