# SPDX-License-Identifier: MIT
"""`burst lead`: the group of commands that prepare or start a lead."""

from __future__ import annotations

import click

from burst.cli.help_texts import CommandGroup


@click.group(cls=CommandGroup)
def lead() -> None:
    """Prepare or start a lead: the instance to burst from."""
