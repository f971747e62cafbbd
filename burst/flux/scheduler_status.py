# SPDX-License-Identifier: MIT
"""Asks what the scheduler knows and has allocated, when that may have changed.

Fluxion walks its graph for each answer to `sched.resource-status` and does nothing else
meanwhile: a tenth of a second for 2,000 nodes. So it is asked only after something
happened, and at most for a hundredth of its time. Between two answers the last one is
used, on the safe side: a rank that was drained since counts as allocated until the
scheduler has been asked again.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from burst import log
from burst.errors import Unreadable
from burst.flux.node_set import NodeSet, parse_nodes, without
from burst.flux.rpc import RpcClient, ServiceMissing
from burst.flux.scheduler import read_scheduler
from burst.model.fsd import format_fsd
from burst.model.ranks import format_idset, parse_idset

HEARD_DEADLINE_S = 5.0
"""How long the scheduler may take to learn of a drain; it takes a millisecond."""
SHARE = 0.01
"""The share of the scheduler's time that answering us may take."""
LONGEST_PAUSE_S = 60.0
"""The longest pause before a request, even if the scheduler took long to answer: it may
have been busy with jobs, which we cannot see."""
OLDEST_S = 60.0
"""How long an answer is used at most, even if nothing seems to have happened."""
TOLD_S = 10.0
"""How long it takes at most to notice that Flux's resource module was reloaded."""
GRANT_DEADLINE_S = 60.0
"""How long a scheduler may take to tell the job manager of an allocation: it commits R
to the KVS before."""

_SAMPLES = 5
"""The shortest of so many answers counts: in longer ones, other work was done, too."""

Cores = Mapping[int, frozenset[int]]
"""Ids of cores by rank."""
_NOTHING = NodeSet({}, {})
_TOPIC = "sched.resource-status"
_TOLD_TOPIC = "resource.sched-status"
"""What Flux's resource module tells schedulers. The job manager is asked for part of
the answer, so this is asked for less often."""


class Allocations(NamedTuple):
    """What is known of the scheduler's ranks and allocations."""

    known: frozenset[int]
    """Ranks that the scheduler knows, and so may give to jobs, and of which it is told
    when they are up. After `flux resource reload` Flux tells it of no rank that was
    down since, even if it is loaded again (`lost` in monitor.c of the resource
    module)."""
    unheard: frozenset[int]
    """Drained ranks that it may still give to a job, as far as we know."""
    granting: NodeSet
    """What it has given to jobs, but the job manager does not show yet."""
    pause: float
    """How long `granting` is used after an answer, in seconds."""
    unfreed: NodeSet
    """What it keeps allocated for jobs that have ended; not in `granting`."""


