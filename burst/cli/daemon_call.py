# SPDX-License-Identifier: MIT
"""Calls the daemon where one serves the lead."""

from __future__ import annotations

from typing import Any

from burst.errors import NoDaemon
from burst.lead import Lead


def call_daemon(
    lead: Lead, method: str, payload: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return what the daemon answers, None where none serves the lead."""
    try:
        return lead.call(method, payload or {}, timeout=60.0)
    except NoDaemon:
        return None
