# SPDX-License-Identifier: MIT
"""`burst gc`: lists and deletes orphans."""

from __future__ import annotations

import time
from typing import Any

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.leftovers import (
    GC_DEADLINE,
    LeftoverQuery,
    collect_leftovers,
    leftover_options,
    say_left,
    tell_reap,
)
from burst.cli.listing import Column, Listing, listing_options, print_json, print_rows
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.config import Settings
from burst.core.orphans import orphan_row
from burst.errors import BurstError
from burst.lead import Lead
from burst.runtime import provider_registry
from burst.runtime.connect import owner_tag
from burst.runtime.offline import read_orphans
from burst.runtime.reap_bursts import reap_until_gone

_ORPHANS = (
    Column("ORPHAN", lambda row: row["id"]),
    Column("PROVIDER", lambda row: row["provider"]),
    Column("HOSTS", lambda row: row["hosts"] or "?"),
    Column("WHY", lambda row: row["why"]),
)


@click.command()
@click.option("--yes", is_flag=True, help="Delete what is listed.")
@leftover_options
@target_options
@listing_options
def gc(
    yes: bool, leftovers: LeftoverQuery | None, target: Target, listing: Listing
) -> None:
    """List orphans: resources of burst that are in no record. Delete them with --yes.

    Read the list before you delete: an orphan means that records were lost, and jobs
    may run on it.

    With --provider, only the settings are read, not the lead or its records: all bursts
    with the tag of an owner are listed, also those in use. Use it after a lead was
    lost: delete the bursts of its owner, or those of any owner whose lease has expired.
    """
    if leftovers is not None:
        collect_leftovers(leftovers, target.settings(), yes, listing)
        return
    with target.lead() as lead, show_wait("looking for what is left"):
        found = call_daemon(lead, "gc", {"yes": yes})
        if found is None:
            found = _gc(lead, target.settings_or_say(), yes)
        else:
            found["left"] = _await_reaps(lead, found["asked"])
    show_found(found, listing)


def show_found(found: dict[str, Any], listing: Listing) -> None:
    """Print what was found. Raises BurstError for what is left, or was not seen."""
    if listing.as_json:
        print_json(found)
    elif found["orphans"]:
        print_rows(found["orphans"], _ORPHANS, listing)
    elif found.get("looked_at", True):
        click.echo("no orphans" + _where(found))
    say_left(found["left"])
    if found.get("failed"):
        raise BurstError("; ".join(f"{n}: {why}" for n, why in found["failed"].items()))
    if not found.get("looked_at", True):
        raise _nowhere("enable a provider in the daemon's settings, then burst reload")


def _where(found: dict[str, Any]) -> str:
    """Return the providers that were read, in words; empty if none failed."""
    if not found.get("failed"):
        return ""
    return f" of {', '.join(found['looked_at'])}"


def _nowhere(advice: str) -> BurstError:
    return BurstError(
        "no provider is known, so none was asked: there may be orphans",
        advice,
    )


def _gc(lead: Lead, settings: Settings, yes: bool) -> dict[str, Any]:
    """List, and with `yes` delete, orphans without a daemon."""
    owner = owner_tag(lead.identity(), settings.lead)
    providers = provider_registry.load_providers(settings, owner)
    if not providers:
        raise _nowhere(
            "use -c to name the daemon's settings file, in which a provider is enabled"
        )
    orphans, failed = read_orphans(lead, providers)
    keys = [(orphan.provider, orphan.burst) for orphan in orphans if yes]
    return {
        "orphans": [orphan_row(orphan) for orphan in orphans],
        "deleting": yes,
        "asked": keys,
        "reaps": [],
        "left": reap_until_gone(keys, providers, tell_reap, GC_DEADLINE),
        "looked_at": [name for name in providers if name not in failed],
        "failed": {f"provider {name}": why for name, why in failed.items()},
    }


def _await_reaps(lead: Lead, asked: list[list[str]]) -> dict[str, str]:
    """Wait until the daemon has deleted these bursts, and print the progress.

    Returns those that are left, and why.
    """
    wanted = {(str(provider), str(burst)): "" for provider, burst in asked}
    ends = time.monotonic() + GC_DEADLINE
    while wanted and time.monotonic() < ends:
        time.sleep(0.5)
        found = lead.call("gc", {})
        reaps = {(row["provider"], row["id"]): row for row in found["reaps"]}
        listed = {(row["provider"], row["id"]) for row in found["orphans"]}
        for key, note in list(wanted.items()):
            row = reaps.get(key)
            # The daemon forgets a burst that is gone and not seen any more.
            if row["gone"] if row else key not in listed:
                _tell(f"{key[1]} of provider {key[0]}: it is gone")
                del wanted[key]
            elif row and row["note"] != note:
                wanted[key] = row["note"]
                _tell(f"{key[1]} of provider {key[0]}: {row['note']}")
    return {key[1]: note or "it is being deleted" for key, note in wanted.items()}


def _tell(text: str) -> None:
    click.echo(text, err=True)
