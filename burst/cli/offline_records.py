# SPDX-License-Identifier: MIT
"""Reads what a daemon left on record, where none serves the lead."""

from __future__ import annotations

from burst.cli.target import Target
from burst.errors import Denied, NoDaemon
from burst.lead import Lead
from burst.runtime.offline import read_records_snapshot
from burst.runtime.snapshot import Snapshot


def read_records(lead: Lead, target: Target, error: NoDaemon) -> Snapshot:
    """Return the records and the lead as it is; raises the error to a guest."""
    try:
        return read_records_snapshot(lead, target.settings())
    except Denied:
        raise error from None
