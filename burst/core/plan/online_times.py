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

Of each kind only the newest times are kept, and each counts DECAY of the next newer
one: today's show how slow a cloud is today, those of a year ago do not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from burst.core.plan.estimate import OnlineTime, Purchase
from burst.core.plan.offers import ProviderOffer
from burst.model.burst import Burst, BurstId
from burst.model.event import Event

KEPT = 30
"""How many samples of each stage are kept; the oldest of them counts a twentieth of the
newest."""
DECAY = 0.9
_MOST_KINDS = 500
"""The most kinds (offer and size class) of one provider: each has about 600 bytes, and
a record at most 1 MiB."""


class StageTimes(msgspec.Struct, frozen=True, array_like=True):
    """How long the last bursts of one kind took, in seconds, the newest last."""

    online: tuple[float, ...] = ()
    """From the first call of `provision` until all ranks were online."""
    teardown: tuple[float, ...] = ()
    """From the end of use until the provider confirmed that nothing was left."""


class ProviderTimes(msgspec.Struct, frozen=True):
    """The times of one provider, by `kind_of`; the kind learnt last comes last."""

    kinds: Mapping[str, StageTimes] = {}

    def learn(
        self, kind: str, online: float | None = None, teardown: float | None = None
    ) -> ProviderTimes:
        """Return the times with another sample."""
        known = self.kinds.get(kind, StageTimes())
        new = StageTimes(
            _with_sample(known.online, online), _with_sample(known.teardown, teardown)
        )
        rest = {name: times for name, times in self.kinds.items() if name != kind}
        newest = list(rest.items())[-_MOST_KINDS + 1 :]
        return ProviderTimes({**dict(newest), kind: new})


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

    def purchase(
        self, candidate: ProviderOffer, nodes: int, run_time: float
    ) -> Purchase:
        """Return the purchase of so many nodes of an offer for such a run time."""
        offer = candidate.offer
        key = candidate.provider, offer.name, nodes
        told = OnlineTime(p50=offer.join_time, p90=offer.join_time, bursts=0)
        return Purchase(
            nodes=nodes,
            run_time=run_time,
            online=self.online(*key) or told,
            teardown=self.teardown(*key),
            price=offer.price,
            fee=offer.fee,
            priced_by=candidate.priced_by,
        )

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


def learnt(
    times: Mapping[str, ProviderTimes],
    events: Iterable[tuple[BurstId, Event]],
    bursts: Mapping[BurstId, Burst],
    unreadable: Container[str],
) -> dict[str, ProviderTimes]:
    """Return the times with those of bursts that came online, or are gone.

    `events` and `bursts` are those of a transaction, `unreadable` are keys of records.
    """
    found = dict(times)
    for name, event in events:
        burst = bursts.get(name)
        if burst is None or event.name not in ("online", "reaped"):
            continue
        lease = burst.lease
        if f"times/{lease.provider}" in unreadable or burst.first("online") is None:
            continue
        known = found.get(lease.provider, ProviderTimes())
        kind = kind_of(lease.offer, lease.nodes)
        if event.name == "online":
            known = known.learn(kind, online=_since(burst, ("provision-start",)))
        else:
            known = known.learn(kind, teardown=_since(burst, _OUT_OF_USE))
        found[lease.provider] = known
    return found


def kind_of(offer: str, nodes: int) -> str:
    """Return the offer with the size class: up to 1, 2, 4, 8, 16... nodes."""
    return f"{offer}/{1 << max(0, nodes - 1).bit_length()}"


def quantile(samples: Sequence[float], part: float) -> float:
    """Return the value that the given part of the samples does not exceed, by weights.

    There is at least one sample.
    """
    weights = [DECAY**age for age in range(len(samples) - 1, -1, -1)]
    ordered = sorted(zip(samples, weights, strict=True))
    least, reached = part * sum(weights), 0.0
    for sample, weight in ordered:
        reached += weight
        if reached >= least:
            return sample
    return ordered[-1][0]


def _with_sample(samples: tuple[float, ...], new: float | None) -> tuple[float, ...]:
    return samples if new is None else (*samples, round(new, 3))[-KEPT:]


def _since(burst: Burst, names: Sequence[str]) -> float | None:
    """Return the seconds from the first of these events to the last event of the burst.

    None if there was none of these events.
    """
    begins = (event.timestamp for event in burst.events if event.name in names)
    begin = next(begins, None)
    return None if begin is None else max(0.0, burst.events[-1].timestamp - begin)
