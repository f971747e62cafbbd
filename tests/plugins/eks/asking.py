# SPDX-License-Identifier: MIT
"""Short ways to ask a provider again and again, as a daemon does."""

from __future__ import annotations

from burst.errors import NotFound, Transient
from burst.model.burst import BurstId
from burst.provider import BurstSpec, BurstStatus, Provider


def provision(provider: Provider, spec: BurstSpec) -> list[str]:
    """Provision until it is through; return what was said on the way."""
    said: list[str] = []
    for _ in range(20):
        try:
            provider.provision(spec)
        except Transient as error:
            said.append(str(error))
        else:
            return said
    raise AssertionError(f"not through: {said}")


def reap(provider: Provider, burst_id: BurstId) -> int:
    """Reap until NotFound; return how many calls that took."""
    for number in range(20):
        try:
            provider.reap(burst_id)
        except NotFound:
            return number
    raise AssertionError("not gone")


def status(provider: Provider) -> BurstStatus:
    (found,) = provider.observe()
    return found
