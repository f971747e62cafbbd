# SPDX-License-Identifier: MIT
"""A VM as its cloud lists it: whose it is, and what its state means; and the status of
a burst by its VMs, with reasons in words.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst.kits.resource_tags import ResourceTags
from burst.model.burst import BurstId
from burst.model.host import dns_label
from burst.provider import BurstSpec, BurstStatus, Failure, FollowerStatus, Phase
from burst_vm.failures import is_capacity
from burst_vm.handover import AskedVm

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


_ORDER = (Phase.FAILED, Phase.ENDING, Phase.PENDING)
"""The burst's phase is the first of these that some follower has."""


class SeenVm(msgspec.Struct, frozen=True):
    """What is known of a follower's VM."""

    host: str
    noted: AskedVm | None
    machine: CloudVm | None
    fetched: bool
    """Whether it has fetched its files."""
    settles: float
    """Until when the cloud may yet list the VM, in seconds since the epoch; 0 if it is
    listed, or was not requested."""

    @property
    def unknown(self) -> bool:
        """Whether it was requested, and neither an answer nor the list shows it."""
        known = self.machine or self.fetched
        return self.noted is not None and not known and not self.noted.id

    @property
    def missing(self) -> bool:
        """Whether no VM was made, as far as is known."""
        return self.machine is None and (self.noted is None or self.unknown)


def status_of(
    burst: BurstId,
    seen: Sequence[SeenVm],
    leaving: Sequence[str],
    now: float,
    trouble: str,
) -> BurstStatus:
    """Return the status of a burst; `leaving` are hosts that it no longer has.

    `now` is in seconds since the epoch. `trouble` says why no VM can fetch its files;
    empty if they can.
    """
    found = [_follower(vm, now, trouble) for vm in seen]
    phases = {each.phase for each in found} or {Phase.PENDING}
    phase = next((each for each in _ORDER if each in phases), Phase.RUNNING)
    worst = next((each for each in found if each.phase is phase and each.why), None)
    gone = [FollowerStatus(host, Phase.ENDING, "its VM is deleted") for host in leaving]
    failure = Failure.OTHER
    if any(each.reclaimed for each in found):
        failure = Failure.RECLAIMED
    elif any(vm.machine and vm.machine.lacked for vm in seen):
        failure = Failure.CAPACITY
    return BurstStatus(
        burst_id=burst,
        phase=phase,
        followers=(*found, *gone),
        why=f"{worst.host}: {worst.why}" if worst else "",
        failure=failure,
    )


def _follower(vm: SeenVm, now: float, trouble: str) -> FollowerStatus:
    machine = vm.machine
    if machine is None:
        return _unlisted(vm, now)
    why = machine.why()
    if machine.state is VmState.RUNNING:
        return _running(vm, machine, now, trouble)
    if machine.state is VmState.STARTING:
        return FollowerStatus(vm.host, Phase.PENDING, why)
    if machine.state is VmState.ENDING:
        return FollowerStatus(vm.host, Phase.ENDING, why, reclaimed=machine.reclaimed)
    return FollowerStatus(
        vm.host, Phase.FAILED, why, reclaimed=machine.reclaimed, lost=why
    )


def _unlisted(vm: SeenVm, now: float) -> FollowerStatus:
    if vm.noted is None:
        return FollowerStatus(vm.host, Phase.PENDING, "no VM was asked for yet")
    if vm.unknown or now < vm.settles:
        why = "its VM was asked for, and is not listed yet"
        return FollowerStatus(vm.host, Phase.PENDING, why)
    why = " ".join(("its VM", *filter(None, [vm.noted.id]), "is not listed any more"))
    return FollowerStatus(vm.host, Phase.FAILED, why, lost=why)


def _running(vm: SeenVm, machine: CloudVm, now: float, trouble: str) -> FollowerStatus:
    """Return a follower whose VM runs; without a note it is taken as started."""
    if vm.fetched or vm.noted is None:
        return FollowerStatus(vm.host, Phase.RUNNING)
    if now <= vm.noted.until:
        why = f"its VM {machine.id} runs, and has not fetched its files yet"
        why += trouble and f": {trouble}"
        return FollowerStatus(vm.host, Phase.PENDING, why, has_node=True)
    why = (
        f"its VM {machine.id} runs, and did not fetch its files in time: its console"
        " shows whether cloud-init ran, and whether it reaches the daemon's port"
    )
    return FollowerStatus(vm.host, Phase.FAILED, why)
