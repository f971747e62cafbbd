# SPDX-License-Identifier: MIT
"""Reaps as the daemon does: again until the provider confirms the end."""

from __future__ import annotations

from burst.errors import NotFound, Transient
from burst.model.burst import BurstId
from burst.provider import Provider
from tests.support.waiting import wait_until


def reap_until_gone(provider: Provider, burst_id: BurstId) -> None:
    """Reap until the provider raises NotFound. Fails if that takes too long."""

    def gone() -> bool:
        try:
            provider.reap(burst_id)
        except NotFound:
            return True
        except Transient:
            pass  # the next call may go through
        return False

    wait_until(gone, f"the end of {burst_id}")
