# SPDX-License-Identifier: MIT
"""Finds how a person gets access to a burst, by the provider's settings alone."""

from __future__ import annotations

from collections.abc import Sequence

from burst.config import Settings
from burst.errors import ConfigError
from burst.model.burst import BurstId
from burst.model.lead import LeadIdentity
from burst.runtime import provider_registry
from burst.runtime.connect import owner_tag


def access_commands(
    settings: Settings, identity: LeadIdentity, provider: str, burst: BurstId
) -> Sequence[str]:
    """Return shell commands that give access to a burst; empty if there are none.

    Raises ConfigError for a provider that these settings do not have.
    """
    table = settings.providers.get(provider)
    if table is None:
        raise ConfigError(
            f"{burst} was made by provider {provider}, which these settings do not"
            " have",
            "name the daemon's settings file with -c",
        )
    owner = owner_tag(identity, settings.lead)
    return provider_registry.load_provider(provider, table, owner).access(burst)
