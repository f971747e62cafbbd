# SPDX-License-Identifier: MIT
"""Ends followers: SIGTERM, repeated until they end, and SIGKILL after a grace time."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterable
from itertools import chain

from burst.kits.broker import find_gateways
from burst_local.burst_dirs import BurstDirectory
from burst_local.cgroups import Cgroups
from burst_local.members import FollowerProcesses, Followers
from burst_local.processes import Process, ProcessIdentity, may_signal, send

GRACE_S = 10.0
"""Seconds from SIGTERM to SIGKILL. One broker leaves in 0.2 s, 64 brokers in 6 s."""
# Seconds until SIGTERM is repeated: a Flux broker that is starting ignores it, and one
# that is shutting down is faster after a second one.
_ASK_AGAIN = 2.0


class Stopper:
    """Sends signals to processes of bursts. Never waits."""

    def __init__(
        self, clock: Callable[[], float], grace: float, cgroups: Cgroups
    ) -> None:
        self._clock = clock
        self._grace = grace
        self._cgroups = cgroups
        self._asked: dict[str, dict[ProcessIdentity, float]] = {}
        """When each process got its last SIGTERM, by burst."""
        self._first: dict[str, dict[ProcessIdentity, float]] = {}
        """When each process of a follower that leaves got its first, by burst."""

    def stop(
        self, place: BurstDirectory, followers: Followers, *, overdue: bool
    ) -> None:
        """Send signals to the processes that are to end next."""
        if overdue:
            send(signal.SIGKILL, _ours(followers.values()))
            self._cgroups.kill(place.id, followers)
            return
        spec = place.spec()
        gateways = find_gateways(spec.lead, spec.hosts) if spec else ()
        # A broker whose gateway has ended before may not end on SIGTERM.
        behind = [m for host, m in followers.items() if host not in gateways]
        self._terminate(place, behind or followers.values())

    def stop_some(self, place: BurstDirectory, followers: Followers) -> None:
        """Send signals to the followers that leave a burst as it shrinks.

        After a restart of the daemon they get the grace time again.
        """
        now = self._clock()
        first = self._first.setdefault(place.id, {})
        late: dict[str, list[Process]] = {}
        for host, members in followers.items():
            for process in members.all:
                since = first.setdefault(process.identity, now)
                if now - since >= self._grace:
                    late.setdefault(host, []).append(process)
        send(signal.SIGKILL, filter(may_signal, chain.from_iterable(late.values())))
        self._cgroups.kill(place.id, late)
        self._terminate(place, followers.values())

    def forget(self, place: BurstDirectory) -> None:
        """Forget a burst that is gone."""
        self._asked.pop(place.id, None)
        self._first.pop(place.id, None)

    def _terminate(
        self, place: BurstDirectory, followers: Iterable[FollowerProcesses]
    ) -> None:
        ask: list[Process] = [
            process
            for members in followers
            for process in _ours([members])
            # Jobs have their own process groups; the broker ends them while it lives.
            if members.leader is None or process.group == members.leader.group
        ]
        now = self._clock()
        asked = self._asked.setdefault(place.id, {})
        again = [p for p in ask if now - asked.get(p.identity, -math.inf) >= _ASK_AGAIN]
        send(signal.SIGTERM, again)
        asked.update((process.identity, now) for process in again)


def _ours(followers: Iterable[FollowerProcesses]) -> list[Process]:
    """Return the followers, and the processes they started that we may signal.

    Guests' jobs and their IMPs are left out: the broker ends them, or they see it end.
    """
    found: list[Process] = []
    for members in followers:
        found += [members.leader] if members.leader else []
        found += [process for process in members.others if may_signal(process)]
    return found
