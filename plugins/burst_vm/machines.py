# SPDX-License-Identifier: MIT
"""A VM as its cloud lists it: whose it is, and what its state means."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.kits.resource_tags import ResourceTags
from burst.model.burst import BurstId
from burst.model.host import dns_label
from burst.provider import BurstSpec
from burst_vm.failures import is_capacity

OWNER, PROVIDER, BURST = "burst-owner", "burst-provider", "burst-id"
HOST, LEAD, END = "burst-host", "burst-lead", "burst-lease-end"
"""Tags that a VM gets in the call that makes it."""
TAGS = ResourceTags(OWNER, PROVIDER, BURST, END)


class VmState(enum.Enum):
    """The state of a VM, as far as it matters to the burst."""

    STARTING = enum.auto()
    RUNNING = enum.auto()
    STOPPED = enum.auto()
    """It does not run, and costs something until it is deleted."""
    ENDING = enum.auto()
    GONE = enum.auto()
    """It is listed for a while after its end, and costs nothing."""


# By the cloud's own word if Libcloud's says less, else by Libcloud's. Libcloud calls a
# VM that ends or is stopped in EC2 "unknown", one that stops in Compute Engine
# "pending", and one that is being deleted in OpenStack "running".
_STATES = {
    "shutting-down": VmState.ENDING,
    "stopping": VmState.ENDING,
    "deleting": VmState.ENDING,
    "running": VmState.RUNNING,
    "normal": VmState.RUNNING,
    "terminated": VmState.GONE,
    "stopped": VmState.STOPPED,
    "suspended": VmState.STOPPED,
    "paused": VmState.STOPPED,
    "error": VmState.STOPPED,
}
_OWN_WORDS = ("shutting-down", "stopping", "deleting", "stopped")


class CloudVm(msgspec.Struct, frozen=True):
    """One VM with our tags."""

    id: str
    tags: Mapping[str, str]
    state: VmState
    word: str
    """The cloud's or Libcloud's word for the state."""
    reason: str = ""
    """The cloud's reason for the state; empty if it tells none."""
    spot: bool = False
    """Whether it is a spot VM, as far as the cloud tells."""
    node: Any = None
    """Libcloud's object of the VM."""

    @property
    def host(self) -> str:
        """The follower that the VM is for."""
        return self.tags.get(HOST, "")

    @property
    def burst(self) -> BurstId:
        """The burst that the VM belongs to."""
        return BurstId(self.tags.get(BURST, ""))

    @property
    def reclaimed(self) -> bool:
        """Whether the cloud took the VM back, as far as the cloud tells."""
        # EC2's own words; for spot VMs mostly just `Service initiated (DATE)`.
        service = self.spot and self.reason.startswith("Service initiated")
        return service or self.reason.startswith("Server.Spot")

    @property
    def lacked(self) -> bool:
        """Whether the cloud had no such VM, after it had accepted the request."""
        return is_capacity(self.reason)

    def why(self) -> str:
        """Return a few words that tell its state."""
        return f"its VM {self.id} is {self.word}" + (self.reason and f": {self.reason}")


def state_of(own: str, libclouds: str) -> VmState:
    """Return the state by the cloud's own word or Libcloud's; unknown: STARTING."""
    word = own.lower() if own.lower() in _OWN_WORDS else libclouds
    return _STATES.get(word, VmState.STARTING)


def tags_of(spec: BurstSpec, provider: str, host: str) -> dict[str, str]:
    """Return the tags of the VM of a follower."""
    return {
        OWNER: spec.owner,
        PROVIDER: provider,
        BURST: spec.burst_id,
        HOST: host,
        # People read it; Compute Engine accepts neither dots nor upper case.
        LEAD: dns_label(spec.lead.hosts[0], "lead"),
        END: str(int(spec.lease_end)),
    }
