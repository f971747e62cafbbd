# SPDX-License-Identifier: MIT
"""What runs beside the ticks of an engine on threads of its own, and what counts."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from burst.core.records import Records
from burst.model.burst import BurstId
from burst.runtime.bank_reader import BankReader
from burst.runtime.forecaster import Forecaster
from burst.runtime.ledger_archiver import LedgerArchiver
from burst.runtime.notifier import Notifier
from burst.runtime.subuid_file import SubuidFile
from burst.runtime.tally import Tally


class NeedsBursts(Protocol):
    """A package that runs beside the engine: see `RunningPackage`."""

    def needed(self, records: Records) -> frozenset[BurstId]:
        """Return bursts whose record is still needed once they have ended."""
        ...


class SideThreads(NamedTuple):
    """Each may be missing; then the engine does without what it tells."""

    forecaster: Forecaster | None = None
    archiver: LedgerArchiver | None = None
    banks: BankReader | None = None
    tally: Tally | None = None
    notifier: Notifier | None = None
    subuids: SubuidFile | None = None
    """It has no thread: it is read in each tick."""
    packages: Collection[NeedsBursts] = ()


NO_SIDE_THREADS = SideThreads()
