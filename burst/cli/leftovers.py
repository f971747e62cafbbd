# SPDX-License-Identifier: MIT
"""`burst gc --provider`: finds what lost leads have left, by its tags alone."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
import msgspec

from burst.cli.listing import Column, Listing, counted, print_json, print_rows
from burst.cli.progress import show_wait
from burst.config import LeadSettings, Settings
from burst.core.world import LastCall
from burst.errors import BurstError
from burst.model.fsd import format_fsd
from burst.provider import OwnedBurst
from burst.runtime.last_call import ProviderBurst, describe_reap
from burst.runtime.reap_bursts import Leftovers, has_expired

GC_DEADLINE = 600.0
"""Seconds for which a deletion is repeated; then the command reports what is left."""


class LeftoverQuery(msgspec.Struct, frozen=True):
    """Which bursts of a provider `burst gc --provider` lists."""

    provider: str
    owner: str | None
    """The tag of one owner; None for the owner that the settings give."""
    any_owner: bool
    expired: bool


def _describe_lease(row: Mapping[str, Any]) -> str:
    if row["lease_end"] is None:
        return "no end"
    left = row["lease_end"] - row["now"]
    if left > 0:
        return f"ends in {format_fsd(left)}"
    return f"ended {format_fsd(-left)} ago"


_COLUMNS = (
    Column("BURST", lambda row: row["id"]),
    Column("PROVIDER", lambda row: row["provider"]),
    Column("OWNER", lambda row: row["owner"]),
    Column("LEASE", _describe_lease),
)


def _with_provider(context: click.Context, _: click.Parameter, given: Any) -> Any:
    """Refuse an option that needs `--provider` if that is not given."""
    if given and context.params.get("provider") is None:
        raise click.UsageError("--owner, --any-owner and --expired need --provider")
    return given


def leftover_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `--provider` and the options that need it; the command gets `leftovers`."""

    @click.option(
        "--provider",
        metavar="NAME",
        is_eager=True,
        help="List the bursts of this provider of the settings, without a lead.",
    )
    @click.option(
        "--owner",
        metavar="TAG",
        callback=_with_provider,
        help="With --provider: only bursts with this owner's tag. Default: lead.owner"
        " of the settings.",
    )
    @click.option(
        "--any-owner",
        is_flag=True,
        callback=_with_provider,
        help="With --provider: bursts of all owners.",
    )
    @click.option(
        "--expired",
        is_flag=True,
        callback=_with_provider,
        help="With --provider: only bursts whose lease ended at least 10 minutes ago.",
    )
    @functools.wraps(function)
    def command(
        provider: str | None,
        owner: str | None,
        any_owner: bool,
        expired: bool,
        **others: Any,
    ) -> None:
        if owner and any_owner:
            raise click.UsageError("give --owner or --any-owner, not both")
        query = LeftoverQuery(provider, owner, any_owner, expired) if provider else None
        function(leftovers=query, **others)

    return command


def collect_leftovers(
    query: LeftoverQuery, settings: Settings, yes: bool, listing: Listing
) -> None:
    """List these bursts, and with `yes` delete them. Raises BurstError.

    It deletes bursts of all owners only once they have expired: another lead may use
    the rest.
    """
    if yes and query.any_owner and not query.expired:
        raise click.UsageError(
            "--any-owner --yes needs --expired: other leads may use the rest"
        )
    owner = None if query.any_owner else query.owner or _owner_of(settings.lead)
    now = time.time()
    with show_wait(f"asking {query.provider} what it has") as show:
        leftovers = Leftovers(settings, query.provider)
        found = [
            burst
            for burst in leftovers.list_all()
            if owner in {None, burst.owner}
            and (not query.expired or has_expired(burst, now))
        ]
        show(f"deleting {counted(len(found), 'burst')} of {query.provider}")
        left = leftovers.delete(found, tell_reap, GC_DEADLINE) if yes else {}
    _print(found, left, now, leftovers.place(), listing)
    say_left(left)


def _owner_of(lead: LeadSettings) -> str:
    """Return the owner that the settings give. Raises UsageError if they give none."""
    if lead.has_owner_of_service:
        # Its client is an extra, and takes a second to import.
        from burst.runtime.lead_service import read_from_service  # noqa: PLC0415

        return read_from_service(lead).owner
    if not lead.owner:
        raise click.UsageError(
            "whose? The settings have no lead.owner: give --owner TAG (the daemon's log"
            " and burst status --json have it) or --any-owner"
        )
    return lead.owner


def _print(
    found: Sequence[OwnedBurst],
    left: Mapping[str, str],
    now: float,
    place: str,
    listing: Listing,
) -> None:
    rows = [
        {
            "id": burst.burst_id,
            "provider": burst.provider,
            "owner": burst.owner,
            "lease_end": burst.lease_end or None,
            "now": now,
        }
        for burst in found
    ]
    if listing.as_json:
        print_json({"bursts": rows, "left": dict(left)})
    elif not rows:
        # A default directory is another one for each user.
        click.echo(f"nothing is left in {place}" if place else "nothing is left")
    else:
        print_rows(rows, _COLUMNS, listing)


def tell_reap(key: ProviderBurst, call: LastCall) -> None:
    """Say on standard error how the deletion of a burst goes on."""
    click.echo(describe_reap(key, call), err=True)


def say_left(left: Mapping[Any, str]) -> None:
    """Raise BurstError if anything is left."""
    if left:
        told = "; ".join(f"{burst}: {why}" for burst, why in left.items())
        raise BurstError(f"not deleted: {told}", "run it again: it continues")
