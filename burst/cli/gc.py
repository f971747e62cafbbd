# SPDX-License-Identifier: MIT
"""`burst gc`: lists and deletes orphans."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.listing import Column, Listing, listing_options, print_json, print_rows
from burst.cli.target import Target, target_options
from burst.config import Settings
from burst.core.report import orphan_row
from burst.errors import BurstError
from burst.lead import Lead
from burst.runtime import provider_registry
from burst.runtime.offline import read_orphans, reap_orphans

# How long `burst gc --yes` repeats a deletion before it says what is left, in seconds.
_GC_DEADLINE = 600.0


_ORPHANS = (
    Column("ORPHAN", lambda row: row["id"]),
    Column("PROVIDER", lambda row: row["provider"]),
    Column("HOSTS", lambda row: row["hosts"] or "?"),
    Column("WHY", lambda row: row["why"]),
)


@click.command()
@click.option("--yes", is_flag=True, help="Delete what is listed.")
@target_options
@listing_options
def gc(yes: bool, target: Target, listing: Listing) -> None:
    """List orphans: what burst made and has no record of. Delete them with --yes.

    Look first: an orphan means that records were lost, and jobs may run on it.
    """
    with target.lead() as lead:
        found = call_daemon(lead, "gc", {"yes": yes})
        if found is None:
            found = _gc(lead, target.settings_or_say(), yes)
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


def _gc(lead: Lead, settings: Settings, yes: bool) -> dict[str, Any]:
    """List, and with `yes` delete, orphans without a daemon."""
    providers = provider_registry.load_providers(settings, lead.identity().owner)
    orphans, failed = read_orphans(lead, providers)
    left = reap_orphans(orphans, providers, _tell, _GC_DEADLINE) if yes else {}
    _say_left(left)
    return {
        "orphans": [orphan_row(orphan) for orphan in orphans],
        "deleting": False,
        "failed": {f"provider {name}": why for name, why in failed.items()},
    }


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
