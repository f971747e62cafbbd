# SPDX-License-Identifier: MIT
"""What a tick gets to know: the lead, the providers, and the calls of providers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from burst.config import DeadlineSettings, GuestSettings
from burst.core.plan.slots import RankSlot
from burst.core.provider_health import Outcome, ProviderAnswer, Verb
from burst.core.worth.estimate import StartEstimate
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

# A burst counts as gone once it is missing in so many answers of `observe` in a row, as
# APIs of clouds are eventually consistent: one early answer must not end live bursts.
ABSENT_READS = 3
# While a provider deletes, `reap` or `resize` is called again, at first after this,
# then after twice as long each time, up to _REAP_SLOWEST; in seconds.
_REAP_AGAIN = 0.2
_REAP_SLOWEST = 5.0


class LastCall(msgspec.Struct, frozen=True, kw_only=True):
    """The last call of a provider for one burst, since this daemon started."""

    verb: Verb
    done_at: float = 0.0
    outcome: Outcome = Outcome.PENDING
    note: str = ""
    offers: tuple[str, ...] = ()
    """Of `provision` that found no capacity: other offers that have none, too."""
    by_rule: bool = False
    """Of `provision` that was refused: whether a rule forbids its offer's bursts."""
    attempts: int = 1
    """Calls of this method in a row."""
    nodes: int = 0
    """Of `resize`: how many the burst was to have."""
    taken_at: float = 0.0
    """Of `resize`: when the first call for so many returned; 0 if none has."""
    retry_at: float = 0.0
    """It is not called again before; seconds since the epoch."""


def repeat_at(call: LastCall) -> float:
    """Return when the method may be called again; math.inf while it is being called."""
    if call.outcome is Outcome.PENDING:
        return math.inf
    if call.verb not in (Verb.REAP, Verb.RESIZE):
        return call.retry_at
    wait = backoff(_REAP_AGAIN, call.attempts, _REAP_SLOWEST)
    return max(call.retry_at, call.done_at + wait)


class ProviderView(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider answered last, and when."""

    offers: Sequence[Offer] | None = None
    """None as long as it has not answered."""
    statuses: Mapping[BurstId, BurstStatus] = {}
    absent: Mapping[BurstId, int] = {}
    """In how many answers of `observe` in a row a provisioned burst is missing."""
    read_at: float = 0.0
    """When the last call of `observe` that succeeded began; 0 if there was none."""
    trouble: str = ""
    """Why the last call of `observe` failed; empty if it did not."""
    no_offers: str = ""
    """Why the last call of `offers` failed; empty if it did not."""


class StoreTrouble(msgspec.Struct, frozen=True):
    """The store refuses the records."""

    since: float
    why: str

    def text(self) -> str:
        """Return it in words, with what the daemon does meanwhile."""
        return (
            f"since {moment(self.since)} nothing can be written to the store:"
            f" {self.why}; meanwhile the daemon takes down what is idle, and begins"
            " nothing"
        )


class World(msgspec.Struct, frozen=True, kw_only=True):
    """All that was read. What could not be read is None, and nothing is done by it."""

    identity: LeadIdentity
    slots: Sequence[RankSlot]
    lead: LeadView | None
    trouble: str = ""
    """Why the lead could not be read."""
    unread: float = 0.0
    """For how many seconds up to now the lead was not read, as it or the daemon hung; 0
    where it was read all the time, infinity in the first tick of a daemon."""
    store_trouble: StoreTrouble | None = None
    """None while the store takes the records."""
    providers: Mapping[str, ProviderView] = {}
    """In the order of the settings; only those that are enabled."""
    places: Mapping[str, str] = {}
    """Where each provider makes bursts, as `Lease.place`."""
    deadlines: DeadlineSettings = DeadlineSettings()
    """Of the settings, for what is told of bursts."""
    resizable: frozenset[str] = frozenset()
    """Providers whose bursts can grow and shrink."""
    calls: Mapping[BurstId, LastCall] = {}
    closing: bool = False
    """Whether the daemon takes all bursts down, and makes none."""
    answered: Sequence[ProviderAnswer] = ()
    """What was answered since the last tick."""
    forecasts: Mapping[JobId, StartEstimate] | None = None
    """When pending jobs are expected to start on own nodes: those that may be judged by
    it. None before the first forecast."""
    forecast_owed_since: float | None = None
    """Since when something has changed, and no forecast was made; None if nothing has.
    """
    run_times: Mapping[JobId, float] = {}
    """For how many seconds pending jobs are expected to run, by past jobs like them:
    what counts for jobs without a time limit."""
    userids: Mapping[str, int] = {}
    """Numbers of the users that rules name, as far as this host knows them."""
    subuids: Subuids = NO_SUBUIDS
    """User ids on this host that are no accounts."""
    banks: Banks = NOT_VERIFIED
    accounting: AccountingFacts | None = None
    """None where flux-accounting does not run, or has not answered."""
    archived: Mapping[BurstId, float] | None = None
    """Settled bursts on record that are archived, and when they were made; None where
    none are archived."""

    def no_account_of(self, userid: int, settings: GuestSettings) -> str:
        """Return whose subordinate user id it is (subuid(5)); empty for an account's.

        Nothing is made for such ids. Limits, budgets and rates are by user: one who has
        thousands of ids would have thousands of them, and jobs under such an id could
        not even run, as the IMP starts none for an id without an entry in passwd.
        """
        return "" if settings.take_subuids else self.subuids.owner(userid)

    def read_lead(self) -> LeadView:
        """Return the lead as it was read. Raises Unreadable if it was not."""
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
    """Return the view after a call of the provider's `observe` that succeeded.

    `statuses` is what it returned, and `began_at` when it began. `provisioned` are the
    bursts that were provisioned before that, which it should list.
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
