# SPDX-License-Identifier: MIT
"""A provider for tests: in memory, deterministic, without a clock."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from burst.errors import InsufficientCapacity, NotFound, Refused, SpecRefused, Transient
from burst.model.burst import BurstId
from burst.provider import (
    BurstMode,
    BurstSpec,
    BurstStatus,
    Failure,
    FollowerStatus,
    InstanceStatus,
    Offer,
    OwnedBurst,
    Phase,
    Provider,
)
from burst.testing.cloud import FakeBurst, FakeCloud, FakeSettings, Key, ProviderCall


class FakeProvider(Provider):
    """Works as a provider must, unless an attribute makes it fail.

    The attributes can be set at any time. A delay is a number of calls of `observe`;
    while a burst ends, calls of `reap` count too. The errors `next_…_error` are raised
    once, before anything is done.
    """

    Settings = FakeSettings

    next_offers_error: Exception | None = None
    next_provision_error: Exception | None = None
    every_provision_error: Exception | None = None
    """Raised by each provision until it is None."""
    next_resize_error: Exception | None = None
    next_observe_error: Exception | None = None
    next_list_all_error: Exception | None = None
    next_reap_error: Exception | None = None
    next_answer_lost = False
    """The next provision, resize or reap does its work, then raises Transient."""
    build_only: int | None = None
    """The next provision or resize makes this many followers, then raises Transient."""
    hang: threading.Event | None = None
    """Calls do not return before this is set."""
    listed_after = 0
    """Calls of `observe` that do not list a new burst yet."""
    starts_after = 0
    """Calls of `observe` that list a burst before its followers run."""
    starts_only: int | None = None
    """How many followers of a burst ever run: 0 for none, None for all."""
    has_nodes = False
    """Whether followers that do not run yet have their nodes."""
    ends_after = 0
    """Calls between the first reap of a burst and its end; calls of `observe` between a
    shrink and the end of the followers that leave."""
    ends_with: int | None = 0
    """Exit status of the programs of isolated bursts; None where they do not end."""
    writes = "done\n"
    """What these programs write."""
    runs_for = 0
    """Calls of `observe` that show a program running before it ends."""
    listed_still = 0
    """Calls of `observe` that still list a burst that is gone."""

    def __init__(
        self,
        name: str = "fake",
        settings: FakeSettings | None = None,
        owner: str = "owner",
        cloud: FakeCloud | None = None,
    ) -> None:
        self.name = name
        self.settings = settings or FakeSettings()
        self.owner = owner
        self.cloud = cloud or FakeCloud()
        self.calls: list[ProviderCall] = []

    def fail(
        self, burst_id: BurstId, why: str, failure: Failure = Failure.OTHER
    ) -> None:
        """Let all followers of a burst fail. The burst remains until it is reaped."""
        burst = self._mine()[burst_id]
        burst.failed = dict.fromkeys(burst.spec.hosts, why)
        burst.failure = failure

    def reclaim(
        self, burst_id: BurstId, hosts: Sequence[str] = (), *, ends: bool = False
    ) -> None:
        """Take back the nodes of these followers, by default of all, as a spot market.

        With `ends` the provider reports the burst as FAILED; else it waits for other
        nodes.
        """
        burst = self._mine()[burst_id]
        taken = set(hosts or burst.spec.hosts)
        burst.made = [host for host in burst.made if host not in taken]
        burst.reclaimed |= taken
        if ends:
            burst.failed |= dict.fromkeys(taken, "its node was taken back")
            burst.failure = Failure.RECLAIMED

    def evict(self, burst_id: BurstId, host: str, why: str) -> None:
        """End a follower cleanly, as when its host is maintained; see `restore`."""
        burst = self._mine()[burst_id]
        burst.made = [each for each in burst.made if each != host]
        burst.evicted[host] = why

    def restore(self, burst_id: BurstId) -> None:
        """Start again, on other nodes, the followers that were evicted or reclaimed."""
        burst = self._mine()[burst_id]
        burst.made += sorted(burst.reclaimed | burst.evicted.keys())
        burst.reclaimed, burst.evicted = set(), {}

    def end(self, burst_id: BurstId, host: str) -> None:
        """End a follower cleanly; no other is started in its place."""
        burst = self._mine()[burst_id]
        burst.made = [each for each in burst.made if each != host]
        burst.failed[host] = "its broker has ended"

    def lose(self, burst_id: BurstId, hosts: Sequence[str] = ()) -> None:
        """Remove these followers without a reap; by default all."""
        burst = self._mine()[burst_id]
        burst.made = [h for h in burst.made if hosts and h not in hosts]
        if not burst.made:
            self.cloud.remove(self._key(burst_id))

    def running(self) -> Mapping[str, BurstId]:
        """Return our hosts that `observe` would call RUNNING, and the burst of each."""
        return {
            status.host: burst_id
            for burst_id, burst in self._mine().items()
            for status in self._followers(burst)
            if status.phase is Phase.RUNNING
        }

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        self._enter(ProviderCall("offers"))
        return [
            Offer(
                name="nodes",
                shape=self.settings.shape,
                max_nodes=self.settings.max_nodes,
                total=self.settings.total,
                price=self.settings.price,
                join_time=self.settings.join_time,
                lifetime=self.settings.lifetime,
                modes=self.settings.modes,
                own_images=self.settings.own_images,
                spot=self.settings.spot,
                guests=self.settings.guests,
            )
        ]

    @classmethod
    def modes(cls, settings: FakeSettings) -> tuple[BurstMode, ...]:
        """Return the modes of the offer."""
        return settings.modes

    @classmethod
    def own_images(cls, settings: FakeSettings) -> bool:
        """Return whether the offer has `own_images`."""
        return settings.own_images

    def place(self) -> str:
        """Return the name of the cloud."""
        return self.cloud.name

    def provision(self, spec: BurstSpec) -> None:
        """Make the followers of the burst that do not exist."""
        self._enter(ProviderCall("provision", spec.burst_id))
        burst = self._admit(spec)
        missing = [host for host in spec.hosts if host not in burst.made]
        some, self.build_only = missing[: self.build_only], None
        burst.made += some
        burst.reclaimed.difference_update(some)
        burst.evicted = {h: w for h, w in burst.evicted.items() if h not in some}
        self.cloud.files[f"{spec.burst_id}/broker.toml"] = spec.lead.endpoint
        if some != missing:
            raise Transient("connection reset", "call again")
        if missing and spec.program:
            self.cloud.begun.append(spec.burst_id)
        self._leave()

    def resize(self, spec: BurstSpec) -> None:
        """Make followers that a growth lacks, or begin to end those of a shrink."""
        self._enter(ProviderCall("resize", spec.burst_id))
        burst = self._admit_resize(spec)
        known, burst.spec = burst.spec.hosts, spec
        burst.missing.update(spec.hosts[len(known) :])
        burst.missing.intersection_update(spec.hosts)
        missing = [host for host in spec.hosts if host in burst.missing]
        some, self.build_only = missing[: self.build_only], None
        burst.missing.difference_update(some)
        burst.made += some
        burst.grown_at |= dict.fromkeys(some, burst.observed)
        for host in known[len(spec.hosts) :]:
            burst.leaving[host] = self.ends_after
            burst.failed.pop(host, None)
        if not burst.failed:
            burst.failure = Failure.OTHER
        burst.let_go()
        if some != missing:
            raise Transient("connection reset", "call again")
        self._leave()

    def observe(self) -> Sequence[BurstStatus]:
        """List our bursts, and let one unit of time pass for them."""
        self._enter(ProviderCall("observe"))
        listed = []
        for burst_id, burst in self._mine().items():
            burst.observed += 1
            self._pass(burst_id, burst)
            burst.let_go(0 if self.cloud.stalled else 1)
            if burst.ends_in != 0 and burst.observed > self.listed_after:
                listed.append(self._status(burst))
        return [*listed, *self._list_ghosts()]

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the cloud."""
        self._enter(ProviderCall("list_all"))
        return [
            OwnedBurst(
                owner=owner,
                provider=name,
                burst_id=burst_id,
                lease_end=burst.spec.lease_end,
            )
            for (owner, name, burst_id), burst in self.cloud.bursts.items()
        ]

    def reap(self, burst_id: BurstId) -> None:
        """Begin to end a burst, or let one unit of time pass for its end."""
        self._enter(ProviderCall("reap", burst_id))
        burst = self._mine().get(burst_id)
        if burst is None:
            raise NotFound(f"nothing of {burst_id} is left")
        if burst.ends_in is None:
            burst.ends_in = self.ends_after + 1
        self._pass(burst_id, burst)
        self._leave()

    def _enter(self, call: ProviderCall) -> None:
        """Record the call, and raise the error that an attribute asks for."""
        self.calls.append(call)
        if self.hang:
            self.hang.wait()
        if not self.cloud.reachable:
            raise Transient("the fake cloud does not answer", "call again")
        if self.settings.credentials != "good":
            raise Refused(
                "the fake cloud rejects the credentials", "set good credentials"
            )
        knob = f"next_{call.method}_error"
        error: Exception | None = getattr(self, knob)
        setattr(self, knob, None)
        if call.method == "provision":
            error = error or self.every_provision_error
        if error:
            raise error

    def _leave(self) -> None:
        lost, self.next_answer_lost = self.next_answer_lost, False
        if lost:
            raise Transient("the answer was lost", "call again")

    def _key(self, burst_id: BurstId) -> Key:
        return self.owner, self.name, burst_id

    def _mine(self) -> dict[BurstId, FakeBurst]:
        mine = (self.owner, self.name)
        return {key[2]: b for key, b in self.cloud.bursts.items() if key[:2] == mine}

    def _admit(self, spec: BurstSpec) -> FakeBurst:
        """Return the burst, made if it does not exist; raise if it cannot be made."""
        known = self._mine().get(spec.burst_id)
        if known and known.ends_in is not None:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        if known and known.spec.hosts != spec.hosts:
            raise SpecRefused(f"{spec.burst_id} has other hosts", "reap it first")
        if spec.program and "isolated" not in self.settings.modes:
            raise SpecRefused("makes no isolated bursts")
        if spec.offer != "nodes" or not self.settings.shape.holds(spec.shape):
            raise SpecRefused(f"no offer {spec.offer} of {spec.shape}")
        used = sum(len(burst.spec.hosts) for burst in self.cloud.bursts.values())
        free = self.settings.capacity - (0 if known else used)
        if self.cloud.full and not known:
            free = 0
        if len(spec.hosts) > min(free, self.settings.max_nodes):
            raise InsufficientCapacity(f"{free} nodes are free")
        return self.cloud.bursts.setdefault(
            self._key(spec.burst_id), known or FakeBurst(spec)
        )

    def _admit_resize(self, spec: BurstSpec) -> FakeBurst:
        """Return the burst; raise if it cannot be resized to this spec."""
        burst = self._mine().get(spec.burst_id)
        if burst is None:
            raise NotFound(f"there is no {spec.burst_id}")
        if burst.ends_in is not None:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        before, after = burst.spec.hosts, spec.hosts
        least = min(len(before), len(after))
        if before[:least] != after[:least] or not after:
            raise SpecRefused(f"{spec.burst_id} has other hosts", "reap it first")
        if burst.leaving.keys() & set(after):
            raise Transient(f"{spec.burst_id} has not shrunk yet", "call again")
        used = sum(len(each.spec.hosts) for each in self.cloud.bursts.values())
        free = 0 if self.cloud.full else self.settings.capacity - used
        grows = len(after) - len(before)
        if grows > 0 and (grows > free or len(after) > self.settings.max_nodes):
            raise InsufficientCapacity(f"{free} nodes are free")
        return burst

    def _pass(self, burst_id: BurstId, burst: FakeBurst) -> None:
        """Let one unit of time pass for a burst that is reaped, unless all stalls."""
        if burst.ends_in is None or self.cloud.stalled:
            return
        burst.ends_in -= 1
        if burst.ends_in == 0:
            self.cloud.remove(self._key(burst_id))
            ghost = self._status(burst), self.listed_still
            self.cloud.ghosts[self._key(burst_id)] = ghost

    def _list_ghosts(self) -> list[BurstStatus]:
        """List bursts that are gone for a few more calls, unless made again."""
        listed = []
        for key, (status, times) in list(self.cloud.ghosts.items()):
            if key == self._key(status.burst_id) and times:
                self.cloud.ghosts[key] = status, times - 1
                if key not in self.cloud.bursts:
                    listed.append(status)
        return listed

    def _followers(self, burst: FakeBurst) -> tuple[FollowerStatus, ...]:
        up = burst.observed > self.listed_after + self.starts_after
        able = {
            host
            for host in (burst.spec.hosts[: self.starts_only] if up else ())
            if burst.observed
            > burst.grown_at.get(host, -self.starts_after - 1) + self.starts_after
        }
        self.cloud.end_leases()
        if self.cloud.stalled:
            able = set()
        return tuple(
            FollowerStatus(
                host, Phase.FAILED, burst.failed[host], host in burst.reclaimed
            )
            if host in burst.failed
            else FollowerStatus(host, Phase.PENDING, "was preempted", reclaimed=True)
            if host in burst.reclaimed
            else FollowerStatus(host, Phase.PENDING, *_evicted(burst, host))
            if host in burst.evicted
            else FollowerStatus(host, Phase.RUNNING)
            if host in able and host in burst.made
            else FollowerStatus(
                host, Phase.PENDING, "not up yet", has_node=self.has_nodes
            )
            for host in burst.spec.hosts
        )

    def _status(self, burst: FakeBurst) -> BurstStatus:
        followers = self._followers(burst)
        leaving = [FollowerStatus(h, Phase.ENDING, "it ends") for h in burst.leaving]
        phases = {status.phase for status in followers}
        if burst.ends_in is not None:
            phase = Phase.ENDING
        elif Phase.FAILED in phases:
            phase = Phase.FAILED
        else:
            phase = Phase.PENDING if Phase.PENDING in phases else Phase.RUNNING
        return BurstStatus(
            burst_id=burst.spec.burst_id,
            phase=phase,
            followers=(*followers, *leaving),
            why=next((s.why for s in followers if s.why), ""),
            failure=burst.failure,
            instance=self._instance(burst, phase) if burst.spec.program else None,
        )

    def _instance(self, burst: FakeBurst, phase: Phase) -> InstanceStatus:
        """Return the state of the program. Only one of kind `job` ends by itself."""
        up = phase is Phase.RUNNING
        burst.up += up
        assert burst.spec.program
        ends = burst.spec.program.kind == "job" and burst.up > self.runs_for
        status = self.ends_with if ends else None
        return InstanceStatus(
            online=up,
            access=f"shell {burst.spec.hosts[0]}" if up else "",
            exit_status=status,
            output=self.writes if status is not None else "",
        )


def _evicted(burst: FakeBurst, host: str) -> tuple[str, bool, str]:
    """Return the fields `why`, `reclaimed` and `lost` of an evicted follower."""
    return f"{burst.evicted[host]}; it is not up yet", False, burst.evicted[host]
