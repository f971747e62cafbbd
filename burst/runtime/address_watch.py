# SPDX-License-Identifier: MIT
"""Notices a change of the lead's address, if the address is read from the cluster.

The port of a Service on the nodes changes when the Service is made anew, and the node's
address when the lead's pod moves. Followers of bursts that are made afterwards get the
new address. A thread of its own asks the cluster.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from burst import log
from burst.config import LeadSettings
from burst.errors import BurstError
from burst.model.lead import LeadIdentity
from burst.runtime.connect import with_settings

ADDRESS_S = 120.0
"""Seconds that the lead may take to be reached at `[lead] address`, if that is set,
after the daemon's start. A NodePort opens in a second, a load balancer in a minute."""
# Seconds between two requests. Followers that are made in between with an old address
# cannot join, but cost money.
_EVERY_S = 5.0

ReadIdentity = Callable[[LeadIdentity, LeadSettings], LeadIdentity]


class AddressWatch:
    """`follow` and `close` belong to one thread."""

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
        log.say(
            "followers of new bursts connect to %s; those of live bursts look for the"
            " lead at %s, where it is no longer reached",
            self._told,
            identity.endpoint,
            level=logging.WARNING,
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
                log.say(
                    "cannot read whether the lead has another address: %s",
                    why,
                    level=logging.WARNING,
                )
            return
        self._trouble = ""
        if endpoint != identity.endpoint and self._asked == (identity, settings):
            self._told = endpoint
            self._wake()
