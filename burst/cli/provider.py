# SPDX-License-Identifier: MIT
"""`burst provider check`: tests whether a site's program keeps a provider's rules."""

from __future__ import annotations

import secrets
import sys

import click

from burst.cli.doctor import print_findings
from burst.cli.help_texts import CommandGroup
from burst.cli.signals import signals_as_ctrl_c
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_provider
from burst.config import Settings
from burst.errors import ConfigError
from burst.model.finding import Level
from burst.provider import Provider
from burst.runtime.provider_registry import load_provider


@click.group(cls=CommandGroup)
def provider() -> None:
    """Test a provider."""


@provider.command()
@click.argument("name", shell_complete=complete_provider)
@target_options
def check(name: str, target: Target) -> None:
    """Test the program of provider NAME: have it begin, list and end two nodes.

    It is for providers of type "command". No lead is needed: each node runs a small
    script in place of Flux. All that is made is deleted again. The exit status is 1 if
    the program breaks a rule.
    """
    made = _make(target.settings(), name)
    if not made.has("check"):
        raise ConfigError(
            f"provider {name} has no program of the site to test",
            f"burst doctor --provider {name} checks what it needs",
        )
    with signals_as_ctrl_c():
        found = made.check(lambda line: click.echo(line, err=True))
    print_findings(found)
    sys.exit(any(finding.level is Level.WRONG for finding in found))


def _make(settings: Settings, name: str) -> Provider:
    """Return the provider with an owner of its own, so that it sees no other bursts."""
    table = settings.providers.get(name)
    if table is None or not table.enabled:
        enabled = [key for key, each in settings.providers.items() if each.enabled]
        raise ConfigError(
            f"there is no enabled provider {name!r} in the settings",
            f"there are {', '.join(enabled) or 'none'}; use -c to name other settings",
        )
    return load_provider(name, table, f"check-{secrets.token_hex(3)}")
