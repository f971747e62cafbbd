# SPDX-License-Identifier: MIT
"""All reasons why a job waits or an offer was turned down.

What follows from a reason is declared on the reason itself, and nowhere else. A new
reason is made by one of the functions below, or field by field.
"""

from __future__ import annotations

import enum

import msgspec


class JobReason(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a reason about a job, and what follows from it.

    No field has a default. Texts are sentences without a full stop, with facts in
    braces, formatted by `burst.model.decision`: `!t` is a time, `!n` a number of nodes,
    `!i` ranks.
    """

    text: str
    memo: str | None
    """The word for the job's memo, with facts in braces; None for no memo."""
    left_alone: bool
    """Whether the job is neither held nor released, moved or failed."""
    refused: bool
    """Whether no burst is made for the job, until something changes."""
    lasting: bool
    """Whether a refusal depends only on what exists (slots, offers, limits) and not on
    what is free, so that it holds while bursts come and go."""
    final: bool
    """Whether the job is failed, except in mode hold. If the lead's own nodes may still
    serve the job, the decision is replaced by one that is not final."""


class OfferReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why an offer was turned down for a job. No field has a default."""

    text: str
    guests: str
    """The text for users other than the instance owner, and for memos, which all users
    can read: without other users' jobs and money, and without what a provider said
    about its account or its settings."""
    passing: bool
    """Whether it comes and goes as others take and give back resources. A change from
    one such reason to another is not reported to the job."""
    lasting: bool
    """Whether it holds as long as the job, the offer and the settings do not change."""


def _not_refused(text: str, memo: str | None) -> JobReason:
    """Return a reason for a job that is judged anew in each tick.

    The job is held or released depending on whether it would block others.
    """
    return JobReason(
        text=text,
        memo=memo,
        left_alone=False,
        refused=False,
        lasting=False,
        final=False,
    )


def _left_alone(text: str, memo: str | None) -> JobReason:
    """Return a reason to do nothing with a job."""
    return msgspec.structs.replace(_not_refused(text, memo), left_alone=True)


def _waits(text: str, *, lasting: bool) -> JobReason:
    """Return a reason to make no burst for a job until something changes."""
    waits = _not_refused(text, "waiting")
    return msgspec.structs.replace(waits, refused=True, lasting=lasting)


def _impossible(text: str) -> JobReason:
    """Return a reason why no offer could ever serve a job."""
    refused = _waits(text, lasting=True)
    return msgspec.structs.replace(refused, memo="impossible", final=True)


def _hopeless(text: str) -> JobReason:
    """Return a reason why Flux never starts a job, known before anything is planned."""
    return msgspec.structs.replace(_not_refused(text, "impossible"), final=True)


def _offer(text: str, *, passing: bool, guests: str = "") -> OfferReason:
    return OfferReason(text=text, guests=guests or text, passing=passing, lasting=False)


def _never_offered(text: str) -> OfferReason:
    """Return a reason why an offer cannot be used for a job, now or later."""
    return OfferReason(text=text, guests=text, passing=False, lasting=True)


@enum.unique
class Reason(enum.Enum):
    """All reasons; the value of each is its text and what follows from it."""

    # About a job that needs no burst, or gets none on purpose.
    LOCAL = _not_refused("it can start on nodes that are up", memo=None)
    STARTING = _left_alone(
        "{scheduler} may be giving nodes to it, or to a job before it", memo=None
    )
    NOT_READY = _left_alone("it waits for its {what}, not for nodes", memo=None)
    PROLOG = _left_alone(
        "its {what} has been running on {hosts} since {since!t}", memo=None
    )
    EPILOG = _left_alone(
        "it has ended, and keeps {hosts} while its {what} runs (since {since!t})",
        memo=None,
    )
    RUNNING = _left_alone("it runs on {hosts}", memo=None)
    ENDED = _left_alone("it ended: {result}", memo=None)
    # The job is held meanwhile, if it might block others. Not in its memo: it is over
    # soon, and happens only if one user has thousands of such jobs.
    NOT_YET_READ = _not_refused(
        "its constraint is evaluated in a later tick, as its user's other jobs use up"
        " the time of this tick",
        memo=None,
    )
    USER_HOLD = _left_alone("its user holds it (urgency 0)", memo=None)
    QUEUE_STOPPED = _not_refused(
        "its queue{queue} is stopped{why}, so Flux starts none of its jobs"
        " (flux queue start{queue}); no nodes are rented for it",
        memo="waiting",
    )
    SCHEDULER_OFFLINE = _not_refused(
        "Flux's scheduler is offline, so Flux starts no job; no nodes are rented for"
        " it",
        memo="waiting",
    )
    QUEUE_CLOSED = _not_refused(
        "its queue{queue} is disabled{why} (flux queue enable{queue}); no nodes are"
        " rented for it",
        memo="waiting",
    )
    QUEUE_GONE = _not_refused(
        "the instance has no queue {queue}, so Flux starts none of its jobs and no"
        " nodes are rented for them ({help})",
        memo="waiting",
    )
    QUEUE_LIMIT = _not_refused(
        "Flux does not accept it in queue {queue}, from which burstable jobs start:"
        " {why}",
        memo="waiting",
    )
    QUEUE_DISABLED = _not_refused(
        "queue {queue}, into which it is to be moved, is disabled{why}"
        " (flux queue enable {queue})",
        memo="waiting",
    )
    TAKEN_BACK = _left_alone(
        "it was held and then released by hand (flux job urgency, or burst release); it"
        " is left alone",
        memo="left-alone",
    )
    NOT_BURSTABLE = _not_refused(
        "it is not marked as burstable (--setattr=burstable); if it was held, it gets"
        " its urgency back",
        memo="left-alone",
    )
    UNREADABLE = _left_alone("{why}; it is left alone", memo="unreadable")

    # Judged anew in each tick: they end by time.
    OWN_FIRST = _not_refused(
        "rule {rule} keeps the job on the lead's own nodes until {until!t}",
        memo="waiting",
    )
    # Not in the job's memo: it is over within a tick or two.
    NOT_FORECAST = _not_refused(
        "rule {rule} asks what a burst would save, and its start on own nodes is not"
        " forecast yet",
        memo=None,
    )
    NOT_WORTH = _waits("{comparison}", lasting=False)
    TAGGED = _waits(
        "it has tag {tag}, and waits for nodes that are requested with this tag{have}",
        lasting=False,
    )

    NO_ACCOUNT = _not_refused(
        "its user {userid} is a subordinate user id of {whose} (subuid(5)) and not an"
        " account, so no nodes are rented for it; if it is an account, the instance"
        " owner sets take_subuids under [guests]",
        memo="waiting",
    )

    # Not in the job's memo: it is over at once, unless flux-accounting hangs.
    BANK_UNREAD = _not_refused(
        "it waits for flux-accounting to say who may use its bank, until {until!t} at"
        " the latest",
        memo=None,
    )
    BANK_REFUSED = _waits(
        "flux-accounting does not let its user use bank {bank} (allowed: {own}), so no"
        " nodes are bought for it; submit it with another --bank",
        lasting=False,
    )

    QUEUE_REFUSED = _not_refused(
        "flux-accounting does not let its user use queue {queue} in bank {bank}, to"
        " which it is moved to start, so no nodes are rented for it",
        memo="waiting",
    )
    ACCOUNTING_HOLD = _left_alone(
        "it waits for flux-accounting: {limits}; no nodes are rented for it meanwhile",
        memo="over-limit",
    )
    ACCOUNTING_LIMIT = _not_refused(
        "it waits for flux-accounting: limit {limit} {most} of {whose}: {used} in use"
        " (including rented nodes), and {need} needed; no more nodes are rented for it",
        memo="over-limit",
    )

    # About a job that is being helped.
    PROPOSED = _not_refused(
        "{nodes!n} of {offer} for it as {burst}{price}", memo="requested"
    )
    ASSIGNED = _not_refused("there is room for it on {burst}", memo="assigned")
    GROWING = _not_refused("burst {burst} grows by {nodes!n} for it", memo="assigned")
    COMING = _not_refused(
        "burst {burst} is coming up ({state}): {online} of {nodes} nodes online{words}"
        "{ends}",
        memo="{state} {online}/{nodes}",
    )
    RELEASED = _not_refused(
        "its nodes are online, and burst knows of nothing that prevents its start;"
        " {next}{ends}",
        memo="released",
    )
    # About a job whose nodes are online, too: what prevents its start.
    PRIORITY_ZERO = _not_refused(
        "its nodes are online, but its priority is 0, so Flux does not start it;"
        " {next}{ends}",
        memo="released",
    )
    NODES_CLEANED = _not_refused(
        "its nodes are online, but Flux's housekeeping after another job still runs on"
        " {ranks!i}; {next}{ends}",
        memo="released",
    )
    NODES_TAKEN = _not_refused(
        "its nodes are online, but Flux has allocated {ranks!i} to {jobs};"
        " {next}{ends}",
        memo="released",
    )
    NODES_SHARED = _not_refused(
        "its nodes are online and have room for it beside {jobs} on {ranks!i}, but"
        " the scheduler gives whole nodes (as Fluxion's lonodex), or other jobs are"
        " ahead of it; {next}{ends}",
        memo="released",
    )
    JOBS_AHEAD = _not_refused(
        "its nodes are online, but it is queued behind {jobs} (waiting for nodes);"
        " {next}{ends}",
        memo="released",
    )
    # Decided in each tick, before the jobs after it, so not in the refusal cache.
    RESERVED = _not_refused(
        "gets {nodes!n} of {offer} {words}; kept for it: {kept}",
        memo="waiting",
    )
    # The job is held again if it would block others; else it keeps its urgency.
    NOT_STARTED = _not_refused(
        "its nodes were online, but Flux did not start it within {limit}: {stood}. It"
        " is tried again at {until!t}",
        memo="not-started",
    )

    # About a job for which there is an isolated burst.
    ISOLATED_ACTIVE = _not_refused(
        "isolated burst {burst} was made for it and is in state {state}{words}",
        memo="isolated {state}",
    )
    # The job stays held until it is ended, or a person decides.
    ISOLATED_DONE = _left_alone("ran in isolated burst {burst}: {how}", memo="{word}")
    ISOLATED_LOST = _left_alone(
        "isolated burst {burst} should have run it; it may have begun there, so it is"
        " not run again: {how}",
        memo="{word}",
    )
    ISOLATED_REFUSED = _left_alone(
        "isolated burst {burst} should have run it, but its provider refuses to make"
        " the burst: {how}",
        memo="{word}",
    )
    ISOLATED_QUARANTINED = _left_alone(
        "isolated burst {burst}, in which it may run, is quarantined: {why}; burst down"
        " {burst} ends both",
        memo="waiting",
    )

    # About a job for which nothing can be done now, or ever.
    NO_SLOTS = _waits(
        "the lead declares no rank slots, so no follower can join it (burst lead"
        " add-slot, then restart the lead)",
        lasting=False,
    )
    NO_ADDRESS = _waits(
        "followers could not reach the lead, as its address is not known"
        " ([lead] address and port, or a connect address in its bootstrap hosts)",
        lasting=False,
    )
    NO_OFFERS = _waits(
        "no provider has an offer",
        lasting=False,
    )
    TOO_LARGE = _impossible(
        "it needs {need!n}; the most that it could ever have is {most}",
    )
    # Not final: a lead can get further rank slots.
    NO_ROOM = _waits(
        "it needs {need!n}; offers have that many, but on the lead's rank slots it can"
        " have at most {most} (burst lead add-slot, then restart the lead)",
        lasting=True,
    )
    OVER_LIMIT = _impossible(
        "it needs {need!n}; the limit {key} is {limit}",
    )
    UNMOVABLE = _hopeless(
        "it has constraints beyond those of queue {queue}, so Flux does not let it"
        " change its queue; submit it without --requires",
    )
    # The words with which Flux's schedulers refuse it.
    DISCRETE_COUNT = _hopeless(
        "its node or slot count specifies discrete valid values that {scheduler} does"
        " not support; use a simple min-max range instead",
    )
    COUNT_FORM = _hopeless(
        "{scheduler} cannot read a count of its jobspec: it reads a number, or a range"
        " with min, max, operator and operand",
    )
    TOO_LONG = _impossible(
        "it may run for longer than {most}, and no burst runs jobs for longer (an"
        " offer's lifetime, or [deadlines] lease, less drain)",
    )
    NEVER_FITS = _impossible(
        "no rank slot has a node large enough for it ({want})",
    )
    EXCLUDED = _impossible(
        "its constraints exclude every rank slot",
    )
    DAEMON_STOPPING = _waits(
        "the daemon stops, or its lead; bursts are made again once both were started"
        " again",
        lasting=False,
    )
    TURNED_DOWN = _waits(
        "every offer was turned down",
        lasting=False,
    )

    # Judged anew in each tick: it ends by time.
    INCOMPLETE = _not_refused(
        "some of its nodes could not be provided, and the others were returned;"
        " tried again at {until!t}",
        memo="waiting",
    )

    # About an offer or a slot that was turned down for a job.
    OTHER_PROVIDER = _never_offered("the job asks for provider {preferred}")
    OTHER_OFFER = _never_offered("offer {preferred} is requested")
    RULE_PROVIDER = _never_offered("rule {rule} allows only {allowed}")
    PRICE_TOO_HIGH = _never_offered(
        "costs {price} per node-hour {source}; the job pays at most {most}"
    )
    RULE_PRICE = _never_offered(
        "costs {price} per node-hour {source}; rule {rule} allows {most}"
    )
    SPOT = _never_offered(
        "the cloud may take its nodes back; the job has lost nodes {losses} times"
    )
    # About a burst that exists.
    FOR_OTHERS = _offer("its nodes are reserved for other jobs or users", passing=False)
    KEEPING_NOT_WORTH = _offer(
        "keeping it for the job costs more than its rule pays", passing=True
    )
    # About nodes that would be bought.
    NOT_BOUGHT = _offer("no nodes are bought for the job now", passing=True)
    NOT_OFFERED = _offer("it is not offered now", passing=True)
    SHAPE_MISMATCH = _offer(
        "its nodes have {has}; the rank slot declares {want}", passing=False
    )
    NODE_SMALL = _offer(
        "a node of the rank slot has {has}; the job needs {want}", passing=False
    )
    FEW_NODES = _offer("sells at most {most!n}; {need} are needed", passing=False)
    SLOTS_BUSY = _offer(
        "all rank slots that match are leased, or have nodes online", passing=True
    )
    SLOTS_SMALL = _offer(
        "the largest free rank slot for it has {most!n}; {need} needed",
        passing=True,
    )
    SLOTS_FEW = _never_offered(
        "the rank slots for its nodes have at most {most!n} for the job; {need} needed"
    )
    SLOTS_DRAINED = _offer(
        "it cannot use {ranks!i} of rank slots, drained by hand: {why}", passing=False
    )
    SLOTS_UNSCHEDULED = _offer(
        "it cannot use {ranks!i} of rank slots, which Flux's scheduler does not have",
        passing=False,
    )
    LEASE_SHORT = _never_offered(
        "its bursts run jobs for at most {most}; the job may run for longer"
    )
    SLOTS_RESERVED = _offer(
        "free ranks are kept for job {job}, which is ahead of it",
        passing=True,
        guests="free ranks are kept for a job that is ahead of it",
    )
    LIMIT_RESERVED = _offer(
        "what is left of the limits is kept for job {job}, which is ahead of it",
        passing=True,
        guests="what is left of the limits is kept for a job that is ahead of it",
    )
    NOT_JOINED = _never_offered(
        "makes isolated bursts only; the job asks for nodes that join"
    )
    NOT_ISOLATED = _never_offered("makes no isolated bursts; the job asks for one")
    NO_GUESTS = _never_offered(
        "its followers run jobs of the owner of the instance only; the site can change"
        " that (multi_user)"
    )
    ISOLATED_OF_GUEST = _never_offered(
        "an isolated burst runs a job as the owner of the instance, and this job is"
        " another user's"
    )
    OFFER_SMALL = _never_offered("its nodes have {has}; the job needs {want}")
    NOT_HELD = _offer(
        "a job must be held to run in an isolated burst, and this one was released by"
        " hand",
        passing=False,
    )
    LOST_RECORD = _offer(
        "record {key} cannot be read; it may belong to an isolated burst of this job",
        passing=False,
        guests="a record cannot be read; it may belong to an isolated burst of this"
        " job",
    )
    HAS_NODES = _offer(
        "an isolated burst would have all nodes of the job, which has a part of them"
        " elsewhere",
        passing=True,
    )
    OFFER_COOLDOWN = _offer(
        "{why}; set aside until {until!t} (burst enable {provider} ends that)",
        passing=True,
        guests="could not be provided, and is set aside until {until!t}",
    )
    OFFER_UNUSABLE = _offer(
        "its last {failures} bursts could not run jobs: {why}; set aside until"
        " {until!t} (burst enable {provider} ends that)",
        passing=True,
        guests="its last {failures} bursts could not run jobs; set aside until"
        " {until!t} (the owner of the instance sees why)",
    )
    SPEC_REFUSED = _offer(
        "refused such a burst: {why}; not tried again before {until!t}"
        " (burst enable {provider} ends that)",
        passing=False,
        guests="refused such a burst; not tried again before {until!t} (the owner of"
        " the instance sees why)",
    )
    ON_TRIAL = _offer(
        "one burst tests whether {what} works again; others wait until it is online or"
        " has failed",
        passing=True,
    )
    DISABLED = _offer(
        "provider {provider} is disabled: {why}; burst enable {provider}",
        passing=False,
        guests="provider {provider} is disabled (the owner of the instance sees why)",
    )
    BREAKER = _offer(
        "provider {provider} failed {failures} times; next try at {until!t}",
        passing=True,
    )
    NOT_ENABLED = _offer(
        "the settings do not enable provider {provider}", passing=False
    )
    OFFERS_UNKNOWN = _offer("provider {provider} has not answered yet", passing=True)
    LIMIT_NODES = _offer(
        "limit of {limit!n} in all: {used} in use, {need} more needed",
        passing=True,
    )
    LIMIT_BURSTS = _offer(
        "[limits] max_bursts of {limit} is reached; {need} more needed", passing=True
    )
    FEW_BURSTS = _offer(
        "its nodes take {need} bursts; [limits] max_bursts is {limit}", passing=False
    )
    LIMIT_BURST = _offer(
        "limit of {limit!n} per burst; {need} are needed", passing=False
    )
    OFFER_FULL = _offer(
        "it has {total!n} in all: {used} in use, {need} more needed", passing=True
    )
    OVER_BUDGET = _offer(
        "budget {budget}: {left} of {limit} is left, and {need} would be reserved;"
        " {again}",
        passing=True,
        guests="{need} would be reserved, and a budget has less left; {again}",
    )
    # The budget would be too small even if nothing had been spent yet.
    BUDGET_SMALL = _offer(
        "budget {budget}: its limit is {limit}, and {need} would be reserved{parts}",
        passing=False,
        guests="{need} would be reserved, and the limit of a budget is lower",
    )
    # The lease is reserved as a whole, however short the job is.
    BUDGET_LEASE = _offer(
        "budget {budget}: its limit is {limit}, and {need} would be reserved for a"
        " whole lease{parts}",
        passing=False,
        guests="{need} would be reserved for a whole lease, and the limit of a budget"
        " is lower",
    )
    BUDGET_OVER = _offer(
        "budget {budget}: its last day was {last}, so nothing is bought",
        passing=False,
        guests="the last day of a budget is over, so nothing is bought",
    )
    BUDGET_UNREAD = _offer(
        "budget {budget}: record {record} cannot be read, so nothing is bought",
        passing=True,
        guests="a budget cannot be read, so nothing is bought (the owner of the"
        " instance sees why)",
    )
    LIMIT_USER = _offer(
        "limit of {limit!n} per user: {used} in use, {need} more needed",
        passing=True,
    )

    def __repr__(self) -> str:
        return f"<Reason.{self.name}>"

    @property
    def word(self) -> str:
        """Its name for programs, such as `not-worth`."""
        return self.name.lower().replace("_", "-")

    @property
    def about_job(self) -> JobReason:
        """Its meaning for a job. Only for reasons about jobs."""
        found = self._value_  # quicker than `value`
        assert isinstance(found, JobReason), self
        return found

    @property
    def about_offer(self) -> OfferReason:
        """Its meaning for an offer. Only for reasons why an offer was turned down."""
        found = self._value_  # quicker than `value`
        assert isinstance(found, OfferReason), self
        return found
