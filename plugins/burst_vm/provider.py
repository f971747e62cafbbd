# SPDX-License-Identifier: MIT
"""The VM provider: a burst's followers are virtual machines of a cloud, one each.

Each call asks the cloud what exists, by the tags that a VM gets in the call that makes
it. A VM is noted before it is requested, because a cloud may list it late: until it is
listed, or SETTLES_S are over, no second one is requested, and it is not taken for gone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.job_tasks import check_spec, time_limit
from burst.kits.private_dir import PrivateDirectory, default_base, is_safe_name
from burst.kits.resource_tags import distinct
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.host import is_host_name
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, OwnedBurst, Provider
from burst_vm.cloud import NewVm, VmCloud
from burst_vm.examine import examine
from burst_vm.failures import Throttled
from burst_vm.handover import Handover
from burst_vm.listener import Listener
from burst_vm.machines import TAGS, CloudVm, SeenVm, VmState, status_of, tags_of
from burst_vm.settings import PROJECT_OPTIONS, VmSettings
from burst_vm.user_data import HOME, user_data

FETCH_S = 900.0
"""How long a VM may take from its request until it fetches its certificate."""
SETTLES_S = 60.0
"""Seconds after the request of a VM by which a cloud lists it, or has made none."""
_CALLS = 8
"""Calls of the cloud at a time."""
_T = TypeVar("_T")


class VmProvider(Provider):
    """Followers on virtual machines."""

    Settings = VmSettings

    def __init__(  # noqa: PLR0913 - what tests pass in has a name
        self,
        name: str,
        settings: VmSettings,
        owner: str,
        *,
        cloud: VmCloud | None = None,
        clock: Callable[[], float] = time.time,
        settles: float = SETTLES_S,
    ) -> None:
        self._name, self._owner, self._settings = name, owner, settings
        base = Path(settings.dir) if settings.dir else default_base()
        self._home = PrivateDirectory(base, owner, name)
        self._handover = Handover(self._home)
        self._listener = Listener(settings, self._handover, clock)
        self._cloud = cloud or VmCloud(settings)
        self._clock, self._settles = clock, settles
        self._prices: Mapping[str, float] | None = None

    @classmethod
    def offer_names(cls, settings: VmSettings) -> Collection[str]:
        """Return the names of the offers' tables."""
        return settings.offers

    def place(self) -> str:
        """Return the cloud, its region and its project, as far as settings name them.

        For EC2 only the credentials tell the account, and these may change.
        """
        settings = self._settings
        options = (settings.driver_options.get(key) for key in PROJECT_OPTIONS)
        words = (settings.driver, settings.region, settings.endpoint, *options)
        return " ".join(str(word) for word in words if word)

    def offers(self) -> Sequence[Offer]:
        """Return an offer for each table."""
        tables = self._settings.offers
        if self._prices is None:
            unknown = any(table.price is None for table in tables.values())
            self._prices = self._cloud.prices() if unknown else {}
        lifetime, key = self._settings.lifetime, self._settings.munge_key
        return [
            Offer(
                name=name,
                shape=Shape(table.cores, table.gpus),
                max_nodes=table.max_nodes,
                total=table.total,
                price=self._prices.get(table.size, 0.0)
                if table.price is None
                else table.price,
                join_time=table.join_time,
                lifetime=lifetime if math.isfinite(lifetime) else 0.0,
                spot=table.spot,
                # Guests' jobs are signed by munge.
                guests=bool(key),
            )
            for name, table in tables.items()
        ]

    def provision(self, spec: BurstSpec) -> None:
        """Request the VMs that do not exist and were not requested."""
        self._check(spec)
        time_limit(spec.lease_end, self._settings.lifetime, self._clock())
        self._ask(spec, self._machines().get(spec.burst_id, ()))

    def _check(self, spec: BurstSpec) -> None:
        offer = {each.name: each for each in self.offers()}.get(spec.offer)
        if offer is None:
            raise SpecRefused(f"there is no offer {spec.offer!r}")
        check_spec(spec, offer)

    def _ask(self, spec: BurstSpec, machines: Sequence[CloudVm]) -> None:
        """Request the VMs of a burst that do not exist and never existed.

        Raises Transient while the cloud may yet list a VM that was requested.
        """
        # Raises before anything is paid if such a follower could not join.
        self._listener.files.files(Path(HOME), spec)
        self._home.open()
        self._handover.write_spec(spec)
        self._listener.open()
        seen = [self._see(spec.burst_id, host, machines) for host in spec.hosts]
        now = self._clock()
        late = [vm for vm in seen if vm.unknown and now < vm.settles]
        new = [vm for vm in seen if vm.missing and vm not in late]
        self._each(lambda vm: self._create(spec, vm.host), new)
        if late:
            raise Transient(
                "it is not known yet whether the cloud has made all VMs",
                retry_after=max(1.0, max(vm.settles for vm in late) - now),
            )

    def _create(self, spec: BurstSpec, host: str) -> None:
        settings, burst = self._settings, spec.burst_id
        token = self._handover.ask(burst, host, self._clock(), FETCH_S)
        given = {
            "address": settings.reached_at(spec.lead.endpoint),
            "port": settings.port,
            "fingerprint": self._handover.fingerprint(),
            "burst": burst,
            "host": host,
            "token": token,
            "lasts": FETCH_S,
        }
        try:
            vm = NewVm(
                name=f"{burst}-{spec.hosts.index(host)}",
                offer=settings.offers[spec.offer],
                tags=tags_of(spec, self._name, host),
                user_data=user_data(settings, spec, host, given),
            )
            machine = self._cloud.create(vm)
        except (InsufficientCapacity, Refused):
            # No VM was made: the cloud has answered so, or was not asked.
            self._handover.forget(burst, host)
            raise
        except Throttled:
            # If there is a VM, as tags may take a request of their own, it is listed by
            # now, and needs the token.
            self._handover.answered(burst, host, at=0.0)
            raise
        except Transient:
            # The cloud may have made the VM only now, and may list it later.
            self._handover.answered(burst, host, at=self._clock())
            raise
        self._handover.answered(burst, host, id=machine, at=self._clock())

    def observe(self) -> Sequence[BurstStatus]:
        """Return our bursts that have VMs in the cloud's list, or notes."""
        self._home.check()
        machines = self._machines()
        noted = self._handover.bursts()
        trouble = self._listen(wanted=bool(noted))
        live = {name for name, each in machines.items() if any(map(_exists, each))}
        return [
            self._status(BurstId(name), machines.get(BurstId(name), ()), trouble)
            for name in sorted({*noted, *live})
        ]

    def _listen(self, *, wanted: bool) -> str:
        """Listen for VMs; return why they cannot fetch files, empty if they can."""
        if not wanted:
            self._listener.close()
            return ""
        try:
            self._listener.open()
        except (Transient, InsufficientCapacity) as error:
            return str(error)
        return ""

    def _status(
        self, burst: BurstId, machines: Sequence[CloudVm], trouble: str
    ) -> BurstStatus:
        spec = self._handover.spec(burst)
        live = [each.host for each in machines if _exists(each) and _is_named(each)]
        hosts = spec.hosts if spec else tuple(dict.fromkeys(live))
        others = {*live, *self._handover.hosts(burst)} - set(hosts)
        seen = [self._see(burst, host, machines) for host in hosts]
        return status_of(burst, seen, sorted(others), self._clock(), trouble)

    def reap(self, burst_id: BurstId) -> None:
        """Delete the VMs that the cloud lists, until it lists none."""
        self._home.check()
        machines = self._machines().get(burst_id, ())
        if is_safe_name(burst_id):
            if self._delete(burst_id, machines, keep=()):
                return
            self._handover.forget(burst_id)
        self._handover.close()
        if not self._handover.bursts():
            self._listener.close()
        raise NotFound(f"the cloud lists no VM of {burst_id}")

    def resize(self, spec: BurstSpec) -> None:
        """Delete the VMs of hosts that leave, or request those of new hosts."""
        machines = self._machines().get(spec.burst_id, ())
        before = self._handover.spec(spec.burst_id)
        if not any(map(_exists, machines)) and before is None:
            raise NotFound(f"nothing of {spec.burst_id} exists")
        before = before or spec
        both = min(len(before.hosts), len(spec.hosts))
        if before.hosts[:both] != spec.hosts[:both]:
            raise SpecRefused(f"{spec.burst_id} has other hosts")
        shrinks = both < len(before.hosts)
        if shrinks:
            self._handover.write_spec(spec)
        # Also the VMs of a growth that was taken back.
        self._delete(spec.burst_id, machines, keep=spec.hosts)
        if shrinks:
            return
        self._check(spec)
        try:
            self._ask(spec, machines)
        except (InsufficientCapacity, Refused):
            self._handover.write_spec(before)
            raise

    def _delete(
        self, burst: BurstId, machines: Sequence[CloudVm], keep: Sequence[str]
    ) -> bool:
        """Delete all VMs but those of `keep`; return whether any may be left."""
        leave = [each for each in machines if _exists(each) and each.host not in keep]
        self._each(
            self._destroy, [each for each in leave if each.state is not VmState.ENDING]
        )
        left = {each.host for each in leave}
        for host in {*self._handover.hosts(burst)} - {*keep, *left}:
            vm = self._see(burst, host, machines)
            if self._clock() < vm.settles:
                left.add(host)  # the cloud may list it late
            else:
                self._handover.forget(burst, host)
        return bool(left)

    def _destroy(self, machine: CloudVm) -> None:
        try:
            self._cloud.destroy(machine)
        except NotFound:
            # It is gone, or this cloud does not know it yet, and may list it again.
            return
        if _is_named(machine):
            self._handover.answered(machine.burst, machine.host, at=0.0)

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners that have VMs in the account."""
        there = filter(_exists, self._cloud.machines())
        return distinct(TAGS.owned(each.tags) for each in there)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check credentials, cloud, image, sizes, template and the listener's port."""
        return list(examine(self._settings, self._cloud, self._home, lead))

    def _machines(self) -> Mapping[BurstId, Sequence[CloudVm]]:
        """Return the VMs of this owner and provider, by burst."""
        found: dict[BurstId, list[CloudVm]] = {}
        for each in self._cloud.machines():
            burst = TAGS.burst_of(each.tags, self._owner, self._name)
            # Tags become names of files here. A VM whose host tag somebody has changed
            # still costs money, and is deleted with its burst.
            if burst and is_safe_name(burst):
                found.setdefault(burst, []).append(each)
        return found

    def _see(self, burst: BurstId, host: str, machines: Sequence[CloudVm]) -> SeenVm:
        """Return what is known of a follower's VM; note its id if no answer told it."""
        noted = self._handover.asked(burst, host)
        known = noted.id if noted else ""
        # A VM that is gone may be from before the burst shrank.
        ours = (
            each
            for each in machines
            if each.host == host and (each.id == known or (not known and _exists(each)))
        )
        machine, fetched = next(ours, None), self._handover.fetched(burst, host)
        if noted and machine and not known:
            # By its id it is still known when it is gone.
            self._handover.answered(burst, host, id=machine.id)
        settles = noted.at + self._settles if noted and machine is None else 0.0
        return SeenVm(host, noted, machine, fetched, settles)

    def _each(self, call: Callable[[_T], None], items: Sequence[_T]) -> None:
        """Make the call for each item, several at a time; raise the first error.

        After an error, calls that have not begun are not made.
        """
        with ThreadPoolExecutor(_CALLS) as pool:
            list(pool.map(call, items))


def _exists(machine: CloudVm) -> bool:
    return machine.state is not VmState.GONE


def _is_named(machine: CloudVm) -> bool:
    """Tell whether the VM's tag is a host name, which is safe as a file's name."""
    return is_host_name(machine.host)
