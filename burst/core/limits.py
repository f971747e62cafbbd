# SPDX-License-Identifier: MIT
"""What is never exceeded, and whom not to ask for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from burst.config import LimitSettings
from burst.model.burst import Burst
from burst.model.reason import Reason, Refusal

# A provider call that failed is repeated after this many seconds, doubled each time.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# An offer whose bursts keep failing is set aside for at most this many times as long.
_MOST_DOUBLINGS = 4


class OfferHealth(msgspec.Struct, frozen=True):
    """An offer that had no capacity, or whose bursts did not come up."""

    failures: int = 0
    until: float = 0.0
    """Not tried before then; seconds since the epoch."""


class Health(msgspec.Struct, frozen=True):
    """What is held against a provider; kept in the store, so that a restart knows."""

    disabled: str = ""
    """Why it was disabled (Refused); empty while it is not. Ends by `burst enable`."""
    failures: int = 0
    """Unexpected failures in a row."""
    until: float = 0.0
    """The breaker is open until then."""
    offers: Mapping[str, OfferHealth] = {}

    @property
    def spotless(self) -> bool:
        """Whether there is nothing to keep."""
        return self == Health()


def pause(attempts: int) -> float:
    """Return how many seconds to wait after that many attempts that failed."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts - 1, 10)))


def after_failure(health: Health, limits: LimitSettings, now: float) -> Health:
    """Count an unexpected failure; enough of them in a row open the breaker."""
    failures = health.failures + 1
    until = health.until
    if failures >= limits.breaker:
        until = now + limits.breaker_pause
    return msgspec.structs.replace(health, failures=failures, until=until)


def after_success(health: Health) -> Health:
    """A call that worked closes the breaker."""
    return msgspec.structs.replace(health, failures=0, until=0.0)


def after_refusal(health: Health, why: str) -> Health:
    """Disable the provider until a person acts."""
    return msgspec.structs.replace(health, disabled=why)


def set_aside(health: Health, offer: str, limits: LimitSettings, now: float) -> Health:
    """Keep from an offer for a while; twice as long each time it fails again.

    Making and deleting the same cluster for ever costs money and helps nobody.
    """
    failures = health.offers.get(offer, OfferHealth()).failures + 1
    longer = 2 ** min(failures - 1, _MOST_DOUBLINGS)
    entry = OfferHealth(failures, now + limits.set_aside * longer)
    return msgspec.structs.replace(health, offers={**health.offers, offer: entry})


def restore(health: Health, offer: str) -> Health:
    """Forget what was held against an offer, as a burst of it came up."""
    offers = {name: entry for name, entry in health.offers.items() if name != offer}
    return msgspec.structs.replace(health, offers=offers)


def unavailable(
    provider: str, offer: str, health: Health, now: float
) -> tuple[Reason, dict[str, object]] | None:
    """Return why an offer cannot be taken now, None if it can."""
    if health.disabled:
        return Reason.DISABLED, {"provider": provider, "why": health.disabled}
    if health.until > now:
        return Reason.BREAKER, {
            "provider": provider,
            "failures": health.failures,
            "until": health.until,
        }
    aside = health.offers.get(offer, OfferHealth())
    if aside.until > now:
        return Reason.SET_ASIDE, {"until": aside.until}
    return None


class Usage:
    """Nodes and bursts in use, against the limits; grows as a plan is made."""

    def __init__(self, limits: LimitSettings, live: Iterable[Burst]) -> None:
        self._limits = limits
        self._nodes = 0
        self._bursts = 0
        self._by_user: dict[int, int] = {}
        for burst in live:
            self.add(burst.lease.nodes, 1, burst.lease.userids)

    def add(self, nodes: int, bursts: int, userids: Iterable[int]) -> None:
        """Count nodes and bursts made for these users; each user bears all of it."""
        self._nodes += nodes
        self._bursts += bursts
        for userid in userids:
            self.add_user(nodes, userid)

    def add_user(self, nodes: int, userid: int | None) -> None:
        """Count nodes against a user alone, who joined a burst that is counted."""
        if userid is not None:
            self._by_user[userid] = self._by_user.get(userid, 0) + nodes

    def never(self, nodes: int, userid: int | None) -> dict[str, object] | None:
        """Return the limit that alone keeps anybody from so many nodes for a user."""
        limits = self._limits
        for key, limit in (
            ("max_nodes", limits.max_nodes),
            ("max_nodes_per_user", 0 if userid is None else limits.max_nodes_per_user),
        ):
            if 0 < limit < nodes:
                return {"key": f"limits.{key}", "limit": limit, "need": nodes}
        return None

    def refuse(self, offer: str, sizes: tuple[int, ...], grown: int) -> Refusal | None:
        """Return why that much more is too much, None if it is not.

        `sizes` are the nodes of each new burst; with `grown`, instead, one burst
        that the plan has already grows to sizes[0], of which `grown` are new.
        """
        limits = self._limits
        nodes = grown or sum(sizes)
        if 0 < limits.max_nodes_per_burst < max(sizes):
            facts = {"limit": limits.max_nodes_per_burst, "need": max(sizes)}
            return Refusal(offer, Reason.LIMIT_BURST, facts)
        if 0 < limits.max_bursts < self._bursts + (0 if grown else len(sizes)):
            return Refusal(offer, Reason.LIMIT_BURSTS, {"limit": limits.max_bursts})
        if 0 < limits.max_nodes < self._nodes + nodes:
            facts = {"limit": limits.max_nodes, "used": self._nodes, "need": nodes}
            return Refusal(offer, Reason.LIMIT_NODES, facts)
        return None

    def refuse_user(self, offer: str, nodes: int, userid: int | None) -> Refusal | None:
        """Return why so many nodes more are too many for a user; None for nobody."""
        used = self._by_user.get(userid, 0) if userid is not None else 0
        limit = self._limits.max_nodes_per_user
        if userid is None or not 0 < limit < used + nodes:
            return None
        facts = {"limit": limit, "used": used, "need": nodes}
        return Refusal(offer, Reason.LIMIT_USER, facts)
