# SPDX-License-Identifier: MIT
"""The banks and queues that a burst is made for: a site charges for it by these."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from burst.model.banks import Banks
from burst.model.burst import Lease
from burst.model.lead import JobView


def with_accounts(lease: Lease, jobs: Iterable[JobView], banks: Banks) -> Lease:
    """Return the lease with the banks that pay for these jobs, and their queues."""
    listed = list(jobs)
    paying = {banks.bank_of(job) for job in listed} - {""}
    queues = {job.queue for job in listed} - {""}
    return msgspec.structs.replace(
        lease, banks=tuple(sorted(paying)), queues=tuple(sorted(queues))
    )
