# SPDX-License-Identifier: MIT
"""Checks whether an intake mode suits an instance; for setup, adopt and lead check."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from burst.cli.progress import show_wait
from burst.config import IntakeSettings
from burst.errors import Denied, LeadError, LeadGone
from burst.flux.frobnicator import check_enabled
from burst.flux.owner_rights import owner_rights
from burst.flux_setup.expected_scheduler import check_compatible, find_fluxion
from burst.flux_setup.running_instance import RunningInstance, read_instance


def try_running(uri: str) -> tuple[RunningInstance | None, str]:
    """Return what the instance reports; None, with a message, if it does not answer.

    Also return why an instance that may run was not read, empty for no reason.
    """
    try:
        with owner_rights(uri), show_wait("reading the lead's queues and scheduler"):
            return read_instance(uri), ""
    except (Denied, LeadError) as error:
        click.echo(f"its queues and scheduler are not known: {error}")
        gone = isinstance(error, LeadGone) or _has_no_socket(uri)
        return None, "" if gone else error.what


def _has_no_socket(uri: str) -> bool:
    """Tell whether no broker can run at this URI, also where Flux cannot be asked."""
    path = uri.removeprefix("local://")
    try:
        os.lstat(path)
    except OSError as error:
        # Another error may hide a socket.
        return path != uri and isinstance(error, FileNotFoundError)
    return False


def check_intake(
    tables: Mapping[str, Any], running: RunningInstance | None, intake: IntakeSettings
) -> None:
    """Raise ConfigError if an instance with these tables cannot use the intake mode."""
    check_enabled(tables)
    has_fluxion = running is None and find_fluxion()
    check_compatible(tables, running, intake, has_fluxion=has_fluxion)
