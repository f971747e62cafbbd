# SPDX-License-Identifier: MIT
"""All that a tick knows of the outside: the lead, the providers, and their calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import DeadlineSettings, GuestSettings
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.slots import RankSlot
from burst.core.provider_health import (
    Outcome,
    ProviderAnswer,
    Verb,
    describe_pause,
)
from burst.errors import Unreadable
from burst.model.accounting import AccountingFacts
from burst.model.backoff import backoff
from burst.model.banks import NOT_VERIFIED, Banks
from burst.model.burst import BurstId
from burst.model.decision import moment
from burst.model.jobid import JobId
from burst.model.lead import LeadIdentity, LeadView
from burst.model.subuids import NO_SUBUIDS, Subuids
from burst.provider import BurstStatus, Offer

# A burst counts as gone once it is missing from this many answers of `observe` in a
# row: APIs of clouds are eventually consistent, and one early answer must not end live
# bursts.
ABSENT_READS = 3
# While a provider deletes, `reap` or `resize` is called again: first after this many
# seconds, then after twice as long each time, up to _REAP_SLOWEST.
_REAP_AGAIN = 0.2
_REAP_SLOWEST = 5.0


class LastCall(msgspec.Struct, frozen=True, kw_only=True):
    """The last call of a provider for one burst since this daemon started."""

    verb: Verb
    done_at: float = 0.0
    outcome: Outcome = Outcome.PENDING
    note: str = ""
    offers: tuple[str, ...] = ()
    """Further offers without capacity, after `provision` found none; else empty."""
    by_rule: bool = False
    """After `provision` was refused: whether the cause is a rule that forbids all
    bursts of the offer."""
    first: bool = False
    """Whether no call for the burst was made before, nor by an earlier daemon."""
    attempts: int = 1
    """The number of calls of this method in a row, with this one."""
    nodes: int = 0
    """The number of nodes that `resize` was called for; 0 for other methods."""
    taken_at: float = 0.0
    """When the first `resize` for this number of nodes returned, in seconds since the
    epoch; 0 if none has."""
    retry_at: float = 0.0
    """The earliest time of the next call, in seconds since the epoch."""

    @property
    def told(self) -> str:
        """The note, and when the method is called again if that is not soon."""
        return self.note and self.note + describe_pause(self.done_at, self.retry_at)


def repeat_at(call: LastCall) -> float:
    """Return when the method may be called again; math.inf while the call lasts."""
    if call.outcome is Outcome.PENDING:
        return math.inf
    if call.verb not in (Verb.REAP, Verb.RESIZE):
        return call.retry_at
    wait = backoff(_REAP_AGAIN, call.attempts, _REAP_SLOWEST)
    return max(call.retry_at, call.done_at + wait)


class ProviderView(msgspec.Struct, frozen=True, kw_only=True):
    """The last answers of a provider, and when they were read."""

    offers: Sequence[Offer] | None = None
    """The offers; None until the provider has answered."""
    statuses: Mapping[BurstId, BurstStatus] = {}
    absent: Mapping[BurstId, int] = {}
    """By provisioned burst: in how many answers of `observe` in a row it is missing."""
    read_at: float = 0.0
    """When the last successful call of `observe` began, in seconds since the epoch; 0
    if there was none."""
    trouble: str = ""
    """Why the last call of `observe` failed; empty if it succeeded."""
    no_offers: str = ""
    """Why the last call of `offers` failed; empty if it succeeded."""


class Halt(msgspec.Struct, frozen=True):
    """Why the daemon begins nothing, and since when."""

    what: str
    """What fails, such as `writing to the store`."""
    since: float
    why: str
    advice: str
    """What to do about it."""
    frees: bool = True
    """Whether idle bursts are taken down meanwhile."""

    def text(self) -> str:
        """Return the trouble in words, with what the daemon does meanwhile."""
        does = "takes down idle bursts and starts nothing new"
        return (
            f"{self.what} has failed since {moment(self.since)}: {self.why}; meanwhile"
            f" the daemon {does if self.frees else 'does nothing'}"
        )


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read. A part that could not be read is None, and changes nothing."""

    identity: LeadIdentity
    slots: Sequence[RankSlot]
    lead: LeadView | None
    trouble: str = ""
    """Why the lead could not be read; empty if it was read."""
    unread: float = 0.0
    """For how many seconds until now the lead was not read, as it or the daemon hung; 0
    if it was read all the time, infinity in the first tick of a daemon."""
    halt: Halt | None = None
    """None while the daemon decides, and the store takes the records."""
    providers: Mapping[str, ProviderView] = {}
    """The enabled providers, in the order of the settings."""
    places: Mapping[str, str] = {}
    """Where each provider makes bursts, as `Lease.place`."""
    deadlines: DeadlineSettings = DeadlineSettings()
    """The deadlines of the settings, for reports about bursts."""
    resizable: frozenset[str] = frozenset()
    """Providers whose bursts can grow and shrink."""
    calls: Mapping[BurstId, LastCall] = {}
    closing: bool = False
    """Whether the daemon takes all bursts down and makes none."""
    answered: Sequence[ProviderAnswer] = ()
    """The answers of providers since the last tick."""
    forecasts: Mapping[JobId, StartEstimate] | None = None
    """When pending jobs are expected to start on own nodes, for the jobs that a tick
    may judge by it; None before the first forecast."""
    forecast_owed_since: float | None = None
    """Since when a new forecast is owed because something changed, in seconds since the
    epoch; None if the last forecast still holds."""
    run_times: Mapping[JobId, float] = {}
    """The expected run times of pending jobs in seconds, from past jobs like them; used
    for jobs without a time limit."""
    userids: Mapping[str, int] = {}
    """The user ids of the users that rules name, as far as this host knows them."""
    subuids: Subuids = NO_SUBUIDS
    """The user ids of this host that are not accounts."""
    banks: Banks = NOT_VERIFIED
    accounting: AccountingFacts | None = None
    """None if flux-accounting does not run, or has not answered."""
    archived: Mapping[BurstId, float] | None = None
    """The settled bursts on record that are in the archive, and when each was made;
    None if there is no archive."""

    @property
    def rents_nothing(self) -> bool:
        """Whether no nodes are rented now, as the daemon stops, or its lead."""
        return self.closing or (self.lead is not None and self.lead.shuts_down)

    def no_account_of(self, userid: int, settings: GuestSettings) -> str:
        """Return whose subordinate user id this is (subuid(5)); empty for an account.

        Nothing is made for subordinate ids. Limits, budgets and rates are by user: a
        user with thousands of ids would have thousands of limits. Nor could jobs under
        such an id run: the IMP starts no job for an id without an entry in passwd.
        """
        return "" if settings.take_subuids else self.subuids.owner(userid)

    def read_lead(self) -> LeadView:
        """Return the lead as it was read. Raises Unreadable if it was not read."""
        if self.lead is None:
            raise Unreadable(
                f"the lead cannot be read: {self.trouble}", "run burst doctor"
            )
        return self.lead


def after_observation(
    view: ProviderView,
    statuses: Sequence[BurstStatus],
    provisioned: Sequence[BurstId],
    began_at: float,
) -> ProviderView:
    """Return the view after a successful call of the provider's `observe`.

    `statuses` is what it returned, and `began_at` when it began. `provisioned` are the
    bursts that were provisioned before, which it should list.
    """
    found = {status.burst_id: status for status in statuses}
    absent = {
        burst: view.absent.get(burst, 0) + 1
        for burst in provisioned
        if burst not in found
    }
    return ProviderView(
        offers=view.offers,
        no_offers=view.no_offers,
        statuses=found,
        absent=absent,
        read_at=began_at,
    )
