# SPDX-License-Identifier: MIT
"""How long a burst will take to come online and to be taken down.

Times are learnt from the bursts' own events, in the transaction that records them. They
are among the records, so that they outlive the bursts and the daemon:

    times = OnlineTimes(records.times)
    times.online("gke", "n2", 8)      # OnlineTime: p50, p90, from how many bursts
    times.teardown("gke", "n2", 8)    # seconds

If no burst of the size class is known, all bursts of the offer count; if there is none
of these either, use `Offer.join_time`. Nothing is learnt from bursts that never came
online.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from burst.core.records import Transaction
from burst.core.worth.estimate import OnlineTime
from burst.core.worth.stage_times import ProviderTimes, kind_of, quantile
from burst.model.burst import Burst

_Stage = Literal["online", "teardown"]
_OUT_OF_USE = ("drained", "finish", "exception")
"""Events after which a burst only has to be deleted."""


class OnlineTimes:
    """The times to expect of bursts, by the times that past bursts took."""

    def __init__(self, times: Mapping[str, ProviderTimes]) -> None:
        """`times` are `Records.times`: by provider."""
        self._times = times

    def online(self, provider: str, offer: str, nodes: int) -> OnlineTime | None:
        """Return how long such a burst takes to be online; None if none ever was."""
        return _online_time(self._samples(provider, offer, nodes, "online"))

    def of_offer(self, provider: str, offer: str) -> OnlineTime | None:
        """Return how long bursts of any size take to be online; None if none was."""
        return _online_time(self._of_offer(provider, offer, "online"))

    def teardown(self, provider: str, offer: str, nodes: int) -> float:
        """Return for how many seconds such a burst costs money after its use has ended.

        This is the median; 0 if no burst of the offer was taken down yet.
        """
        samples = self._samples(provider, offer, nodes, "teardown")
        return quantile(samples, 0.5) if samples else 0.0

    def _samples(
        self,
        provider: str,
        offer: str,
        nodes: int,
        stage: _Stage,
    ) -> Sequence[float]:
        known = self._times.get(provider, ProviderTimes()).kinds
        same = known.get(kind_of(offer, nodes))
        if same is not None and (found := getattr(same, stage)):
            return tuple(found)
        return self._of_offer(provider, offer, stage)

    def _of_offer(self, provider: str, offer: str, stage: _Stage) -> Sequence[float]:
        known = self._times.get(provider, ProviderTimes()).kinds
        return [
            sample
            for kind, times in known.items()
            if kind.rpartition("/")[0] == offer
            for sample in getattr(times, stage)
        ]


def _online_time(samples: Sequence[float]) -> OnlineTime | None:
    if not samples:
        return None
    return OnlineTime(
        p50=quantile(samples, 0.5), p90=quantile(samples, 0.9), bursts=len(samples)
    )


def learn_times(tx: Transaction) -> None:
    """Learn from the bursts that came online or were gone in this transaction."""
    for name, event in tx.events:
        burst = tx.bursts.get(name)
        if burst is None or event.name not in ("online", "reaped"):
            continue
        lease = burst.lease
        if f"times/{lease.provider}" in tx.unreadable:
            continue
        known = tx.times.get(lease.provider, ProviderTimes())
        kind = kind_of(lease.offer, lease.nodes)
        if event.name == "online":
            after = known.learn(kind, online=_since(burst, ("provision-start",)))
        elif burst.first("online") is None:
            continue
        else:
            after = known.learn(kind, teardown=_since(burst, _OUT_OF_USE))
        tx.times[lease.provider] = after


def _since(burst: Burst, names: Sequence[str]) -> float | None:
    """Return the seconds from the first of these events to the last event of the burst.

    None if there was none of these events.
    """
    begins = (event.timestamp for event in burst.events if event.name in names)
    begin = next(begins, None)
    return None if begin is None else max(0.0, burst.events[-1].timestamp - begin)
