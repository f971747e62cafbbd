# SPDX-License-Identifier: MIT
"""Connects to the lead at a URI, and adds what the settings say to its identity."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from burst.config import LeadSettings
from burst.errors import ConfigError, Denied, LeadError
from burst.kits.user_names import user_name
from burst.lead import Lead
from burst.model.lead import LeadIdentity

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "burst.leads"
_FLUX = "flux"
_FLUX_LEAD = "burst.flux:connect"
# The schemes of Flux that most commands use. To find entry points takes longer than
# such a command, so they are looked for with other schemes only.
_USUAL = ("", "local", "ssh")


def connect(uri: str, found: Iterable[EntryPoint] | None = None) -> Lead:
    """Connect to the lead at a URI; empty for FLUX_URI, or what Flux finds by itself.

    The entry point of group `burst.leads` that has the name of the URI's scheme
    connects; `flux` connects to URIs of all other schemes, as Flux resolves many. For
    the schemes of _USUAL, installed entry points are not used: ours connects.
    `found` is by default what is installed. Raises LeadError saying what was tried
    and what to do.
    """
    uri = uri or os.environ.get("FLUX_URI", "")
    lead: Lead = _connector(uri, found)(uri)
    return lead


def _connector(uri: str, found: Iterable[EntryPoint] | None) -> Callable[..., Any]:
    scheme = urlsplit(uri).scheme
    if found is None and scheme in _USUAL:
        module, _, name = _FLUX_LEAD.partition(":")
        usual: Callable[..., Any] = getattr(import_module(module), name)
        return usual
    leads = _by_scheme(found)
    point = leads.get(scheme) or leads.get(_FLUX)
    if point is None:
        raise LeadError(
            f"no lead for {uri or 'Flux'} is installed (entry points {GROUP})",
            "install flux-burst-orchestrator again",
        )
    connector: Callable[..., Any] = point.load()
    return connector


def is_flux(uri: str) -> bool:
    """Return whether the lead at this URI is Flux, not the lead of a package."""
    scheme = urlsplit(uri).scheme
    return scheme in (*_USUAL, _FLUX) or scheme not in _by_scheme(None)


def _by_scheme(found: Iterable[EntryPoint] | None) -> dict[str, EntryPoint]:
    if found is None:
        from importlib.metadata import entry_points  # noqa: PLC0415 - see _USUAL

        found = entry_points(group=GROUP)
    return {point.name: point for point in found}


def with_settings(identity: LeadIdentity, settings: LeadSettings) -> LeadIdentity:
    """Return the identity with the owner tag, address and port of the settings.

    If the settings take any of them from the cluster, the cluster is asked. Raises
    ConfigError if an address is set but no port is known, or the reverse, and what
    `read_from_service` raises.
    """
    if settings.is_learnt or settings.has_owner_of_service:
        settings = _ask_cluster(settings)
    if settings.owner:
        identity = msgspec.structs.replace(identity, owner=settings.owner)
    if not settings.address and not settings.port:
        return identity
    return _with_endpoint(identity, settings)


def owner_tag(identity: LeadIdentity, settings: LeadSettings) -> str:
    """Return the owner tag alone, without reading the address from the cluster.

    Raises what `read_from_service` raises if the settings take the tag from there.
    """
    alone = msgspec.structs.replace(settings, address="", port=0)
    return with_settings(identity, alone).owner


def _ask_cluster(settings: LeadSettings) -> LeadSettings:
    try:
        # The cluster's client is an extra, and takes a second to import.
        from burst.runtime.lead_service import read_from_service  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"settings of [lead] are read from the cluster, but {error}",
            "pip install 'flux-burst-orchestrator[kube]'",
        ) from error
    return read_from_service(settings)


def _with_endpoint(identity: LeadIdentity, settings: LeadSettings) -> LeadIdentity:
    known = urlsplit(identity.endpoint)
    address = settings.address or known.hostname or ""
    port = settings.port or known.port
    if not address or not port:
        missing = "lead.port" if address else "lead.address"
        raise ConfigError(
            f"{missing}: not known from the lead's bootstrap hosts either",
            "set both: followers connect to them",
        )
    if ":" in address and not address.startswith("["):
        address = f"[{address}]"
    return msgspec.structs.replace(identity, endpoint=f"tcp://{address}:{port}")


def require_owner(
    identity: LeadIdentity, userid: int, *, starts_something: bool = True
) -> None:
    """Raise Denied for root if the lead is another user's.

    With `[access] allow-root-owner` Flux gives root the rights of the owner. But local
    followers of a daemon that root started would be brokers of root, on which the owner
    could run anything as root (flux exec), and no job of a guest would run. A command
    that only looks, not `starts_something`, would not see the owner's bursts.
    """
    owner = identity.owner_userid
    # Without that setting Flux does not give root the rights of the owner, so the
    # connection was made as another user, such as by ssh.
    if userid or not owner or not identity.access.allow_root_owner:
        return
    name = user_name(owner)
    why = f"what is started for it would have rights that {name} does not have"
    unit = "systemctl start burst, where its unit is installed, or "
    if not starts_something:
        why, unit = f"the bursts of {name} may not be seen", ""
    raise Denied(
        f"{name} owns the instance, and this is uid {userid}: {why}",
        f"run it as {name}: {unit}runuser -u {name} -- COMMAND",
    )
