# SPDX-License-Identifier: MIT
"""The local provider: followers are processes of this host."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec

from burst.config import Price
from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.broker import follower_config
from burst.kits.private_dir import (
    PrivateDirectory,
    default_base,
    disk_errors,
    is_safe_name,
)
from burst.kits.systemd_user import (
    ENABLE_LINGER,
    bus_variables,
    has_bus,
    runtime_directory,
)
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Offer, OwnedBurst, Provider
from burst_local import launch
from burst_local.burst_dirs import BurstDirectory, ProviderDirectory
from burst_local.cgroups import Cgroups, Units, own_group
from burst_local.examine import (
    check_passable,
    examine_home,
    examine_program,
    examine_systemd,
)
from burst_local.members import Followers, describe, find_members, left_over
from burst_local.processes import identity_of, is_hidden, scan_all
from burst_local.stopping import GRACE_S, Stopper

_OFFER = "local"
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "local"`."""

    max_nodes: _AtLeast1 = 8
    """Maximum number of followers at a time, of all bursts together. An idle Flux
    broker takes 13 MB of memory."""
    cores: _AtLeast0 = 0
    """Cores of each follower in the offer; 0 for all that this process may use.
    Followers are not bound to cores: all share those of the host."""
    gpus: _AtLeast0 = 0
    """GPUs of each follower in the offer. Followers are not bound to GPUs."""
    price: Price = 0.0
    """Price per node and hour. Free by default, because the host exists anyway."""
    dir: str = ""
    """Directory that has the followers' directories; default: `/tmp/burst-UID`. That is
    short, as a unix socket's path must be, and does not depend on how the daemon is
    started, as XDG_RUNTIME_DIR does. Change it only while no burst lives."""
    flux: str = "flux"
    """The program, by name or path. Its version must be the lead's."""
    environment: Mapping[str, str] = {}
    """Variables for the followers' environment, which has PATH and few others."""

    retired: ClassVar[Mapping[str, str]] = {
        "grace": "remove it: followers have 10s from SIGTERM to SIGKILL"
    }


