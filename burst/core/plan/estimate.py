# SPDX-License-Identifier: MIT
"""Tells whether a burst pays: the hours it saves against the node-hours it buys.

Times are in seconds: since the epoch in a daemon, since the start of a trace in a
replay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from burst.model.burst import PRICE_SOURCES, PriceSource
from burst.model.decision import clock_time, near_moment
from burst.model.fsd import format_fsd
from burst.model.jobid import JobId, format_f58

_HOUR_S = 3600.0
_SOON_S = 600.0
"""Nearer than this, in seconds, a time is told to the second."""
JUDGED_AGAIN_S = 3600.0
"""Jobs that wait are judged when a job was submitted or has ended. If neither happens
for this many seconds, they are judged again once one of them is late."""
LATE_S = 1.0
"""A job is late this many seconds after its expected start. Not at that very moment: a
job that should end then may just be ending."""


class StartEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """When a pending job is expected to start on own nodes."""

    expected: float
    """By the run times of past jobs like those before it; math.inf for never."""
    latest: float
    """By the time limits of the jobs before it: none of them runs longer."""
    earliest: float
    """The lower end of the interval."""
    after: JobId | None = None
    """The running job whose end lets it start: the job is judged again when that ends.

    If it is to start after a job that waits too, the running job that lets that one
    start. None if it can start now, or never starts.
    """

    def text(self, now: float) -> str:
        """Return text as `on own nodes about 14:03 (13:40 to 15:10, when f3x ends)`."""
        if math.isinf(self.earliest):
            return "own nodes that are up cannot hold it"
        if math.isinf(self.expected):
            return "its start on own nodes cannot be predicted"
        ends = f", when {format_f58(self.after)} ends" if self.after is not None else ""
        expected = max(self.expected, now)
        latest = max(self.latest, now)
        about = "now" if expected <= now else f"about {_told(expected, now)}"
        if expected == latest and not ends:
            return f"on own nodes {about}"
        until = "or later" if math.isinf(latest) else f"to {_told(latest, now)}"
        within = f"{_told(self.earliest, now)} {until}"
        return f"on own nodes {about} ({within}{ends})"


class OnlineTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long after `provision` a burst is online, in seconds."""

    p50: float
    p90: float
    bursts: int
    """How many past bursts this is from; 0 if it is what the offer says."""


class Purchase(msgspec.Struct, frozen=True, kw_only=True):
    """What a burst for one job would buy."""

    nodes: int
    """How many are bought for the job; 0 if it fits on idle nodes, or on nodes that are
    bought anyway."""
    run_time: float
    """For how long the job may run, in seconds."""
    online: OnlineTime
    teardown: float
    """For how many seconds the nodes cost money after the job has ended."""
    price: float = 0.0
    """Price for a node and hour."""
    fee: float = 0.0
    """Fee for an hour of the burst."""
    priced_by: PriceSource = "offer"


_AT_ONCE = OnlineTime(p50=0.0, p90=0.0, bursts=0)


def keep_purchase(nodes: int, run_time: float, kept: float = 0.0) -> Purchase:
    """Return the purchase of running a job on a live burst of so many nodes.

    All nodes are kept for the job's time limit, less the `kept` seconds for which they
    are kept anyway.
    """
    longer = max(0.0, run_time - kept) if run_time < math.inf else run_time
    return Purchase(
        nodes=nodes if longer else 0, run_time=longer, online=_AT_ONCE, teardown=0.0
    )


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a burst pays, and the figures from which that follows."""

    pays: bool
    saved: float
    """By how many hours the job would start earlier than here; below 0 if later."""
    bought: float
    """Node-hours bought, with those of boot and tear-down."""
    worth: float
    """Hours saved for each node-hour bought; math.inf if nothing is bought."""
    required: float
    """The worth that the rule asks for."""


def judge(
    here: StartEstimate, purchase: Purchase, required: float, now: float
) -> Judgement:
    """Compare the start that is expected here with that on a burst made now.

    A job's nodes are paid from the call of `provision` until they are deleted: while
    they boot (the median time to online), while the job runs, and while they are taken
    down. If `required` is 0, a burst pays for every job that must wait here, even for
    less time than the nodes take to boot.
    """
    there = now + purchase.online.p50
    # Nodes that never come save nothing, also where the job never starts here.
    never = math.isinf(there)
    saved = -math.inf if never else (here.expected - there) / _HOUR_S
    paid = purchase.online.p50 + purchase.run_time + purchase.teardown
    bought = purchase.nodes * paid / _HOUR_S if purchase.nodes else 0.0
    worth = _ratio(saved, bought)
    enough = worth >= required and saved > 0 if required else here.expected > now
    return Judgement(
        pays=enough, saved=saved, bought=bought, worth=worth, required=required
    )


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A start on own nodes, one on a burst, and whether that pays by a job's rule."""

    here: StartEstimate
    purchase: Purchase
    offer: str
    """As `PROVIDER/OFFER`."""
    judgement: Judgement
    rule: str
    now: float
    """When it was judged."""

    def __str__(self) -> str:
        """Return the sentence for the job's user, without a full stop."""
        after, judgement = self.here.after, self.judgement
        again = (
            f"when {format_f58(after)} ends" if after else "when the forecast changes"
        )
        saves = f"{judgement.worth:.2g}" if judgement.saved > 0 else "nothing"
        return (
            f"starts {self.here.text(self.now)}; {self._online()}"
            f"{self._cost()}, which rule {self.rule} does not pay: it saves {saves} of"
            f" the {judgement.required:g} h per node-hour that the rule asks for;"
            f" judged again {again}"
        )

    def _online(self) -> str:
        online = self.purchase.online
        past = (
            f"9 of 10 bursts within {format_fsd(online.p90)}"
            if online.bursts
            else "as its offer says"
        )
        up = format_fsd(online.p50)
        return f"a burst would be online in {up} on {self.offer} ({past})"

    def _cost(self) -> str:
        purchase = self.purchase
        each = purchase.price + purchase.fee / max(1, purchase.nodes)
        price = each * self.judgement.bought
        source = PRICE_SOURCES[self.purchase.priced_by]
        return f" for {price:.2f} {source}" if price else ""


def judged_again_at(starts: Iterable[float], now: float) -> float:
    """Return when jobs that wait are judged again if nothing happens in the queue.

    `starts` are the expected starts by which they are judged now; math.inf is returned
    if there are none.
    """
    return max(min(starts, default=math.inf) + LATE_S, now + JUDGED_AGAIN_S)


def _ratio(saved: float, bought: float) -> float:
    if not bought:
        return math.inf
    # A job that never starts here and runs without end: only a burst can run it.
    if math.isinf(saved) and math.isinf(bought):
        return saved
    return saved / bought


def _told(seconds: float, now: float) -> str:
    if seconds <= now:
        return "now"
    if seconds - now < _SOON_S:
        return clock_time(seconds)
    return near_moment(seconds, now)
