# SPDX-License-Identifier: MIT
"""What a tick saw and decided, for answers to requests.

Without a daemon the command line makes a snapshot of what it reads itself
(`offline.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.config import Settings
from burst.core.jobs.refusal_cache import RefusalCache
from burst.core.orphans import Orphan
from burst.core.records import Records
from burst.core.world import LastCall, World
from burst.model.decision import Decision
from burst.model.jobid import JobId
from burst.runtime.forecast_pass import Forecasts
from burst.runtime.last_call import ProviderBurst
from burst.runtime.ledger_archive import LedgerArchive


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What the last tick saw and decided. Immutable, so any thread may read it."""

    now: float
    records: Records
    world: World
    settings: Settings
    decisions: Mapping[JobId, Decision]
    refusal_cache: RefusalCache | None = None
    """Refusals that hold until something changes, so they need not be decided again."""
    orphans: tuple[Orphan, ...] = ()
    reaps: Mapping[ProviderBurst, LastCall] = {}
    """The last call for each orphan that is or was deleted."""
    forecasts: Forecasts | None = None
    """When jobs are expected to start on own nodes; None if that is not known."""
    untold: Mapping[str, str] = {}
    """By key of `[notify]`: why the last notice could not be told."""
    standing: Mapping[str, str] = {}
    """By the text of a standing minimum: why it lacks nodes."""
    archive: LedgerArchive | None = None
    """The archive of settled bursts, also those on record no more; None for none."""