class SchedulerStatus:
    """Asks the scheduler, and remembers what it said. For one thread."""

    def __init__(
        self,
        lost_frees: LostFrees | None = None,
        clock: Callable[[], float] = time.monotonic,
        heard_deadline_s: float = HEARD_DEADLINE_S,
    ) -> None:
        self._lost_frees = lost_frees or LostFrees()
        self._clock, self._heard_deadline_s = clock, heard_deadline_s
        self._seen: tuple[Any, ...] | None = None
        """The state when the scheduler was last asked; None if it never was."""
        self._asked_at = self._pause = 0.0
        self._told: frozenset[int] = frozenset()
        """The ranks that the resource module tells the scheduler of."""
        self._told_at = -math.inf
        self._took: deque[float] = deque(maxlen=_SAMPLES)
        self._moved = False
        self._heard: dict[int, Any] = {}
        """Drained ranks that the scheduler gives to no job, and their drains."""
        self._unheard_since: float | None = None
        self._known: frozenset[int] = frozenset()
        self._only = self._granting = self._unfreed = _NOTHING
        self._waiting = False

    @property
    def due_in(self) -> float | None:
        """Seconds until `read` is to be called again, to learn whether the scheduler
        has heard of a drain. None: no need.
        """
        left = self._asked_at + self._pause - self._clock()
        return max(0.0, left) if self._waiting else None

    def forget(self, ranks: Collection[int]) -> None:
        """Forget that the scheduler heard of drains of these ranks, which we change."""
        for rank in ranks:
            self._heard.pop(rank, None)

    def read(
        self,
        client: RpcClient,
        status: Mapping[str, Any],
        manager: Mapping[str, Any],
        *,
        moved: bool = True,
    ) -> Allocations:
        """Return what is known, after asking the scheduler if that is due.

        `status` is the answer to `resource.status`, `manager` that of the job manager
        to its `resource-status`, both read before; `moved` tells whether there were
        events of jobs since the last call. Raises Unreadable.
        """
        drained = _drains(status)
        seen = (status["online"], status["exclude"], drained, manager["allocated"])
        by_manager = parse_nodes(manager["allocated"])
        # Once the job manager has shown an allocation, it also tells of its end.
        self._only = without(self._only, by_manager)
        self._sort(client)
        unheard = self._unheard(drained)
        now = self._clock()
        stale = seen != self._seen or now - self._asked_at > OLDEST_S
        self._moved |= moved or stale or bool(self._granting.cores) or bool(unheard)
        if self._seen is None or (self._moved and now >= self._asked_at + self._pause):
            changed = self._seen is None or seen[:2] != self._seen[:2]
            if changed or now - self._told_at > TOLD_S:
                self._told = parse_nodes(_answer(client, _TOLD_TOPIC)["all"]).ranks
                self._told_at = now
            self._ask(client, drained, by_manager)
            self._seen = seen
        unheard = self._unheard(drained)
        self._waiting = bool(unheard)
        return Allocations(
            known=self._known,
            unheard=unheard,
            granting=self._granting,
            pause=self._pause,
            unfreed=self._unfreed,
        )

    def _unheard(self, drained: Mapping[int, Any]) -> frozenset[int]:
        others = self._known.intersection(drained)
        return frozenset(r for r in others if self._heard.get(r) != drained[r])

    def _ask(
        self, client: RpcClient, drained: Mapping[int, Any], by_manager: NodeSet
    ) -> None:
        began = self._clock()
        scheduler = _answer(client, _TOPIC)
        self._asked_at = self._clock()
        self._took.append(self._asked_at - began)
        self._pause = min(min(self._took) / SHARE, LONGEST_PAUSE_S)
        self._known = parse_nodes(scheduler["all"]).ranks & self._told
        down = parse_nodes(scheduler["down"]).ranks
        self._heard = {rank: at for rank, at in drained.items() if rank in down}
        self._check_heard(self._known.intersection(drained) - down)
        # A scheduler allocates, commits R to the KVS, and only then answers the job
        # manager.
        self._only = without(parse_nodes(scheduler["allocated"]), by_manager)
        self._sort(client)
        self._moved = self._unheard_since is not None

    def _sort(self, client: RpcClient) -> None:
        """Split what only the scheduler has: granted to a job now, or for too long."""
        only = self._only
        lost = self._lost_frees.update(
            only.cores, lambda: read_scheduler(client).reload
        )
        self._granting = without(only, NodeSet(lost, {}))
        left = only.gpus.keys() - self._granting.cores.keys()
        self._unfreed = NodeSet(lost, {rank: only.gpus[rank] for rank in left})

    def _check_heard(self, unheard: frozenset[int]) -> None:
        if not unheard:
            self._unheard_since = None
            return
        if self._unheard_since is None:
            self._unheard_since = self._asked_at
        elif self._asked_at - self._unheard_since > self._heard_deadline_s:
            raise Unreadable(
                "the scheduler has not learned that"
                f" {format_idset(unheard)} is drained",
                "flux module stats of the scheduler shows whether it is stuck",
            )


class LostFrees:
    """Remembers since when cores are allocated by the scheduler alone.

    The job manager tells a scheduler of the end of an allocation only while the
    scheduler is online (`alloc_send_free_request` in src/modules/job-manager/alloc.c).
    While a scheduler is being loaded, it is told of all jobs that have an allocation.
    If such a job ends before the scheduler is ready, the scheduler is never told, and
    keeps the job's cores allocated until it is loaded again. This happens after a lead
    was killed and started again, if jobs fail at once. A scheduler also has cores
    allocated before the job manager knows of it, but for milliseconds only.
    """

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
            log.warn(
                "the scheduler has cores of ranks %s allocated for %s, and the job"
                " manager has no job there: they count as unused, but get no jobs until"
                " the scheduler is loaded again: %s",
                format_idset(ranks),
                format_fsd(self._limit_s),
                reload(),
            )
        self._told = ranks


def _answer(client: RpcClient, topic: str) -> dict[str, Any]:
    try:
        return client.ask(topic)
    except ServiceMissing:
        raise Unreadable(
            "no scheduler is loaded",
            "run flux modprobe load with the scheduler of this site",
        ) from None


def _drains(status: Mapping[str, Any]) -> dict[int, Any]:
    """Return each drained rank, and when and why it was drained.

    The time is in whole seconds: a rank that is soon drained again has the same.
    """
    return {
        rank: (info.get("timestamp"), info.get("reason"))
        for ranks, info in status["drain"].items()
        for rank in parse_idset(ranks)
    }
