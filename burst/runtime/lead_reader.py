# SPDX-License-Identifier: MIT
"""Reads the lead for each tick, and tells for how long it was not read; or once."""

from __future__ import annotations

import math

from burst import log
from burst.core.records import Records, jobs_on_record
from burst.errors import LeadError, LeadGone
from burst.lead import Lead
from burst.model.lead import LeadView

# If a tick is more seconds late than this, the daemon was stopped, or a call to the
# lead hung. On a busy machine ticks are late by less.
_STOPPED_S = 60.0
_UNREAD = "it has not been read yet"


def read_once(lead: Lead, records: Records) -> LeadView:
    """Return what the lead tells, as to a daemon with these records. Raises LeadError.

    Jobs on record that a rule marked would not be shown otherwise, and count as gone.
    """
    lead.listen(lambda: None, lambda: jobs_on_record(records))
    return lead.observe()


class LeadReader:
    """Reads the lead. Use from one thread."""

    def __init__(self, lead: Lead) -> None:
        self.trouble = _UNREAD
        """Why the lead could not be read last; empty if it was."""
        self._lead = lead
        self._read_at = -math.inf
        self._unread = True
        """Whether the last read failed, or there was none yet."""

    def read(self) -> LeadView | None:
        """Return what the lead tells; None where it cannot be read. Raises LeadGone."""
        before = self.trouble
        try:
            view = self._lead.observe()
        except LeadGone:
            raise
        except LeadError as error:
            self.trouble = str(error)
            # Logged once, not in each tick.
            if self.trouble != before:
                log.warn("the lead cannot be read: %s", error)
            return None
        if before not in ("", _UNREAD):
            log.say("the lead can be read again")
        self.trouble = ""
        return view

    def unread_for(self, view: LeadView | None, due: float, now: float) -> float:
        """Return for how many seconds the lead was not read until now: `World.unread`.

        `due` is when this tick was due. All the time since the last read counts, as
        nobody knows when the lead could no longer be read.
        """
        if view is None:
            self._unread = True
            return 0.0
        stopped = self._unread or now - due > _STOPPED_S
        unread = now - self._read_at if stopped else 0.0
        self._read_at, self._unread = now, False
        return unread
