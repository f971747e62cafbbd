# SPDX-License-Identifier: MIT
"""For each reason to wait: who acts next, and when or on what event.

Texts that name the next step take it from here (`{next}` in burst.model.reason). A row
may only use the facts of its reason's text; `!t` shows a time with its date.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from burst.model.burst import State
from burst.model.reason import Reason


class Actor(enum.Enum):
    """Who acts."""

    FLUX = "Flux"
    DAEMON = "the daemon"
    PROVIDER = "the provider"
    USER = "its user"
    ADMINISTRATOR = "an administrator"
    NOBODY = "nobody"


class NextStep(msgspec.Struct, frozen=True):
    """Who acts next, and what they do: the text `what` follows the name of `who`."""

    who: Actor
    what: str


def _flux(what: str) -> NextStep:
    return NextStep(Actor.FLUX, what)


def _daemon(what: str) -> NextStep:
    return NextStep(Actor.DAEMON, what)


def _provider(what: str) -> NextStep:
    return NextStep(Actor.PROVIDER, what)


def _user(what: str) -> NextStep:
    return NextStep(Actor.USER, what)


def _admin(what: str) -> NextStep:
    return NextStep(Actor.ADMINISTRATOR, what)


_NEXT_TICK = _daemon("decides again at its next tick, within [daemon] cadence")
_AS_OTHERS_END = _daemon("tries again when other bursts release their nodes")
_OTHER_OFFER = _daemon(
    "uses another offer; the job cannot have this one unless its user changes the job"
    " or an administrator changes the settings"
)
_OR_GIVES_UP = "otherwise the daemon takes its nodes back{by}"

NEXT_STEPS: Mapping[Reason, NextStep] = {
    Reason.LOCAL: _flux("starts it on these nodes when its scheduler considers it"),
    Reason.STARTING: _flux(
        "starts it, or a job before it, now; the daemon looks again within a second"
    ),
    Reason.NOT_READY: _flux("schedules it once it no longer waits for its {what}"),
    Reason.PROLOG: _flux(
        "starts it once the prolog has ended, or ends the prolog at its timeout"
        " ([job-manager.prolog] timeout, 30m by default)"
    ),
    Reason.EPILOG: _flux(
        "frees its nodes once the epilog has ended, or at its timeout"
        " ([job-manager.epilog] timeout, none by default)"
    ),
    Reason.RUNNING: NextStep(Actor.NOBODY, "has to act before it ends"),
    Reason.ENDED: NextStep(Actor.NOBODY, "has to act any more"),
    Reason.NOT_YET_READ: _NEXT_TICK,
    Reason.USER_HOLD: _user("releases it: flux job urgency JOB default"),
    Reason.QUEUE_STOPPED: _admin("starts the queue: flux queue start{queue}"),
    Reason.SCHEDULER_OFFLINE: _admin("does what burst doctor says of the scheduler"),
    Reason.QUEUE_CLOSED: _admin("enables the queue: flux queue enable{queue}"),
    Reason.QUEUE_GONE: _user(
        "submits it again to a queue that exists, unless an administrator adds this"
        " one again"
    ),
    Reason.QUEUE_LIMIT: _user("changes what it asks for (flux update), or cancels it"),
    Reason.QUEUE_DISABLED: _admin("enables the queue: flux queue enable {queue}"),
    Reason.TAKEN_BACK: _flux(
        "starts it on nodes that are up, once they are free; if they are too few or too"
        " small, its user submits it again"
    ),
    Reason.NOT_BURSTABLE: _flux("starts it on own nodes when its turn comes"),
    Reason.UNREADABLE: _user("submits it again with a jobspec that can be read"),
    Reason.OWN_FIRST: _daemon("decides at {until!t}, unless Flux has started it"),
    Reason.NOT_FORECAST: _daemon(
        "decides as soon as its start is forecast, or a forecast is a minute late"
    ),
    Reason.NOT_WORTH: _daemon("decides again as soon as forecasts or prices change"),
    Reason.TAGGED: _user(
        "or a program of theirs requests nodes with tag {tag} (burst request --tag),"
        " which only the owner of the instance may, or ends the job: flux cancel"
    ),
    Reason.NO_ACCOUNT: _admin("sets take_subuids under [guests] if it is an account"),
    Reason.BANK_UNREAD: _daemon("decides at {until!t} at the latest"),
    Reason.BANK_REFUSED: _user("submits it with another --bank"),
    Reason.QUEUE_REFUSED: _admin(
        "adds {queue} to the queues of the user: flux account edit-user --queues"
    ),
    Reason.ACCOUNTING_HOLD: _flux(
        "continues once other jobs have ended and flux-accounting's limit allows it"
    ),
    Reason.ACCOUNTING_LIMIT: _daemon(
        "rents nodes once other jobs of {whose} have ended, or an administrator has"
        " raised the limit (flux account)"
    ),
    Reason.PROPOSED: _provider("makes the nodes, within [providers.NAME] provision"),
    Reason.ASSIGNED: _daemon("releases it at the next tick, once the nodes are online"),
    Reason.GROWING: _provider(
        "makes the nodes, within [providers.NAME] provision and then [deadlines] join"
    ),
    Reason.COMING: _provider(
        "makes the nodes, within [providers.NAME] provision, and they join within"
        " [deadlines] join"
    ),
    Reason.RELEASED: _flux(f"starts it now, {_OR_GIVES_UP}"),
    Reason.PRIORITY_ZERO: _admin(
        "or a priority plugin, such as flux-accounting's, gives it a priority"
        f" (flux account view-user), {_OR_GIVES_UP}"
    ),
    Reason.NODES_CLEANED: _flux(
        "starts it once housekeeping has ended; the daemon ends housekeeping after 10m,"
        f" {_OR_GIVES_UP}"
    ),
    Reason.NODES_TAKEN: _flux(
        f"starts it once these ranks are free (flux jobs), {_OR_GIVES_UP}"
    ),
    Reason.NODES_SHARED: _flux(
        f"starts it once these nodes are free (flux jobs), {_OR_GIVES_UP}"
    ),
    Reason.JOBS_AHEAD: _flux(
        f"starts it once what is ahead of it has started, {_OR_GIVES_UP}"
    ),
    Reason.RESERVED: _daemon("gives it its nodes as soon as they are free"),
    Reason.NOT_STARTED: _daemon("tries it again at {until!t}"),
    Reason.ISOLATED_ACTIVE: _provider(
        "runs it, within [providers.NAME] provision and then its time limit, or"
        " [deadlines] run without one"
    ),
    Reason.ISOLATED_DONE: _daemon("ends the job at its next tick"),
    Reason.ISOLATED_LOST: _user(
        "checks whether it ran, then cancels it or releases it: burst release JOB"
    ),
    Reason.ISOLATED_REFUSED: _user("cancels it, or runs it here: burst release JOB"),
    Reason.ISOLATED_QUARANTINED: _admin("ends both: burst down {burst}"),
    Reason.NO_SLOTS: _admin(
        "declares rank slots: burst lead add-slot, then a restart of the lead"
    ),
    Reason.NO_ADDRESS: _admin("sets [lead] address and port"),
    Reason.NO_OFFERS: _admin(
        "checks the providers: burst status; the daemon also asks them again"
    ),
    Reason.TOO_LARGE: _user("submits it for fewer nodes"),
    Reason.NO_ROOM: _admin(
        "declares more or larger rank slots: burst lead add-slot, then a restart of"
        " the lead"
    ),
    Reason.OVER_LIMIT: _admin("raises {key}, or its user asks for fewer nodes"),
    Reason.UNMOVABLE: _user("submits it without --requires"),
    Reason.DISCRETE_COUNT: _user("submits it with a simple min-max range"),
    Reason.COUNT_FORM: _user(
        "submits it with a number, or with min, max, operator, operand"
    ),
    Reason.TOO_LONG: _user("submits it with a shorter time limit"),
    Reason.NEVER_FITS: _user("submits it for smaller nodes"),
    Reason.EXCLUDED: _user("submits it with other constraints"),
    Reason.DAEMON_STOPPING: _admin("starts the daemon again"),
    Reason.TURNED_DOWN: _daemon(
        "tries again as soon as one of the offers is available"
    ),
    Reason.INCOMPLETE: _daemon("tries again at {until!t}"),
    Reason.OTHER_PROVIDER: _OTHER_OFFER,
    Reason.OTHER_OFFER: _OTHER_OFFER,
    Reason.RULE_PROVIDER: _OTHER_OFFER,
    Reason.PRICE_TOO_HIGH: _OTHER_OFFER,
    Reason.RULE_PRICE: _OTHER_OFFER,
    Reason.SPOT: _OTHER_OFFER,
    Reason.FOR_OTHERS: _OTHER_OFFER,
    Reason.KEEPING_NOT_WORTH: _daemon("compares again as the queue changes"),
    Reason.NOT_BOUGHT: _NEXT_TICK,
    Reason.NOT_OFFERED: _daemon("tries again once its provider offers it"),
    Reason.SHAPE_MISMATCH: _OTHER_OFFER,
    Reason.NODE_SMALL: _OTHER_OFFER,
    Reason.FEW_NODES: _OTHER_OFFER,
    Reason.LEASE_SHORT: _OTHER_OFFER,
    Reason.NOT_JOINED: _OTHER_OFFER,
    Reason.NOT_ISOLATED: _OTHER_OFFER,
    Reason.NO_GUESTS: _admin("sets multi_user of the provider"),
    Reason.ISOLATED_OF_GUEST: _OTHER_OFFER,
    Reason.OFFER_SMALL: _OTHER_OFFER,
    Reason.SLOTS_BUSY: _AS_OTHERS_END,
    Reason.SLOTS_SMALL: _AS_OTHERS_END,
    Reason.SLOTS_FEW: _admin(
        "declares more or larger rank slots (burst lead add-slot), or its user changes"
        " what it asks for"
    ),
    Reason.SLOTS_DRAINED: _admin(
        "undrains them once they can be used again: flux resource undrain {ranks}"
    ),
    Reason.SLOTS_UNSCHEDULED: _admin("does what burst doctor says of them"),
    Reason.SLOTS_RESERVED: _AS_OTHERS_END,
    Reason.LIMIT_RESERVED: _AS_OTHERS_END,
    Reason.NOT_HELD: _user("submits it again with --burst"),
    Reason.LOST_RECORD: _admin("takes that burst down: burst down BURST"),
    Reason.HAS_NODES: _daemon("tries again once the job has no such nodes"),
    Reason.OFFER_COOLDOWN: _daemon("tries it again at {until!t}"),
    Reason.OFFER_UNUSABLE: _admin(
        "repairs what failed, then types burst enable {provider}; otherwise the daemon"
        " tries it again at {until!t}"
    ),
    Reason.SPEC_REFUSED: _admin(
        "corrects what was refused, then types burst enable {provider}; otherwise the"
        " daemon tries it again at {until!t}"
    ),
    Reason.ON_TRIAL: _daemon("tries again once that burst is online or has failed"),
    Reason.DISABLED: _admin("corrects that, then enables it: burst enable {provider}"),
    Reason.BREAKER: _daemon("tries it again at {until!t}"),
    Reason.NOT_ENABLED: _admin("enables it: [providers.NAME] enabled, burst reload"),
    Reason.OFFERS_UNKNOWN: _provider("answers; the daemon asks it again"),
    Reason.LIMIT_NODES: _AS_OTHERS_END,
    Reason.LIMIT_BURSTS: _AS_OTHERS_END,
    Reason.LIMIT_BURST: _admin("raises the limit, or its user asks for fewer nodes"),
    Reason.FEW_BURSTS: _admin("raises the limit, or its user asks for fewer nodes"),
    Reason.OFFER_FULL: _AS_OTHERS_END,
    Reason.OVER_BUDGET: _daemon("tries again as bursts are settled"),
    Reason.BUDGET_SMALL: _user(
        "submits it with a time limit (-t), a shorter one, or for fewer nodes; or an"
        " administrator raises the limit under [[budget]]"
    ),
    Reason.BUDGET_LEASE: _user(
        "submits it for fewer nodes; or an administrator shortens [deadlines] lease, or"
        " raises the limit under [[budget]]"
    ),
    Reason.BUDGET_OVER: _admin("sets another last day (until) under [[budget]]"),
    Reason.BUDGET_UNREAD: _admin("repairs the record: burst doctor"),
    Reason.LIMIT_USER: _AS_OTHERS_END,
}

OFFERS_STAY_DOWN = _user(
    "changes the job, or an administrator changes the settings, as each offer says"
)
"""The next step in place of that of TURNED_DOWN if waiting makes no offer available."""


def ends_by_waiting(reason: Reason) -> bool:
    """Tell whether an offer that was turned down for a reason may be usable later.

    That is without a change of the job or the settings.
    """
    step = NEXT_STEPS[reason]
    return step.who in {Actor.DAEMON, Actor.PROVIDER} and step is not _OTHER_OFFER


BURST_STEPS: Mapping[State, NextStep] = {
    State.NEW: _daemon("calls its provider at the next tick"),
    State.PROVISION: _provider(
        "makes its nodes, within [providers.{provider}] provision{until}"
    ),
    State.JOIN: _provider("starts its followers, within [deadlines] join{until}"),
    State.ONLINE: _daemon(
        "takes it down once nothing needs it for [deadlines] idle, or its lease ends"
        "{until}"
    ),
    State.DRAIN: _flux(
        "starts no new job on it and runs the jobs there to their end; after"
        " [deadlines] drain{until} the daemon reports the delay"
    ),
    State.REAP: _provider(
        "deletes it; the daemon repeats the call until nothing is left, and after"
        " [deadlines] reap{until} reports the delay"
    ),
    State.INACTIVE: NextStep(Actor.NOBODY, "has to act any more"),
}
LOST = _provider("may start the lost followers again, within 2m{until}")
"""The next step for an online burst that has lost ranks."""
GROWS = _provider(
    "makes the nodes by which it grows, within [providers.{provider}] provision and"
    " then [deadlines] join{until}"
)
"""The next step for an online burst that grows."""
PROGRAM = _daemon(
    "takes it down once its program has ended, or when its time or its lease is over"
    "{until}"
)
"""The next step for an isolated burst that ends by itself."""
STAYS = _daemon(
    "keeps it until somebody takes it down (burst down {burst}), or its lease ends"
    "{until}"
)
"""The next step for an online burst that does not end as idle."""
STANDS = _daemon(
    "keeps it while a standing minimum needs it, and replaces it before its lease ends"
)
"""The next step for an online burst that a standing minimum needs."""
UNREAD = _daemon(
    "ends it once provider {provider} was read again, as its program may have begun or"
    " ended in time; burst down {burst} ends it now"
)
"""The next step for an isolated burst whose deadline has passed."""
OUT_OF_REACH = _admin(
    "enables provider {provider} again, with the table that it had, until the burst is"
    " gone"
)
"""The next step for a burst that its provider cannot see or delete."""
QUARANTINED = _admin("takes it down: burst down {burst}")
"""The next step for a quarantined burst in any state."""
