# SPDX-License-Identifier: MIT
"""The status of a burst by its VMs, with reasons in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from burst.model.burst import BurstId
from burst.provider import BurstStatus, Failure, FollowerStatus, Phase
from burst_vm.handover import AskedVm
from burst_vm.machines import CloudVm, VmState

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
