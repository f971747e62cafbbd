# SPDX-License-Identifier: MIT
"""Finds the lead by its URI, and sees it as followers will."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import msgspec

from burst.config import LeadSettings
from burst.errors import ConfigError
from burst.lead import Lead
from burst.model.lead import LeadIdentity
from burst.shell import embedded, flux

EMBEDDED = "embedded://"


def connect(uri: str, attribute: str) -> Lead:
    """Connect to the lead at a URI; empty for FLUX_URI, or what Flux finds by itself.

    Raises LeadError saying what was tried and what to do.
    """
    uri = uri or os.environ.get("FLUX_URI", "")
    if uri.startswith(EMBEDDED):
        return embedded.connect(uri, attribute=attribute)
    return flux.connect(uri, attribute=attribute)


def as_followers_see_it(identity: LeadIdentity, settings: LeadSettings) -> LeadIdentity:
    """Return the identity with the address and port that the settings give.

    Where they say that the cluster knows them, it is asked. Raises ConfigError where
    an address is set but no port is known, and what `outside.ask_cluster` raises.
    """
    if settings.is_learnt:
        # Its client is an extra, and takes a second to import.
        from burst.shell.outside import ask_cluster  # noqa: PLC0415

        settings = ask_cluster(settings)
    if not settings.address and not settings.port:
        return identity
    known = urlsplit(identity.endpoint)
    address = settings.address or known.hostname or ""
    port = settings.port or known.port
    if not address or not port:
        missing = "lead.port" if address else "lead.address"
        raise ConfigError(
            f"{missing}: not known from the lead's bootstrap hosts either",
            "set both, as followers are to connect to them",
        )
    if ":" in address and not address.startswith("["):
        address = f"[{address}]"
    return msgspec.structs.replace(identity, endpoint=f"tcp://{address}:{port}")
