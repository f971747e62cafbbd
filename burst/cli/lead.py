# SPDX-License-Identifier: MIT
"""`burst lead`: the group of commands that prepare or start a lead."""

from __future__ import annotations

import click


@click.group()
def lead() -> None:
    """Prepare or start a lead: the instance to burst from."""
