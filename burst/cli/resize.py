# SPDX-License-Identifier: MIT
"""`burst resize`: has a burst grow or shrink."""

from __future__ import annotations

import click

from burst.cli.tags import tell_of_tag
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_burst, find_burst
from burst.cli.wait_for_burst import Row, watch_resize


@click.command()
@click.argument("typed", metavar="BURST", shell_complete=complete_burst)
@click.argument("nodes", type=int)
@click.option("--note", default="", help="Reason, kept in the record.")
@click.option("--no-wait", is_flag=True, help="Return without waiting for the end.")
@target_options
def resize(typed: str, nodes: int, target: Target, *, note: str, no_wait: bool) -> None:
    """Have BURST grow or shrink to NODES nodes while jobs run on it.

    BURST is an id, a prefix of one, or `last`: the burst made last.

    It grows by free ranks of its rank slot above its last rank. When it shrinks, its
    last ranks are drained, and jobs that run there continue to their end. To cancel a
    growth that has not ended, give the previous number of nodes.
    """
    with target.lead() as lead:

        def look() -> Row:
            return lead.call("status", {})

        burst = find_burst(typed, look)
        asked = {"burst": burst, "nodes": nodes, "note": note}
        told = lead.call("resize", asked)
        tell_of_tag(told)
        if no_wait:
            click.echo(told["text"])
        else:
            watch_resize(look, burst, nodes, [told["text"]])
