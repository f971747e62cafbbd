# SPDX-License-Identifier: MIT
"""The command `burst watch`: a live screen on a terminal, else one printed status."""

from __future__ import annotations

import os
import sys

import click

from burst.cli.daemon_call import ask_or_read
from burst.cli.listing import Listing, print_rows
from burst.cli.target import Target, target_options
from burst.errors import BurstError
from burst.model.printable import printable
from burst_watch.rows import STATUS, WIDE, headline, sections, troubles


@click.command()
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3600.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Seconds between two requests to the daemon.",
)
@target_options
def watch(every: float, target: Target) -> None:
    """Show waiting jobs, bursts and their cost, live.

    Keys explain the selected row, take a burst down, or release a job; ? lists them.
    Users other than the instance owner see their own jobs and bursts. If the daemon
    does not answer, the screen says so, and the requests are repeated. If the output is
    not a terminal, or a terminal that cannot move its cursor, the status is printed
    once.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty() and _has_cursor()):
        _print_once(target)
        return
    try:
        # Textual takes half a second to import, and may be missing.
        from burst_watch.app import WatchApp  # noqa: PLC0415
    except ImportError as error:
        raise BurstError(
            f"burst watch needs Textual: {error}",
            "pip install 'flux-burst-orchestrator[watch]'",
        ) from error
    app = WatchApp(target.lead, every)
    app.run()
    # Textual leaves None where an error ended it, as a key that is not UTF-8.
    sys.exit(1 if app.return_code is None else app.return_code)


def _has_cursor() -> bool:
    return os.environ.get("TERM", "") not in {"dumb", "unknown"}


def _print_once(target: Target) -> None:
    with target.lead() as lead:
        found = ask_or_read(lead, target, *STATUS)
    told = (f"burst watch  {found['lead']['uri']}", headline(found))
    for line in (*told, *troubles(found, "")):
        click.echo(printable(line))
    for section in sections(found, WIDE):
        click.echo()
        print_rows(section.rows, section.columns, Listing())
    click.echo(
        "this is not a terminal with a cursor, so the tables are shown once; burst"
        " status has --json",
        err=True,
    )
