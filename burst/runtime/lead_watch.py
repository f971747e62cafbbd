# SPDX-License-Identifier: MIT
"""Follows what may change of a lead: its access, queues, limits and address."""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from burst import log
from burst.config import LeadSettings
from burst.errors import BurstError, Denied, LeadError, LeadGone
from burst.lead import Guests, Lead
from burst.model.lead import LeadIdentity
from burst.runtime.connect import with_settings


class AccessWatch:
    """Reads access, queues and limits once per cadence. Use from one thread."""

    def __init__(self, lead: Lead, now: float) -> None:
        self._lead = lead
        self._read_at = now

    def follow(self, known: LeadIdentity, cadence: float, now: float) -> LeadIdentity:
        """Return the identity as it is now; the same one if nothing has changed.

        The lead is asked once per `cadence`, in seconds. A site may let guests in by
        `flux config reload`. From then on guests get no isolated bursts, which would
        run their programs as the owner's user. Raises LeadGone.
        """
        if not isinstance(self._lead, Guests) or now - self._read_at < cadence:
            return known
        self._read_at = now
        try:
            access = self._lead.read_access()
        except LeadGone:
            raise
        except (Denied, LeadError) as error:
            log.warn("%s; the daemon asks again later", error)
            return known
        told = self._lead.identity()
        if access != known.access:
            log.say(
                "the lead's [access], [exec] imp or [ingest] has changed; live bursts"
                " keep what they were made with"
            )
        elif (told.queues, told.limits) == (known.queues, known.limits):
            return known
        return msgspec.structs.replace(
            known, access=access, queues=told.queues, limits=told.limits
        )


ADDRESS_S = 120.0
"""Seconds that the lead may take to be reached at `[lead] address`, if that is set,
after the daemon's start. A NodePort opens in a second, a load balancer in a minute."""
# Seconds between two requests. Followers that are made in between with an old address
# cannot join, but cost money.
_EVERY_S = 5.0

ReadIdentity = Callable[[LeadIdentity, LeadSettings], LeadIdentity]


class AddressWatch:
    """Notices a change of the lead's address, if it is read from the cluster.

    The port of a Service on the nodes changes when the Service is made anew, and the
    node's address when the lead's pod moves. Followers of bursts that are made
    afterwards get the new address. A thread of its own asks the cluster.
    `follow` and `close` belong to one thread.
    """

    def __init__(
        self,
        wake: Callable[[], None],
        read: ReadIdentity = with_settings,
        pause: float = _EVERY_S,
    ) -> None:
        """`wake` is called when the address has changed; `pause` is in seconds."""
        self._wake, self._read, self._pause = wake, read, pause
        self._asked: tuple[LeadIdentity, LeadSettings] | None = None
        self._told = ""
        self._trouble = ""
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def follow(
        self, identity: LeadIdentity, settings: LeadSettings, now: float
    ) -> LeadIdentity:
        """Return the identity, with the new endpoint if the address has changed.

        The first call starts the thread, if the settings take the address from the
        cluster. `now` is in seconds since the epoch.
        """
        if not settings.is_learnt:
            self._asked = None
            return identity
        if self._asked != (identity, settings):
            self._asked, self._told = (identity, settings), ""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="address-watch", daemon=True
            )
            self._thread.start()
        if not self._told:
            return identity
        log.warn(
            "followers of new bursts connect to %s; those of live bursts look for the"
            " lead at %s, where it is no longer reached",
            self._told,
            identity.endpoint,
        )
        return msgspec.structs.replace(identity, endpoint=self._told, moved=now)

    def close(self) -> None:
        """Stop asking. A request under way ends by itself."""
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(self._pause):
            if (asked := self._asked) is not None:
                self._ask(*asked)

    def _ask(self, identity: LeadIdentity, settings: LeadSettings) -> None:
        try:
            endpoint = self._read(identity, settings).endpoint
        except Exception as error:  # noqa: BLE001 - the thread must go on
            why = str(error) if isinstance(error, BurstError) else repr(error)
            if why != self._trouble:
                self._trouble = why
                log.warn("cannot read whether the lead has another address: %s", why)
            return
        self._trouble = ""
        if endpoint != identity.endpoint and self._asked == (identity, settings):
            self._told = endpoint
            self._wake()
