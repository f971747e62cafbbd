# SPDX-License-Identifier: MIT
"""Commands that ask the daemon: what is, why, and please."""

from __future__ import annotations

import click

from burst.cli.common import (
    Column,
    Listing,
    Place,
    Row,
    fsd,
    listing_options,
    money,
    place_options,
    print_json,
    print_rows,
)
from burst.cli.progress import watch_burst
from burst.cli.records import read_records
from burst.errors import NoDaemon
from burst.runtime import service_api

_BURSTS = (
    Column("BURST", lambda row: row["id"]),
    Column("PROVIDER", lambda row: f"{row['provider']}/{row['offer']}"),
    Column("STATE", lambda row: row["state"]),
    Column("FOR", lambda row: fsd(row["age"])),
    Column("NODES", lambda row: f"{_known(row['online'])}/{row['nodes']}"),
    Column("RANKS", lambda row: row["ranks"]),
    Column("RESULT", lambda row: row["result"] or "-"),
    Column("JOBS", lambda row: ",".join(row["jobs"]) or "-"),
    Column("NOTE", lambda row: row["note"] or _idle(row)),
)
_SLOTS = (
    Column("SLOT", lambda row: row["name"]),
    Column("RANKS", lambda row: row["ranks"]),
    Column("NODES", lambda row: row["shape"]),
    Column("STATE", lambda row: row["state"]),
    Column("BURST", lambda row: row["burst"] or "-"),
)


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Show ended bursts too.")
@place_options
@listing_options
def status(everything: bool, place: Place, listing: Listing) -> None:
    """Show the bursts, the rank slots and the providers.

    A guest sees the bursts of his own jobs. Without a daemon the owner sees what is on
    record.
    """
    with place.lead() as lead:
        try:
            found = lead.call("status", {})
        except NoDaemon as error:
            found = service_api.status(read_records(lead, place, error), None)
    if not everything:
        found["bursts"] = [b for b in found["bursts"] if b["state"] != "inactive"]
    if listing.as_json:
        print_json(found)
        return
    if found["bursts"]:
        ended = any(row["result"] for row in found["bursts"])
        columns = [each for each in _BURSTS if ended or each.title != "RESULT"]
        print_rows(found["bursts"], columns, listing)
    if listing.form is not None:
        return
    if not found["bursts"]:
        click.echo("no bursts")
    click.echo()
    print_rows(found["slots"], _SLOTS, listing)
    for line in _notices(found):
        click.echo(line)


@click.command()
@click.argument("burst_id", metavar="BURST")
@click.option("--note", default="", help="Why, for the record.")
@click.option(
    "--provider", default="", help="Who made it, where its record cannot be read."
)
@click.option("--no-wait", is_flag=True, help="Return once it is asked for.")
@place_options
def down(burst_id: str, note: str, provider: str, no_wait: bool, place: Place) -> None:
    """Take a BURST down. What runs on it goes on to its end first.

    One whose record cannot be read, too: all that may be its is taken down.
    """
    asked = {"burst": burst_id, "note": note, "provider": provider}
    with place.lead() as lead:
        lead.call("down", asked, timeout=60.0)
        if no_wait:
            click.echo(f"{burst_id} is being taken down")
        else:
            watch_burst(lambda: lead.call("status", {}), burst_id, until="inactive")


@click.command()
@click.argument("provider")
@place_options
def enable(provider: str, place: Place) -> None:
    """Try a PROVIDER again that was disabled or set aside."""
    with place.lead() as lead:
        lead.call("enable", {"provider": provider}, timeout=60.0)
    click.echo(f"{provider} is tried again from now on")


@click.command()
@place_options
def reload(place: Place) -> None:
    """Have the daemon read its settings again (as SIGHUP does)."""
    with place.lead() as lead:
        found = lead.call("reload", {}, timeout=120.0)
    click.echo(f"reloaded; changed: {', '.join(found['changed']) or 'nothing'}")
    for name in found["late"]:
        click.echo(
            f"provider {name} has not answered its last call yet, and gets no other"
            " before it has"
        )


def _idle(row: Row) -> str:
    """Return how long a burst is idle, and when it goes."""
    if row["idle"] is None:
        return ""
    left = "" if row["down_in"] is None else f", down in {_span(row['down_in'])}"
    return f"idle {_span(row['idle'])}{left}"


def _span(seconds: float) -> str:
    """Return a duration to the second, such as 4m48s; past an hour, to the minute."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def _known(online: int | None) -> str:
    return "?" if online is None else str(online)


def _notices(found: Row) -> list[str]:
    """Return a line for everything that a person should know of."""
    lines = []
    if found["totals"]["nodes"]:
        lines.append(_bill(found["totals"]))
    if found["daemon"] is None:
        lines.append(_no_daemon(found))
    if found["lead"]["trouble"]:
        lines.append(f"the lead cannot be read: {found['lead']['trouble']}")
    for provider in found["providers"]:
        lines += _notices_of(provider, found["now"])
    if found["held"]:
        lines.append(f"held: {' '.join(found['held'])}")
    for orphan in found["orphans"]:
        lines.append(
            f"orphan {orphan['id']} of {orphan['provider']}: {orphan['why']}; burst gc"
        )
    for key, why in found["unreadable"].items():
        lines.append(f"record {key} cannot be read: {why}")
    return lines


def _bill(totals: Row) -> str:
    """Return how many nodes are rented, and what they cost, if anything."""
    of = f" of {totals['of']}" if totals["of"] else ""
    text = f"{totals['nodes']}{of} nodes"
    if totals["per_hour"] or totals["cost"]:
        text += f", {money(totals['per_hour'])} an hour, {money(totals['cost'])} so far"
    return text


def _notices_of(provider: Row, now: float) -> list[str]:
    lines = []
    name = provider["name"]
    if provider["disabled"]:
        lines.append(
            f"provider {name} is disabled: {provider['disabled']}; burst enable {name}"
        )
    if provider["trouble"]:
        lines.append(f"provider {name}: {provider['trouble']}")
    for offer in provider["offers"]:
        until = offer["set_aside_until"]
        if until and until > now:
            left = fsd(round(until - now))
            lines.append(f"offer {name}/{offer['name']} is set aside for {left}")
    return lines


def _no_daemon(found: Row) -> str:
    live = [row["id"] for row in found["bursts"] if row["state"] != "inactive"]
    lost = f"nobody takes {', '.join(live)} down" if live else "nothing is live"
    return (
        "no daemon serves this lead; this is what is on record, and"
        f" {lost}: start one (burst daemon)"
    )
