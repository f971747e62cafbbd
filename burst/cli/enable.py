# SPDX-License-Identifier: MIT
"""`burst enable`: uses a disabled provider again."""

from __future__ import annotations

import click

from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_provider


@click.command()
@click.argument("provider", shell_complete=complete_provider)
@target_options
def enable(provider: str, target: Target) -> None:
    """Use PROVIDER again after it failed or was disabled."""
    with target.lead() as lead, show_wait("waiting for the daemon"):
        lead.call("enable", {"provider": provider})
    click.echo(f"{provider} is tried again from now on")
