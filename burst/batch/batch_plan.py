# SPDX-License-Identifier: MIT
"""The plan of a lead in an allocation, from the request, R and the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst.config import Settings
from burst.errors import ConfigError
from burst.lead_setup.lead_plan import LeadPlan, PlannedSlot
from burst.model.host import is_host_name
from burst.model.ranks import format_hostlist
from burst.model.resource_set import ResourceSet, decode_resource_set, shape_of
from burst.model.shape import Shape
from burst.provider_type import on_own_host

_LOOPBACK = "127.0.0.1"


class SlotRequest(msgspec.Struct, frozen=True):
    """One rank slot: how many ranks, and the least shape of each node."""

    count: int
    shape: Shape | None = None
    """None: the shape of the first own node."""


class LeadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `burst lead batch`."""

    slots: tuple[SlotRequest, ...]
    address: str = ""
    port: int = 0
    flux: str = "flux"
    """Path of the program `flux`."""


class AllocatedNode(msgspec.Struct, frozen=True):
    """A node of the allocation."""

    name: str
    children: Mapping[str, str]
    """Its allocated resources, as the `children` of R (RFC 20)."""

    @property
    def shape(self) -> Shape:
        """The number of allocated cores and GPUs."""
        return shape_of(self.children)


def parse_slot_request(text: str) -> SlotRequest:
    """Return the ranks in `COUNT[:CORES[:GPUS]]`. Raises ConfigError."""
    numbers = text.split(":")
    # int() would take blanks, signs and underscores too.
    if len(numbers) > 3 or not all(re.fullmatch("[0-9]{1,6}", n) for n in numbers):
        raise ConfigError(
            f"--slots {text}: not a number of ranks",
            "write COUNT[:CORES[:GPUS]], such as 8 or 8:4:1",
        )
    count, *shape = map(int, numbers)
    if not count:
        raise ConfigError(
            f"--slots {text}: no burst could ever join",
            "ask for as many ranks as one burst may have nodes",
        )
    return SlotRequest(count, Shape(*shape) if shape else None)


def read_allocation(text: str) -> ResourceSet:
    """Return R of a job, as `flux job info` prints it. Raises ConfigError."""
    try:
        return decode_resource_set(text)
    except ValueError as error:
        raise _unreadable(error) from error


def allocated_nodes(allocation: ResourceSet) -> tuple[AllocatedNode, ...]:
    """Return the nodes of a job's R, in the order of its tasks. Raises ConfigError."""
    try:
        return tuple(AllocatedNode(n.host, n.children) for n in allocation.nodes)
    except ValueError as error:
        raise _unreadable(error) from error


def _unreadable(error: ValueError) -> ConfigError:
    return ConfigError(
        f"R of this job cannot be read: {error!r}", "flux job info JOBID R shows it"
    )


def own_hosts(nodes: Sequence[AllocatedNode]) -> tuple[str, ...]:
    """Return a name for each own rank: its node's, if all have one of their own."""
    names = tuple(node.name for node in nodes)
    if len(set(names)) == len(names) and all(map(is_host_name, names)):
        return names
    # Several brokers of one machine, as in a test instance.
    return tuple(f"lead-{rank}" for rank in range(len(nodes)))


def make_plan(
    request: LeadRequest, nodes: Sequence[AllocatedNode], settings: Settings, port: int
) -> LeadPlan:
    """Return the lead to make; rank 0 listens at this port."""
    shape = nodes[0].shape
    return LeadPlan(
        hosts=format_hostlist(own_hosts(nodes)),
        shape=shape,
        slots=tuple(
            PlannedSlot(
                hosts=f"burst-{number}-[0-{lent.count - 1}]", shape=lent.shape or shape
            )
            for number, lent in enumerate(request.slots)
        ),
        address=request.address or _address(nodes, settings),
        port=port,
    )


def _address(nodes: Sequence[AllocatedNode], settings: Settings) -> str:
    """Return where rank 0 is reached, by own nodes and by followers."""
    used = [table for table in settings.providers.values() if table.enabled]
    one_host = len({node.name for node in nodes}) == 1
    if one_host and all(on_own_host(table.type) for table in used):
        return _LOOPBACK
    return nodes[0].name


def batch_tables(tables: Mapping[str, Any], request: LeadRequest) -> dict[str, Any]:
    """Return the user's burst.toml as the daemon in the allocation is to read it."""
    found = {key: value for key, value in tables.items() if key not in {"lead"}}
    # Its lead and rank slots are those of the allocation, whatever the file has. All
    # that has its owner tag is deleted at its end: the tag of the file is another's.
    own = tables.get("lead", {}).items()
    others = {"uri", "slots", "owner"}
    # Followers would connect to what the file has, and rank 0 listens as the options
    # say: the lead's bootstrap hosts have those.
    options = {"address": request.address, "port": request.port}
    given = {key for key, value in options.items() if value}
    found["lead"] = {k: v for k, v in own if k not in others | given}
    found["daemon"] = {**tables.get("daemon", {}), "on_stop": "reap"}
    return found
