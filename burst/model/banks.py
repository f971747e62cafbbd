# SPDX-License-Identifier: MIT
"""Banks: who pays for a job, and whether flux-accounting lets its user use the bank."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.accounting import AccountingFacts
from burst.model.lead import JobView


class Associations(msgspec.Struct, frozen=True):
    """The banks that users may use; an association is a user and a bank."""

    banks: Mapping[int, frozenset[str]]
    """The banks of each user id; only active associations."""
    defaults: Mapping[int, str] = {}
    """The bank of each user's jobs that name none."""
    facts: AccountingFacts | None = None
    """Limits and weights; None if they were not asked for."""


class Banks(msgspec.Struct, frozen=True):
    """What is known about banks in one tick."""

    associations: Associations | None = None
    """None if banks are not verified: the bank that a job names is taken as it is."""
    awaited_until: float = 0.0
    """Until when jobs wait for the first answer, in seconds since the epoch; 0 once
    that has come or failed."""
    unverified: str = "flux-accounting does not run at this lead"
    """Why banks are not verified."""

    def refuses(self, job: JobView) -> bool:
        """Tell whether a job names a bank that its user may not use."""
        if self.associations is None or not job.bank:
            return False
        return job.bank not in self.of_user(job.userid)

    def bank_of(self, job: JobView) -> str:
        """Return the bank that pays for a job; empty for none.

        It is the bank that the job names, or else its user's default bank. A bank that
        the user may not use pays for nothing.
        """
        if self.associations is None:
            return job.bank
        if not job.bank:
            return self.associations.defaults.get(job.userid, "")
        return "" if self.refuses(job) else job.bank

    def of_user(self, userid: int) -> frozenset[str]:
        """Return the banks that a user may use, as far as is known."""
        known = self.associations.banks if self.associations else {}
        return known.get(userid, frozenset())


NOT_VERIFIED = Banks()
"""The value if flux-accounting does not run."""
