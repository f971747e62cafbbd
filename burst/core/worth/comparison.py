# SPDX-License-Identifier: MIT
"""What a burst for one job would buy, and the message if such a burst does not pay.

Times are seconds since the epoch, durations are in seconds.
"""

from __future__ import annotations

import msgspec

from burst.core.plan.offers import ProviderOffer
from burst.core.worth.estimate import Judgement, OnlineTime, Purchase, StartEstimate
from burst.core.worth.online_times import OnlineTimes
from burst.model.burst import PRICE_SOURCES
from burst.model.fsd import format_fsd
from burst.model.jobid import format_f58


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


def purchase_of(
    candidate: ProviderOffer, nodes: int, run_time: float, times: OnlineTimes
) -> Purchase:
    """Return the purchase of so many nodes of an offer for such a run time."""
    offer = candidate.offer
    key = candidate.provider, offer.name, nodes
    known = times.online(*key)
    told = OnlineTime(p50=offer.join_time, p90=offer.join_time, bursts=0)
    return Purchase(
        nodes=nodes,
        run_time=run_time,
        online=known or told,
        teardown=times.teardown(*key),
        price=offer.price,
        fee=offer.fee,
        priced_by=candidate.priced_by,
    )
