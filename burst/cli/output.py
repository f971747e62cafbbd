# SPDX-License-Identifier: MIT
"""`burst output`: what a job wrote in its isolated burst."""

from __future__ import annotations

import click

from burst.cli.listing import Row
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_isolated


@click.command()
@click.argument("name", metavar="JOB|BURST", shell_complete=complete_isolated)
@target_options
def output(name: str, target: Target) -> None:
    """Print the output of a JOB that has ended in its isolated burst.

    Prints the last 256 KiB of standard output and error, as long as the burst is on
    record. The exit status is that of the job.
    """
    with target.lead() as lead, show_wait("waiting for the daemon"):
        found = lead.call("output", {"id": name})
    show_output(found)


def show_output(found: Row) -> None:
    """Print the output, and exit with the job's status unless it is 0."""
    click.echo(found["text"], nl=False)
    if found["exit_status"]:
        raise SystemExit(found["exit_status"])
