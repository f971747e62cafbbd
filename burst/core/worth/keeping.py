# SPDX-License-Identifier: MIT
"""For how long an idle burst is kept, by what it would cost to make it again.

Nobody knows when the next job comes. If an idle burst is kept until it has cost as much
as making it again would, and no longer, the cost is never more than twice what it would
be with that knowledge. No other rule without that knowledge promises less (the ski
rental problem: Karlin, Manasse, Rudolph and Sleator, Competitive Snoopy Caching, 1988).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from burst.config import PolicyRule
from burst.core.worth.ledger import Payer
from burst.core.worth.online_times import OnlineTimes
from burst.core.worth.stage_times import ProviderTimes
from burst.model.burst import Burst


def break_even(nodes: int, boot: float, teardown: float, worth: float) -> float:
    """Return for how many seconds a burst of so many nodes is kept idle.

    `boot` and `teardown` are in seconds; `worth` is that of the rule, in hours saved
    for each node-hour. To make the burst again costs its nodes for both, and a job
    waits while they boot, which the rule values at `boot / worth` node-seconds. If
    `worth` is 0, nobody is to wait, whatever it costs: the result is math.inf.
    """
    if worth <= 0:
        return math.inf
    return boot + teardown + boot / (worth * nodes)


def kept_idle(
    burst: Burst,
    payers: Iterable[Payer],
    rules: Sequence[PolicyRule],
    times: Mapping[str, ProviderTimes],
) -> float:
    """Return for how many seconds an online burst is kept once it is idle.

    The least worth of the rules that took its jobs counts. The result is math.inf if
    one of these is 0 or not known, or if no job with a rule had the burst. `times` is
    `Records.times`.
    """
    worth = {rule.name: rule.worth or 0.0 for rule in rules}
    # Nothing was bought for a job without a rule, which Flux started there by itself.
    bought = [payer.rule for payer in payers if payer.rule]
    asked = min((worth.get(rule, 0.0) for rule in bought), default=0.0)
    if not asked:
        return math.inf
    lease = burst.lease
    at = {event.name: event.timestamp for event in burst.events}
    boot = max(0.0, at["online"] - at["provision-start"])
    teardown = OnlineTimes(times).teardown(lease.provider, lease.offer, lease.nodes)
    return break_even(lease.nodes, boot, teardown, asked)
