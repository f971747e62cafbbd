# SPDX-License-Identifier: MIT
"""Calls the daemon that serves the lead, or reads the records if there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burst.cli.target import Target
from burst.errors import NoDaemon
from burst.lead import Lead


def call_daemon(
    lead: Lead, method: str, payload: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the daemon's answer; None if no daemon serves the lead."""
    try:
        return lead.call(method, payload or {})
    except NoDaemon:
        return None


def ask_or_read(
    lead: Lead,
    target: Target,
    method: str,
    asked: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """Return the daemon's answer; if there is no daemon, an answer from the records.

    The method is one of `burst.cli.offline_records`. Raises BurstError: NoDaemon for a
    guest, who may not read records.
    """
    try:
        return lead.call(method, asked)
    except NoDaemon as error:
        return read_instead(lead, target, method, asked, error)


def read_instead(
    lead: Lead, target: Target, method: str, asked: Mapping[str, Any], error: NoDaemon
) -> dict[str, Any]:
    """Return an answer from the records, as there is no daemon. Raises BurstError."""
    from burst.cli import offline_records  # noqa: PLC0415 - see there

    return offline_records.answer_from_records(lead, target, method, asked, error)
