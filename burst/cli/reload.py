# SPDX-License-Identifier: MIT
"""`burst reload`: has the daemon read its settings again."""

from __future__ import annotations

import click

from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options


@click.command()
@target_options
def reload(target: Target) -> None:
    """Have the daemon read its settings again (as SIGHUP does)."""
    with target.lead() as lead, show_wait("waiting for the daemon"):
        found = lead.call("reload", {}, timeout=120.0)
    click.echo(f"reloaded; changed: {', '.join(found['changed']) or 'nothing'}")
    for name in found["late"]:
        click.echo(
            f"provider {name} has not answered its last call yet; it is called again"
            " after that"
        )
