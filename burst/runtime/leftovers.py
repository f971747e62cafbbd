# SPDX-License-Identifier: MIT
"""Finds and deletes bursts by their tags alone, for when their lead is lost.

No record is read, so a burst that its lead still uses is listed as well. Choose the
bursts to delete by their owner, or by the end of their lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from burst.config import Settings
from burst.core.world import LastCall
from burst.errors import ConfigError
from burst.provider import OwnedBurst, Provider
from burst.runtime import provider_registry
from burst.runtime.last_call import ProviderBurst
from burst.runtime.reap_bursts import (
    ANSWERED_WITHIN,
    answer_within,
    reap_until_gone,
)

EXPIRED_AFTER = 600.0
"""Seconds after the end of its lease at which a burst counts as expired: by then its
daemon, if there is one, and the cluster have deleted it by themselves."""
_NOBODY = "burst-gc"


def has_expired(burst: OwnedBurst, now: float) -> bool:
    """Tell whether the burst's lease ended at least EXPIRED_AFTER seconds ago.

    `now` is in seconds since the epoch. A burst whose lease has no end never expires.
    """
    return bool(burst.lease_end) and now - burst.lease_end >= EXPIRED_AFTER


class Leftovers:
    """The bursts of all owners in the place of one provider of the settings."""

    def __init__(self, settings: Settings, name: str) -> None:
        """Raises ConfigError if there is no provider of this name, or it is wrong."""
        table = settings.providers.get(name)
        if table is None:
            raise ConfigError(
                f"there is no provider {name} in the settings",
                f"there are {', '.join(settings.providers) or 'none'}; use -c to name"
                " the daemon's settings file, in which it is",
            )
        self._name, self._table = name, table
        self._provider = provider_registry.load_provider(name, table, _NOBODY)

    def place(self) -> str:
        """Return where the provider looks, in its own words; empty if it has none."""
        return self._provider.place()

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return all bursts that the provider sees.

        Raises ConfigError if it cannot list them, Transient if it does not answer, and
        what its `list_all` raises.
        """
        provider = self._provider
        if not provider.has("list_all"):
            raise ConfigError(
                f"providers.{self._name}: type {self._table.type} cannot list bursts"
                " without their lead",
                "run burst gc without --provider, on the lead",
            )
        asked = f"provider {self._name}: list_all"
        return answer_within(provider.list_all, ANSWERED_WITHIN, asked)

    def delete(
        self,
        bursts: Iterable[OwnedBurst],
        tell: Callable[[ProviderBurst, LastCall], None],
        limit: float,
    ) -> dict[str, str]:
        """Delete these bursts until nothing is left, for at most `limit` seconds.

        Each is deleted by a provider with the burst's own owner and provider name.
        Returns the bursts that are left, and why.
        """
        providers: dict[str, Provider] = {}
        keys = []
        for burst in bursts:
            key = f"{burst.owner}/{burst.provider}"
            if key not in providers:
                providers[key] = provider_registry.load_provider(
                    burst.provider, self._table, burst.owner
                )
            keys.append((key, burst.burst_id))
        return reap_until_gone(keys, providers, tell, limit)
