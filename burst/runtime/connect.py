# SPDX-License-Identifier: MIT
"""Connects to the lead at a URI, and finds the address at which followers reach it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from urllib.parse import urlsplit

import msgspec

from burst.config import LeadSettings
from burst.errors import ConfigError, LeadError
from burst.lead import Lead
from burst.model.lead import LeadIdentity

GROUP = "burst.leads"
_FLUX = "flux"


def connect(
    uri: str, attribute: str, found: Iterable[EntryPoint] | None = None
) -> Lead:
    """Connect to the lead at a URI; empty for FLUX_URI, or what Flux finds by itself.

    The entry point of group `burst.leads` that has the name of the URI's scheme
    connects; `flux` connects to URIs of all other schemes, as Flux resolves many.
    `found` is by default what is installed. Raises LeadError saying what was tried
    and what to do.
    """
    uri = uri or os.environ.get("FLUX_URI", "")
    leads = _by_scheme(found)
    point = leads.get(urlsplit(uri).scheme) or leads.get(_FLUX)
    if point is None:
        raise LeadError(
            f"no lead for {uri or 'Flux'} is installed (entry points {GROUP})",
            "install flux-burst-orchestrator again",
        )
    lead: Lead = point.load()(uri, attribute=attribute)
    return lead


def is_flux(uri: str) -> bool:
    """Return whether a Flux instance runs at this URI, and not the embedded lead."""
    scheme = urlsplit(uri).scheme
    return scheme == _FLUX or scheme not in _by_scheme(None)


def _by_scheme(found: Iterable[EntryPoint] | None) -> dict[str, EntryPoint]:
    points = entry_points(group=GROUP) if found is None else found
    return {point.name: point for point in points}


def with_public_endpoint(
    identity: LeadIdentity, settings: LeadSettings
) -> LeadIdentity:
    """Return the identity with the address and port that the settings give.

    Where they are to be read from the cluster, it is asked. Raises ConfigError where
    an address is set but no port is known, and what `read_service_address` raises.
    """
    if settings.is_learnt:
        # Its client is an extra, and takes a second to import.
        from burst.runtime.service_address import read_service_address  # noqa: PLC0415

        settings = read_service_address(settings)
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
