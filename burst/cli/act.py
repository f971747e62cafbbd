# SPDX-License-Identifier: MIT
"""Commands that work with the daemon or, where there is none, without."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from burst.cli.common import (
    Column,
    Listing,
    Place,
    listing_options,
    place_options,
    print_json,
    print_rows,
)
from burst.config import Settings
from burst.core.report import orphan_row
from burst.errors import BurstError, NoDaemon
from burst.lead import Lead
from burst.model.jobid import format_f58, parse_jobid
from burst.runtime import provider_registry
from burst.runtime.offline import read_snapshot, reap_orphans, release_held_jobs
from burst.runtime.service_api import plan as plan_of

# How long `burst gc --yes` repeats a deletion before it says what is left, in seconds.
_GC_DEADLINE = 600.0
_JOBS = (
    Column("JOB", lambda row: row["id"]),
    Column("NEEDS", lambda row: row["needs"]),
    Column("VERDICT", lambda row: row["verdict"]),
    Column("WHY", lambda row: row["why"]),
)
_BURSTS = (
    Column("BURST", lambda row: row["id"]),
    Column("PROVIDER", lambda row: f"{row['provider']}/{row['offer']}"),
    Column("NODES", lambda row: row["nodes"]),
    Column("RANKS", lambda row: row["ranks"]),
    Column("PER HOUR", lambda row: f"{row['price']:g}"),
    Column("JOBS", lambda row: ",".join(row["jobs"])),
)
_ORPHANS = (
    Column("ORPHAN", lambda row: row["id"]),
    Column("PROVIDER", lambda row: row["provider"]),
    Column("HOSTS", lambda row: row["hosts"] or "?"),
    Column("WHY", lambda row: row["why"]),
)


@click.command()
@place_options
@listing_options
def plan(place: Place, listing: Listing) -> None:
    """Show what would be bursted now, where, at what price, and what is refused.

    A dry run by the planner's own code. Nothing is asked of a provider but its offers.
    """
    with place.lead() as lead:
        found = _from_daemon(lead, "plan")
        if found is None:
            found = plan_of(read_snapshot(lead, place.settings_or_say()))
    if listing.as_json:
        print_json(found)
        return
    if found["trouble"]:
        raise BurstError(f"the lead cannot be read: {found['trouble']}")
    if listing.form is not None:
        print_rows(found["jobs"], _JOBS, listing)
        return
    if found["bursts"]:
        print_rows(found["bursts"], _BURSTS, listing)
    else:
        click.echo("nothing to burst")
    if found["jobs"]:
        click.echo()
        print_rows(found["jobs"], _JOBS, listing)
    for job in found["jobs"]:
        for refusal in job["refusals"]:
            click.echo(f"{job['id']}: {refusal['offer']}: {refusal['why']}")


@click.command()
@click.argument("jobs", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All jobs that burst holds.")
@place_options
def release(jobs: tuple[str, ...], everything: bool, place: Place) -> None:
    """Give held JOBS their urgency back; burst does not hold them again.

    Works without a daemon too: for jobs that one left held when it ended.
    """
    if bool(jobs) == everything:
        raise click.UsageError("name jobs, or say --all")
    try:
        wanted = [parse_jobid(job) for job in jobs]
    except ValueError as error:
        raise BurstError(str(error)) from None
    asked = {"ids": list(map(str, wanted)), "all": everything}
    with place.lead() as lead:
        found = _from_daemon(lead, "release", asked)
        if found is None:
            free, failures = release_held_jobs(lead, None if everything else wanted)
            found = {"released": [format_f58(job) for job in free]}
            for job, why in failures.items():
                click.echo(f"{format_f58(job)}: not released: {why}", err=True)
    click.echo(f"released: {' '.join(found['released']) or 'nothing is held'}")


@click.command()
@click.option("--yes", is_flag=True, help="Delete what is listed.")
@place_options
@listing_options
def gc(yes: bool, place: Place, listing: Listing) -> None:
    """List what bears our tag and no record explains; delete it with --yes.

    Look first: an orphan means that the store was lost, and jobs may run on it.
    """
    with place.lead() as lead:
        found = _from_daemon(lead, "gc", {"yes": yes})
        if found is None:
            found = _gc(lead, place.settings_or_say(), yes)
        elif yes:
            _await_reaps(lead, found["asked"])
    if listing.as_json:
        print_json(found)
    elif not found["orphans"]:
        click.echo("no orphans")
    else:
        print_rows(found["orphans"], _ORPHANS, listing)
    if found.get("failed"):
        raise BurstError("; ".join(f"{n}: {why}" for n, why in found["failed"].items()))


def _from_daemon(
    lead: Lead, method: str, payload: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    try:
        return lead.call(method, payload or {}, timeout=60.0)
    except NoDaemon:
        return None


def _gc(lead: Lead, settings: Settings, yes: bool) -> dict[str, Any]:
    """Do without a daemon what it would."""
    providers = provider_registry.load_providers(settings, lead.identity().owner)
    orphans = read_snapshot(lead, settings, providers).orphans
    left = reap_orphans(orphans, providers, _tell, _GC_DEADLINE) if yes else {}
    _say_left(left)
    return {"orphans": [orphan_row(orphan) for orphan in orphans], "deleting": False}


def _await_reaps(lead: Lead, asked: list[list[str]]) -> None:
    """Wait until the daemon has deleted these, and tell how it goes."""
    wanted = {(str(provider), str(burst)): "" for provider, burst in asked}
    ends = time.monotonic() + _GC_DEADLINE
    while wanted and time.monotonic() < ends:
        time.sleep(0.5)
        found = lead.call("gc", {}, timeout=60.0)
        reaps = {(row["provider"], row["id"]): row for row in found["reaps"]}
        listed = {(row["provider"], row["id"]) for row in found["orphans"]}
        for key, note in list(wanted.items()):
            row = reaps.get(key)
            # The daemon forgets one that is gone and not seen any more.
            if row["gone"] if row else key not in listed:
                _tell(f"{key[1]} of provider {key[0]}: nothing of it is left")
                del wanted[key]
            elif row and row["note"] != note:
                wanted[key] = row["note"]
                _tell(f"{key[1]} of provider {key[0]}: {row['note']}")
    _say_left({key[1]: note or "it is being deleted" for key, note in wanted.items()})


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _say_left(left: Mapping[Any, str]) -> None:
    """Raise BurstError if anything is left."""
    if left:
        told = "; ".join(f"{burst}: {why}" for burst, why in left.items())
        raise BurstError(
            f"not deleted within {_GC_DEADLINE:.0f} s: {told}", "burst gc --yes goes on"
        )
