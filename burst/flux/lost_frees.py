# SPDX-License-Identifier: MIT
"""Finds cores that the scheduler keeps allocated for jobs that have ended.

The job manager tells a scheduler of the end of an allocation only while the scheduler
is online (`alloc_send_free_request` in src/modules/job-manager/alloc.c). While a
scheduler is being loaded, it is told of all jobs that have an allocation. If such a job
ends before the scheduler is ready, the scheduler is never told, and keeps the job's
cores allocated until it is loaded again. This happens after a lead was killed and
started again, if jobs fail at once. A scheduler also has cores allocated before the job
manager knows of it, but for milliseconds only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from burst import log
from burst.model.fsd import format_fsd
from burst.model.ranks import format_idset

GRANT_DEADLINE_S = 60.0
"""How long a scheduler may take to tell the job manager of an allocation: it commits R
to the KVS before."""

Cores = Mapping[int, frozenset[int]]
"""Ids of cores by rank."""


class LostFrees:
    """Remembers since when cores are allocated by the scheduler alone."""

    def __init__(
        self,
        limit_s: float = GRANT_DEADLINE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s, self._clock = limit_s, clock
        self._since: dict[tuple[int, int], float] = {}
        self._told: frozenset[int] = frozenset()

    def update(self, scheduler_only: Cores, reload: Callable[[], str]) -> Cores:
        """Take in cores that only the scheduler has allocated; return the lost ones.

        A core is lost once this has been so for longer than the limit. Says so in the
        log, with the commands that load the scheduler again, as `reload` returns them.
        """
        now = self._clock()
        self._since = {
            (rank, core): self._since.get((rank, core), now)
            for rank, cores in scheduler_only.items()
            for core in cores
        }
        lost: dict[int, frozenset[int]] = {}
        for (rank, core), since in self._since.items():
            if now - since > self._limit_s:
                lost[rank] = lost.get(rank, frozenset()) | {core}
        self._tell(frozenset(lost), reload)
        return lost

    def _tell(self, ranks: frozenset[int], reload: Callable[[], str]) -> None:
        if ranks - self._told:
            log.say(
                "the scheduler has cores of ranks %s allocated for %s, and the job"
                " manager has no job there: they count as unused, but get no jobs until"
                " the scheduler is loaded again: %s",
                format_idset(ranks),
                format_fsd(self._limit_s),
                reload(),
                level=logging.WARNING,
            )
        self._told = ranks
