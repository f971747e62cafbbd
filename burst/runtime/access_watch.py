# SPDX-License-Identifier: MIT
"""Follows the lead's access, queues and limits, which a site may reload."""

from __future__ import annotations

import logging

import msgspec

from burst import log
from burst.errors import Denied, LeadError, LeadGone
from burst.lead import Guests, Lead
from burst.model.lead import LeadIdentity


class AccessWatch:
    """Reads them once per cadence. Use from one thread."""

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
            log.say("%s; the daemon asks again later", error, level=logging.WARNING)
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
