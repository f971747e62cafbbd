# SPDX-License-Identifier: MIT
"""Logs orphans after SURE_AFTER; on request deletes them until NotFound."""

from __future__ import annotations

import math
import queue
from collections.abc import Iterable, Mapping

from burst import log
from burst.core.orphans import SURE_AFTER, Orphan
from burst.core.provider_health import Outcome
from burst.core.records import Records
from burst.core.world import World
from burst.runtime.last_call import ProviderBurst
from burst.runtime.provider_tracker import ProviderTracker


class OrphanReaper:
    """Logs and deletes orphans. Use from one thread, except `request`."""

    def __init__(self, tracker: ProviderTracker) -> None:
        self._tracker = tracker
        self._suspects: dict[ProviderBurst, float] = {}
        self._going: set[ProviderBurst] = set()
        """Orphans to delete, as a person asked for it."""
        self._asked: queue.SimpleQueue[ProviderBurst] = queue.SimpleQueue()

    def request(self, orphans: Iterable[Orphan]) -> None:
        """Have these orphans deleted from the next tick on. From any thread."""
        for orphan in orphans:
            self._asked.put((orphan.provider, orphan.burst))

    def tick(
        self, orphans: tuple[Orphan, ...], records: Records, world: World, now: float
    ) -> float:
        """Log orphans seen for SURE_AFTER, and call `reap` where that is due.

        Returns when the next call is due.
        """
        seen = {(orphan.provider, orphan.burst): orphan for orphan in orphans}
        self._suspects = {key: self._suspects.get(key, now) for key in seen}
        for key, orphan in seen.items():
            if now - self._suspects[key] < SURE_AFTER or key in self._going:
                continue
            self._suspects[key] = now
            log.warn(
                "%s: orphan of provider %s: %s; burst gc lists it, with --yes it"
                " deletes it",
                orphan.burst,
                orphan.provider,
                orphan.why,
            )
        while not self._asked.empty():
            self._begin(self._asked.get())
        self._end(seen, records, world, now)
        again = (self._tracker.reap_orphan(*key, now) for key in self._going)
        return min(again, default=math.inf)

    def _begin(self, key: ProviderBurst) -> None:
        if key not in self._going:
            self._tracker.forget_orphan(key)
        self._going.add(key)

    def _end(
        self,
        seen: Mapping[ProviderBurst, Orphan],
        records: Records,
        world: World,
        now: float,
    ) -> None:
        """Forget orphans that are deleted, and those that are orphans no more."""
        for key, call in self._tracker.orphans.items():
            if key not in self._going:
                if key not in seen:
                    self._tracker.forget_orphan(key)
            elif call.outcome is Outcome.NOT_FOUND:
                # The provider may still list it for a while; SURE_AFTER begins again.
                self._going.remove(key)
                self._suspects[key] = now
        for key in list(self._going):
            burst = records.bursts.get(key[1])
            if key[0] not in world.providers or (burst is not None and burst.live):
                self._going.remove(key)
