# SPDX-License-Identifier: MIT
"""Calls the daemon where one serves the lead, or reads what is on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burst.cli.target import Target
from burst.errors import NoDaemon
from burst.lead import Lead


def call_daemon(
    lead: Lead, method: str, payload: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return what the daemon answers, None where none serves the lead."""
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
    """Return what the daemon answers; without one, the answer of the records.

    The method is one of `burst.cli.offline_records`. Raises BurstError: NoDaemon to a
    guest, who may not read records.
    """
    try:
        return lead.call(method, asked)
    except NoDaemon as error:
        return read_instead(lead, target, method, asked, error)


def read_instead(
    lead: Lead, target: Target, method: str, asked: Mapping[str, Any], error: NoDaemon
) -> dict[str, Any]:
    """Return the answer of the records, as no daemon gave one. Raises BurstError."""
    from burst.cli import offline_records  # noqa: PLC0415 - see there

    return offline_records.answer_from_records(lead, target, method, asked, error)
