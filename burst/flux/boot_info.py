# SPDX-License-Identifier: MIT
"""How an instance was started, for diagnosing why followers do not join."""

from __future__ import annotations

from contextlib import closing

import msgspec

from burst.flux.handle import Handle
from burst.flux.rpc import RpcClient, read_attribute
from burst.model.resource_set import resource_set


class BootInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How the broker was started, besides what LeadIdentity has."""

    rank: int
    """Rank of the broker that we are connected to."""
    method: str
    """How its brokers found each other: `config` means by `[bootstrap] hosts`."""
    nodelist: tuple[str, ...]
    """Hosts of R, in the order of ranks."""
    owner: int
    """UID of the instance owner, who runs its brokers and the daemon."""
    userid: int
    """The UID by which the broker knows us; over ssh it is not that of this process."""


def read_boot_info(uri: str) -> BootInfo:
    """Return how the instance at this URI was started. Guests may call this, too.

    Raises LeadGone, LeadError.
    """
    with closing(Handle(uri)) as handle:
        client = RpcClient(handle)
        resources = client.ask("resource.status")["R"]
        return BootInfo(
            rank=int(read_attribute(client, "rank")),
            method=read_attribute(client, "broker.boot-method"),
            nodelist=resource_set(resources).hosts,
            owner=int(read_attribute(client, "security.owner")),
            userid=int(client.ask("broker.ping")["userid"]),
        )
