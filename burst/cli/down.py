# SPDX-License-Identifier: MIT
"""`burst down`: takes one burst down."""

from __future__ import annotations

import click

from burst.cli.complete_names import complete_burst
from burst.cli.progress import show_wait
from burst.cli.tags import tell_of_tag
from burst.cli.target import Target, target_options
from burst.cli.wait_for_burst import wait_for_burst


@click.command()
@click.argument("burst_id", metavar="BURST", shell_complete=complete_burst)
@click.option("--note", default="", help="Reason, kept in the record.")
@click.option(
    "--provider",
    default="",
    help="Provider that made it, where its record cannot be read.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Do not wait for pods on a dead node. Use it only if nothing runs there: a"
    " follower that goes on would disturb the next one of its rank.",
)
@click.option("--no-wait", is_flag=True, help="Return without waiting for the end.")
@target_options
def down(burst_id: str, target: Target, *, no_wait: bool, **asked: str | bool) -> None:
    """Take a BURST down, once the jobs that run on it have ended.

    Also takes down a burst whose record cannot be read. With --force jobs are waited
    for, too.
    """
    with target.lead() as lead:
        with show_wait("waiting for the daemon"):
            found = lead.call("down", {"burst": burst_id, **asked}, timeout=60.0)
        tell_of_tag(found)
        if no_wait:
            click.echo(f"{burst_id} is being taken down")
        else:
            wait_for_burst(lambda: lead.call("status", {}), burst_id, until="inactive")
