# SPDX-License-Identifier: MIT
"""What runs beside the ticks of an engine on threads of its own, and what counts."""

from __future__ import annotations

from typing import NamedTuple

from burst.runtime.bank_reader import BankReader
from burst.runtime.forecaster import Forecaster
from burst.runtime.ledger_archiver import LedgerArchiver
from burst.runtime.notifier import Notifier
from burst.runtime.subuid_file import SubuidFile
from burst.runtime.tally import Tally


class SideThreads(NamedTuple):
    """Each may be missing; then the engine does without what it tells."""

    forecaster: Forecaster | None = None
    archiver: LedgerArchiver | None = None
    banks: BankReader | None = None
    tally: Tally | None = None
    notifier: Notifier | None = None
    subuids: SubuidFile | None = None
    """It has no thread: it is read in each tick."""


NO_SIDE_THREADS = SideThreads()
