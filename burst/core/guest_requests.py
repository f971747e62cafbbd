# SPDX-License-Identifier: MIT
"""Bursts that guests request themselves, ahead of jobs. Pure, like the tick."""

from __future__ import annotations

import msgspec

from burst.config import GuestSettings, Settings
from burst.core.burst_requests import request_nodes
from burst.core.commands import take_down_burst
from burst.core.guest_view import OWNER_SEES
from burst.core.jobs.association_limits import LimitsInUse
from burst.core.plan.demands import Demand
from burst.core.plan.plan_demands import unread_use
from burst.core.records import RecordChanges, RecordsView
from burst.core.world import Halt, World
from burst.errors import BurstError, Denied, LeadError
from burst.model.burst import BurstId


def request_for_guest(nodes: int, provider: str, userid: int) -> Demand:
    """Return the demand of a guest's `burst request -N`. Raises BurstError."""
    demand = request_nodes(nodes, provider)
    preferences = msgspec.structs.replace(demand.preferences, guest=True)
    return msgspec.structs.replace(demand, userid=userid, preferences=preferences)


def refuse_call(userid: int, world: World, settings: GuestSettings) -> None:
    """Raise Denied for a call from a user id that is not an account."""
    whose = world.no_account_of(userid, settings)
    if whose:
        raise Denied(
            f"{userid} is a subordinate user id of {whose} (subuid(5)), not an account",
            "run burst outside of the user namespace; if it is an account, tell the"
            " instance's owner, who can set take_subuids under [guests]",
        )


def halted(halt: Halt, *, guest: bool) -> LeadError:
    """Return the error for a request while the daemon begins nothing."""
    if guest:
        # The reason may name jobs of others.
        return LeadError("the daemon cannot make bursts at present", OWNER_SEES)
    return LeadError(halt.text(), halt.advice)


class GuestLimits:
    """Limits on what guests may request besides what they have, at one moment."""

    def __init__(
        self, records: RecordsView, world: World, settings: Settings, now: float
    ) -> None:
        self._records, self._world = records, world
        self._settings, self._now = settings, now

    def check(self, userid: int, nodes: int) -> None:
        """Raise BurstError if a guest may not request this many further nodes."""
        if self._world.halt is not None:
            raise halted(self._world.halt, guest=True)
        self._check_site(userid, nodes)
        self._check_association(userid, nodes)

    def _check_site(self, userid: int, nodes: int) -> None:
        """Check the site's limit; bursts that are being taken down still count."""
        most = self._settings.guests.request_nodes
        live = self._records.live
        has = sum(b.lease.nodes for b in live if b.lease.requester == userid)
        # Which of those were requested is not known: they count, too.
        unread = unread_use(self._records, self._world).values()
        has += sum(use.nodes for use in unread if userid in use.charged)
        if not most:
            raise Denied(
                "users may not request bursts on this instance",
                "submit a job with flux submit --burst; the owner of the instance"
                " allows requests by [guests] request_nodes",
            )
        if has + nodes > most:
            raise BurstError(
                f"bursts that you request may have {most} nodes in all; you have {has},"
                f" and ask for {nodes} more",
                "burst down BURST ends one of yours",
            )

    def _check_association(self, userid: int, nodes: int) -> None:
        """Check that the limit of one of the user's banks allows the request.

        A request names no bank. If the user's default bank is known, only its limit
        counts; the plugin of flux-accounting does not report it.
        """
        banks = self._world.banks
        if self._now < banks.awaited_until:
            raise BurstError(
                "flux-accounting has not said yet which banks you may use",
                "ask again in a minute",
            )
        if banks.associations is None:
            return
        theirs = banks.of_user(userid)
        if not theirs:
            raise Denied(
                "you have no active account in flux-accounting",
                "ask the administrator of flux-accounting; flux account view-user shows"
                " your accounts",
            )
        default = banks.associations.defaults.get(userid)
        asked = [default] if default else sorted(theirs)
        why = [self._full(userid, bank, nodes) for bank in asked]
        if all(why):
            raise BurstError(
                f"flux-accounting: {', '.join(why)} (including rented nodes);"
                f" you ask for {nodes} more",
                "ask for fewer, or wait until jobs or bursts of yours have ended",
            )

    def _full(self, userid: int, bank: str, nodes: int) -> str:
        """Return why a bank's limit forbids this many further nodes; else empty.

        Also empty if the lead cannot be read: no burst is made then.
        """
        facts, lead = self._world.accounting, self._world.lead
        limits = facts.associations.get((userid, bank)) if facts and lead else None
        if limits is None:
            return ""
        used = LimitsInUse(self._records, self._world).nodes_in_use(userid, bank)
        if used + nodes <= limits.max_nodes:
            return ""
        return f"limit max_nodes {limits.max_nodes} of bank {bank}: {used} in use"


def take_down_guests(tx: RecordChanges, burst_id: str, userid: int) -> None:
    """Take down a burst that a guest requested. Raises Denied, BurstError.

    What runs on it continues to its end. The error for a burst of another user is the
    same as for a burst that does not exist.
    """
    burst = tx.bursts.get(BurstId(burst_id))
    if burst is None or burst.lease.requester != userid:
        raise Denied(
            "that is not a burst that you requested",
            "a burst that was made for a job ends with the job: flux cancel",
        )
    take_down_burst(tx, burst_id, "taken down by its user")
