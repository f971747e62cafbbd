# SPDX-License-Identifier: MIT
"""Why a job waits, why an offer was turned down: all the reasons there are."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from typing import Any

import msgspec


class Reason(enum.Enum):
    """One sentence each, with the facts it needs in braces."""

    # About a job that needs no burst, or gets none on purpose.
    LOCAL = "it can start on nodes that are up"
    NOT_READY = "it waits for its {what}, not for nodes"
    RUNNING = "it runs on {hosts}"
    ENDED = "it ended: {result}"
    USER_HOLD = "its user holds it (urgency 0)"
    OBEYED = "its user changed the urgency after it was held; it is left alone"
    UNREADABLE = "{why}; it is left alone"

    # About a job that is being helped.
    PROPOSED = "{nodes} nodes of {offer} for it as {burst}"
    ASSIGNED = "burst {burst} has room for it"
    COMING = "burst {burst} comes ({state}): {online} of {nodes} nodes online"
    RELEASED = "its nodes are online; Flux's scheduler starts it"

    STUCK = (
        "its nodes are online and it was released at {at}, but Flux has not started it:"
        " other jobs are ahead of it or on its nodes (flux jobs, flux resource list)"
    )

    # About a job for which there is an isolated burst.
    ELSEWHERE = "isolated burst {burst} is to run it, and is {state}"
    RAN = "ran in isolated burst {burst}: {how}"
    FELL = (
        "was to run in isolated burst {burst}, of which it is not known how far it"
        " came: {how}"
    )
    UNSURE = (
        "isolated burst {burst}, in which it may run, is quarantined: {why}; burst down"
        " {burst} ends both"
    )

    # About a job that nothing can be done for, now or ever.
    NO_SLOTS = "the lead declares no rank slots, so nothing can join it"
    NO_ADDRESS = (
        "followers could not reach the lead, as its address is not known"
        " ([lead] address and port, or a connect address in its bootstrap hosts)"
    )
    NO_OFFERS = "no provider offers anything"
    TOO_LARGE = "it needs {need} nodes; the most that any offer has is {most}"
    NO_ROOM = (
        "it needs {need} nodes; they are to be had, but no rank slots of the lead"
        " hold more than {most} (burst lead add-slot, then restart the lead)"
    )
    OVER_LIMIT = "it needs {need} nodes; the limit {key} is {limit}"
    UNMOVABLE = (
        "it has constraints beyond those of queue {queue}, so Flux does not let it"
        " change its queue; submit it without --requires"
    )
    NEVER_FITS = "no rank slot has a node that holds it ({want})"
    EXCLUDED = "its constraints exclude every rank slot"
    TURNED_DOWN = "every offer was turned down"

    # About an offer or a slot that was turned down for a job.
    WISHED_OTHER = "the job asks for provider {wish}"
    TOO_DEAR = "costs {price} for a node and hour; the job pays {most} at the most"
    SHAPE = "its nodes have {has}; the rank slot declares {want}"
    NODE_SMALL = "a node of the rank slot has {has}; the job needs {want}"
    FEW_NODES = "sells {most} nodes at the most; {need} are needed"
    SLOTS_BUSY = "every rank slot that would do is leased or not offline"
    SLOTS_SMALL = "the largest free rank slot for it has {most} nodes; {need} needed"
    NOT_JOINED = "makes isolated bursts only; the job asks for nodes that join"
    NOT_ISOLATED = "makes no isolated bursts; the job asks for one"
    OFFER_SMALL = "its nodes have {has}; the job needs {want}"
    STARTABLE = "a job in an isolated burst must be held, and its user took it back"
    LOST_RECORD = (
        "record {key} cannot be read, and may be of this job in an isolated burst"
    )
    SET_ASIDE = "had no capacity or did not come up; set aside until {until}"
    DISABLED = "provider {provider} is disabled: {why}; burst enable {provider}"
    BREAKER = "provider {provider} failed {failures} times; next try at {until}"
    UNREAD = "provider {provider} has not answered yet"
    LIMIT_NODES = "limit of {limit} nodes in all: {used} in use, {need} more needed"
    LIMIT_BURSTS = "limit of {limit} bursts at a time is reached"
    LIMIT_BURST = "limit of {limit} nodes a burst; {need} are needed"
    LIMIT_USER = "limit of {limit} nodes a user: {used} in use, {need} more needed"


_TIMES = frozenset({"until", "at"})


def _sentence(reason: Reason, facts: Mapping[str, Any]) -> str:
    """Fill in the facts; times are absolute, so that the text is stable meanwhile."""
    facts = dict(facts)
    for name in _TIMES.intersection(facts):
        time = datetime.datetime.fromtimestamp(facts[name], datetime.UTC)
        facts[name] = time.astimezone().strftime("%H:%M:%S")
    return reason.value.format(**facts)


class Refusal(msgspec.Struct, frozen=True):
    """Why one offer was turned down."""

    offer: str
    """`provider/offer`."""
    reason: Reason
    facts: Mapping[str, Any] = {}

    def text(self) -> str:
        """Return the reason as a sentence without a full stop."""
        return _sentence(self.reason, self.facts)


class Verdict(msgspec.Struct, frozen=True):
    """What was decided about one job, and why."""

    reason: Reason
    facts: Mapping[str, Any] = {}
    refusals: tuple[Refusal, ...] = ()

    def text(self) -> str:
        """Return the reason as a sentence without a full stop."""
        return _sentence(self.reason, self.facts)
