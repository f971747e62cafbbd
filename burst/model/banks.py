# SPDX-License-Identifier: MIT
"""Banks: who pays for a job, and whether flux-accounting says that its user may."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.accounting import AccountingFacts
from burst.model.lead import JobView


class Associations(msgspec.Struct, frozen=True):
    """Which banks users may use. An association is a user and a bank, as there."""

    banks: Mapping[int, frozenset[str]]
    """By user id; only associations that are active."""
    defaults: Mapping[int, str] = {}
    """The bank of a user's jobs that name none."""
    facts: AccountingFacts | None = None
    """Limits and weights, where they were asked for as well."""


class Banks(msgspec.Struct, frozen=True):
    """What is known of banks in one tick."""

    associations: Associations | None = None
    """None where banks are not verified: each is as the job names it."""
    awaited_until: float = 0.0
    """Until then the first answer is waited for; 0 once there was one, or none came."""
    unverified: str = "flux-accounting does not run at this lead"
    """Why they are not verified."""

    def refuses(self, job: JobView) -> bool:
        """Tell whether a job names a bank that is not its user's."""
        if self.associations is None or not job.bank:
            return False
        return job.bank not in self.of_user(job.userid)

    def bank_of(self, job: JobView) -> str:
        """Return the bank that pays for a job, empty for none.

        That is the one it names or, where it names none, its user's default one. A bank
        that is not the user's pays for nothing.
        """
        if self.associations is None:
            return job.bank
        if not job.bank:
            return self.associations.defaults.get(job.userid, "")
        return "" if self.refuses(job) else job.bank

    def of_user(self, userid: int) -> frozenset[str]:
        """Return the banks that are known to be a user's."""
        known = self.associations.banks if self.associations else {}
        return known.get(userid, frozenset())


NOT_VERIFIED = Banks()
"""Where flux-accounting does not run."""
