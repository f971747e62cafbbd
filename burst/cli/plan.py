# SPDX-License-Identifier: MIT
"""`burst plan`: what would be bursted now."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from burst.cli.daemon_call import call_daemon
from burst.cli.listing import (
    Column,
    Listing,
    listing_options,
    print_json,
    print_rows,
    print_text,
)
from burst.cli.plan_timeline import Row, timeline_lines, write_picture
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.errors import BurstError
from burst.model.burst import PRICE_SOURCES
from burst.runtime.offline import read_snapshot
from burst.runtime.service_answers import plan as plan_of

JOBS = (
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
    Column(
        "PRICE", lambda row: PRICE_SOURCES[row["priced_by"]] if row["price"] else "-"
    ),
    Column("JOBS", lambda row: ",".join(row["jobs"])),
)


@click.command()
@target_options
@listing_options
@click.option(
    "--timeline",
    is_flag=True,
    help="Draw the next hours of each rank slot: the bursts that have its ranks, until"
    " when by time limits and leases, the jobs that get them next, and the bursts that"
    " would be made now.",
)
@click.option(
    "--svg",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the timeline as a picture: .svg, .png or .pdf.",
)
def plan(target: Target, listing: Listing, timeline: bool, svg: Path | None) -> None:
    """Show which bursts would be made now, at what price, and why other jobs wait.

    A dry run of the planner. It asks providers for their offers and changes nothing.
    """
    if (timeline or svg) and (listing.as_json or listing.form):
        raise click.UsageError("--timeline and --svg cannot be used with --json or -o")
    with target.lead() as lead, show_wait("reading the lead and the offers"):
        found = call_daemon(lead, "plan")
        if found is None:
            found = plan_of(read_snapshot(lead, target.settings_or_say()))
    if listing.as_json:
        print_json(found)
        return
    if found["trouble"]:
        raise BurstError(f"the lead cannot be read: {found['trouble']}")
    if timeline or svg:
        _show_timeline(found["timeline"], found["now"], svg)
        return
    _show_tables(found, listing)


def _show_tables(found: Row, listing: Listing) -> None:
    if listing.form is not None:
        print_rows(found["jobs"], JOBS, listing)
        return
    if found["bursts"]:
        print_rows(found["bursts"], _BURSTS, listing)
        usage = dict.fromkeys(row["usage"] for row in found["bursts"])
        for line in filter(None, usage):
            click.echo(line)
    else:
        click.echo("nothing to burst")
    if found["jobs"]:
        click.echo()
        print_rows(found["jobs"], JOBS, listing)
    for job in found["jobs"]:
        for refusal in job["refusals"]:
            print_text([f"{job['id']}: {refusal['offer']}: {refusal['why']}"])


def _show_timeline(rows: Sequence[Row], now: float, svg: Path | None) -> None:
    if not rows:
        click.echo("the lead declares no rank slots")
    elif svg is not None:
        write_picture(svg, rows, now)
        click.echo(f"wrote {svg}")
    else:
        width = shutil.get_terminal_size().columns
        for line in timeline_lines(rows, now, width):
            click.echo(line)