class LocalProvider(Provider):
    """Followers as processes on this host, for leads that run on it too."""

    Settings = LocalSettings

    def __init__(  # noqa: PLR0913 - what tests pass in has a name
        self,
        name: str,
        settings: LocalSettings,
        owner: str,
        *,
        command: launch.Command | None = None,
        clock: Callable[[], float] = time.monotonic,
        grace: float = GRACE_S,
    ) -> None:
        self._settings = settings
        self._tags = {"BURST_OWNER": owner, "BURST_PROVIDER": name}
        base = Path(settings.dir) if settings.dir else default_base()
        self._base = base.absolute()
        self._home = ProviderDirectory(self._base, owner, name)
        self._command = command or launch.follower_command(settings.flux)
        # A clock of the host, which a restarted daemon shares.
        self._clock, self._grace = clock, grace
        self._cgroups = Cgroups(self._home.path.name, own_group())
        self._stopper = Stopper(clock, grace, self._cgroups)
        self._runtime = runtime_directory()
        self._units = Units(self._runtime)
        self._ending: dict[str, float] = {}
        """When the reaping of each burst began, if its directory does not say so."""

    @classmethod
    def offer_names(cls, settings: LocalSettings) -> Collection[str]:
        """Return the name of the one offer."""
        del settings
        return (_OFFER,)

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `local`. Raises Refused while its disk is full."""
        self._home.check_space()
        return [self._offer()]

    def _offer(self) -> Offer:
        cores = self._settings.cores or len(os.sched_getaffinity(0))
        return Offer(
            name=_OFFER,
            shape=Shape(cores, self._settings.gpus),
            max_nodes=self._settings.max_nodes,
            total=self._settings.max_nodes,
            price=self._settings.price,
            join_time=1.0,
        )

    def place(self) -> str:
        """Return this host, and the directory that has the followers' directories."""
        return f"{socket.gethostname()}:{self._base}"

    def provision(self, spec: BurstSpec) -> None:
        """Start the followers that do not run."""
        with disk_errors(self._home.path, writing=True):
            self._provision(spec)

    def _provision(self, spec: BurstSpec) -> None:
        self._home.check()
        place = self._admit(spec)
        config, commands = self._prepare(spec, place, spec.hosts)
        guests = spec.lead.access.allow_guest_user
        self._home.open(passable=guests)
        if guests:
            # Only now: `open` may have made directories above it.
            check_passable(self._home)
        place.make(spec, config)
        followers = self._members().get(spec.burst_id, {})
        for host, argv in commands.items():
            members = followers.get(host)
            if members is None or members.leader is None:
                self._start(spec, place, host, argv)
            else:
                # The daemon that started it may have died before it wrote this.
                place.follower(host).record(members.leader.identity)

    def resize(self, spec: BurstSpec) -> None:
        """Start the followers that a burst gains, or end those that it loses."""
        with disk_errors(self._home.path, writing=True):
            self._resize(spec)

    def _resize(self, spec: BurstSpec) -> None:
        self._home.check()
        place, known = self._find(spec)
        followers = self._members().get(spec.burst_id, {})
        kept = set(spec.hosts)
        new = kept.difference(known.hosts)
        lacking = [
            host
            for host in spec.hosts
            # A follower that was started before and has ended is not started again.
            if host in new
            or (host not in followers and not place.follower(host).identity())
        ]
        if new and (leaving := sorted(followers.keys() & new)):
            raise Transient(
                f"{', '.join(leaving)}: removed by a shrink, and not ended yet"
            )
        if new:
            self._check_room(spec)
        config, commands = self._prepare(spec, place, lacking)
        place.remove_followers(new)
        place.make(spec, config)
        for host, argv in commands.items():
            self._start(spec, place, host, argv)
        others = {host: m for host, m in followers.items() if host not in kept}
        self._stopper.stop_some(place, others)
        gone = {each.host for each in place.followers()} - kept - others.keys()
        if self._units.kill(place.follower(host).path for host in gone):
            place.remove_followers(gone)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have a directory or a process."""
        with disk_errors(self._home.path):
            found = self._members()
            ids = sorted({*(place.id for place in self._home.bursts()), *found})
            places = [self._home.burst(burst_id) for burst_id in ids]
            return [
                describe(p, found.get(p.id, {}), ending=self._since(p) is not None)
                for p in places
            ]

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners that have a directory."""
        with disk_errors(self._base):
            return [
                OwnedBurst(
                    owner=owner,
                    provider=provider,
                    burst_id=place.id,
                    lease_end=spec.lease_end if (spec := place.spec()) else 0.0,
                )
                for owner, provider in PrivateDirectory.owners(self._base)
                for place in ProviderDirectory(self._base, owner, provider).bursts()
            ]

    def reap(self, burst_id: BurstId) -> None:
        """Send SIGTERM, and SIGKILL after the grace time; then remove the directory."""
        with disk_errors(self._home.path):
            self._reap(burst_id)

    def _reap(self, burst_id: BurstId) -> None:
        gone = NotFound(f"nothing of {burst_id} is left on this host")
        if not is_safe_name(burst_id):
            raise gone
        place = self._home.burst(burst_id)
        followers = self._members().get(burst_id, {})
        if not followers and not place.exists():
            raise gone
        now = self._clock()
        since = self._since(place)
        if since is None:
            since = self._ending[burst_id] = now
        if followers:
            self._stopper.stop(place, followers, overdue=now - since >= self._grace)
            # After the signals, which must be sent even if nothing can be written.
            if place.ending_since() is None:
                place.note_ending(since)
            if left := left_over(followers):
                raise Transient(left)
            return
        rundirs = [follower.path for follower in place.followers()]
        if not self._units.kill(rundirs) or not self._cgroups.remove(burst_id):
            return
        place.remove()
        self._forget(place)
        self._home.close()
        raise gone

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the program and the directory that followers need."""
        return [
            *examine_program(self._settings.flux, lead),
            *examine_home(self._home, lead),
            *examine_systemd(self._runtime, lead),
        ]

    def _admit(self, spec: BurstSpec) -> BurstDirectory:
        """Return the directory of a burst that fits the offer and the free capacity."""
        offer = self._offer()
        if not is_safe_name(spec.burst_id):
            raise SpecRefused(f"{spec.burst_id!r} cannot be a directory name")
        place = self._home.burst(spec.burst_id)
        if spec.offer != offer.name or not offer.shape.holds(spec.shape):
            raise SpecRefused(
                f"there is no offer {spec.offer!r} with {spec.shape} per node;"
                f" {offer.name!r} has {offer.shape}",
                "set cores and gpus of the provider, or declare fewer in the lead's R",
            )
        if self._since(place) is not None:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        known = place.spec()
        if known and (known.hosts, known.ranks) != (spec.hosts, spec.ranks):
            raise _other_hosts(spec.burst_id)
        self._check_room(spec)
        return place

    def _find(self, spec: BurstSpec) -> tuple[BurstDirectory, BurstSpec]:
        """Return directory and present spec of a burst that may be resized to `spec`.

        Raises NotFound, Transient and SpecRefused if it may not.
        """
        gone = NotFound(f"nothing of {spec.burst_id} is on this host")
        if not is_safe_name(spec.burst_id):
            raise gone
        place = self._home.burst(spec.burst_id)
        known = place.spec()
        if known is None:
            raise gone
        if self._since(place) is not None:
            raise Transient(f"{spec.burst_id} is being reaped", "wait for its end")
        both = min(len(known.hosts), len(spec.hosts))
        if not both or known.hosts[:both] != spec.hosts[:both]:
            raise _other_hosts(spec.burst_id)
        return place, known

    def _prepare(
        self, spec: BurstSpec, place: BurstDirectory, hosts: Sequence[str]
    ) -> tuple[str, Mapping[str, list[str]]]:
        """Return broker.toml, empty without `hosts`, and the command of each host."""
        if spec.lead.systemd and hosts and not has_bus(self._runtime):
            raise Refused(
                "the lead has [systemd] enable, and its owner has no systemd here:"
                f" there is no {self._runtime}/bus",
                ENABLE_LINGER,
            )
        try:
            config = follower_config(spec.lead, spec.hosts, spec.ranks) if hosts else ""
            return config, {host: self._argv(spec, place, host) for host in hosts}
        except (ConfigError, CertificateError) as error:
            raise Refused(error.what, error.advice) from error

    def _check_room(self, spec: BurstSpec) -> None:
        """Raise InsufficientCapacity if `max_nodes` does not allow these followers."""
        others = (p.spec() for p in self._home.bursts() if p.id != spec.burst_id)
        free = self._settings.max_nodes - sum(len(s.hosts) for s in others if s)
        if len(spec.hosts) > free:
            raise InsufficientCapacity(
                f"{len(spec.hosts)} followers are needed, and {max(free, 0)} of"
                f" {self._settings.max_nodes} are free on this host",
                "raise max_nodes if the host can run more",
            )

    def _argv(self, spec: BurstSpec, place: BurstDirectory, host: str) -> list[str]:
        rundir = place.follower(host).path
        argv = self._command(spec, host, place.config, rundir)
        return launch.limit_time(argv, spec.lease_end)

    def _start(
        self, spec: BurstSpec, place: BurstDirectory, host: str, argv: list[str]
    ) -> None:
        follower = place.follower(host)
        # The file must never name an earlier process while a later one runs. Without
        # the file, the process is found by its tags.
        follower.unrecord()
        tags = {**self._tags, "BURST_ID": spec.burst_id, "BURST_HOST": host}
        given = self._settings.environment
        if spec.lead.systemd:
            given = {**bus_variables(self._runtime), **given}
        pid = launch.start(argv, follower, tags, given)
        self._cgroups.add(spec.burst_id, host, pid)
        follower.record(identity_of(pid))

    def _members(self) -> dict[str, Followers]:
        self._home.check()
        found = scan_all()
        identities = [
            (identity, follower.path)
            for burst in self._home.bursts()
            for follower in burst.followers()
            if (identity := follower.identity())
        ]
        for identity, path in identities:
            if identity.pid not in found and is_hidden(identity.pid):
                raise Refused(
                    f"process {identity.pid}, of {path}, cannot be seen in /proc",
                    "mount /proc without hidepid, or with gid= of the daemon's group",
                )
        # Wait for the processes that have ended, so that a burst that is gone leaves no
        # zombie.
        launch.reap_zombies(
            [process for process in found.values() if process.ended],
            {identity.pid: path for identity, path in identities},
        )
        running = {pid: p for pid, p in found.items() if not p.ended}
        return find_members(running, self._tags, self._home)

    def _since(self, place: BurstDirectory) -> float | None:
        """Return since when the burst is being reaped; None if it is not."""
        written = place.ending_since()
        return self._ending.get(place.id) if written is None else written

    def _forget(self, place: BurstDirectory) -> None:
        self._stopper.forget(place)
        self._ending.pop(place.id, None)
        launch.forget(place.path)


def _other_hosts(burst_id: BurstId) -> SpecRefused:
    return SpecRefused(f"{burst_id} exists with other hosts", "reap it first")
