# SPDX-License-Identifier: MIT
"""A VM as its cloud lists it: whose it is, and what its state means."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.kits.resource_tags import ResourceTags
from burst.model.burst import BurstId
from burst.provider import BurstSpec
from burst_vm.failures import is_capacity

OWNER, PROVIDER, BURST = "burst-owner", "burst-provider", "burst-id"
HOST, LEAD, END = "burst-host", "burst-lead", "burst-lease-end"
"""Tags that a VM gets in the call that makes it."""
TAGS = ResourceTags(OWNER, PROVIDER, BURST, END)


class VmState(enum.Enum):
    """What is to be told apart of a VM's states."""

    STARTING = enum.auto()
    RUNNING = enum.auto()
    STOPPED = enum.auto()
    """It does not run, and costs something until it is deleted."""
    ENDING = enum.auto()
    GONE = enum.auto()
    """It is listed for a while after its end, and costs nothing."""


# By the cloud's own word where Libcloud's says less: in EC2 a VM that ends is "unknown"
# to it, in Compute Engine one that stops "pending", in OpenStack one that is deleted
# "running". Then by Libcloud's.
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
_OWN_WORDS = ("shutting-down", "stopping", "deleting")


class CloudVm(msgspec.Struct, frozen=True):
    """One VM with our tags."""

    id: str
    tags: Mapping[str, str]
    state: VmState
    word: str
    """The cloud's or Libcloud's word for the state."""
    reason: str = ""
    """What the cloud says of why it is in that state."""
    node: Any = None
    """Libcloud's object."""

    @property
    def host(self) -> str:
        """The follower that it is for."""
        return self.tags.get(HOST, "")

    @property
    def burst(self) -> BurstId:
        """The burst that it is of."""
        return BurstId(self.tags.get(BURST, ""))

    @property
    def reclaimed(self) -> bool:
        """Whether its cloud took it back, as far as it tells."""
        return self.reason.startswith("Server.Spot")

    @property
    def lacked(self) -> bool:
        """Whether its cloud had none such, after it had taken the request."""
        return is_capacity(self.reason)

    def why(self) -> str:
        """Return a few words that tell its state."""
        return f"its VM {self.id} is {self.word}" + (self.reason and f": {self.reason}")


def state_of(own: str, libclouds: str) -> VmState:
    """Return the state by the cloud's own word and Libcloud's; unknown: it starts."""
    word = own.lower() if own.lower() in _OWN_WORDS else libclouds
    return _STATES.get(word, VmState.STARTING)


def tags_of(spec: BurstSpec, provider: str, host: str) -> dict[str, str]:
    """Return the tags of the VM of a follower."""
    return {
        OWNER: spec.owner,
        PROVIDER: provider,
        BURST: spec.burst_id,
        HOST: host,
        LEAD: spec.lead.hosts[0],
        END: str(int(spec.lease_end)),
    }
