# SPDX-License-Identifier: MIT
"""A provider by a site's own program: begin, list, end.

What exists is what the program lists. The provider keeps the files of a burst's
followers in the directory that the nodes share, and they go last.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from burst.kits import followers
from burst.kits.atomic_file import write_atomically
from burst.kits.examine_lead import examine_lead
from burst.kits.job_tasks import check_spec, noted_lease
from burst.kits.join_errors import explain_log, main_lines, read_log
from burst.kits.node_settings import OFFER
from burst.kits.private_dir import (
    PrivateDirectory,
    disk_errors,
    is_safe_name,
    load_json,
)
from burst.kits.shared_dir import examine_shared_dir
from burst.model.finding import Finding, ok, wrong
from burst.provider import (
    BurstId,
    BurstSpec,
    BurstStatus,
    Failure,
    FollowerStatus,
    LeadIdentity,
    NotFound,
    Offer,
    OwnedBurst,
    Phase,
    Provider,
    ProviderError,
    Transient,
)
from burst_command.check import check
from burst_command.protocol import (
    BeginRequest,
    EndRequest,
    ListedBurst,
    ListRequest,
    Name,
    SiteProgram,
)
from burst_command.settings import CommandSettings

_CALL = "begin"
"""Notes the process of `begin` in the directory of its burst."""
_LOG_TAIL = 10_000
_LINES = 20
Write = Callable[[Path, BurstSpec], Path]
"""Writes what followers of the burst need into a directory; returns the script."""


class CommandProvider(Provider):
    """Followers on nodes that the site's program brings."""

    Settings = CommandSettings

    def __init__(self, name: str, settings: CommandSettings, owner: str) -> None:
        self._settings = settings
        self._owner, self._name = owner, name
        self._home = PrivateDirectory(Path(settings.dir), owner, name)
        self._program = SiteProgram(settings.program, settings.limit)
        ends = settings.lifetime if math.isfinite(settings.lifetime) else 0.0
        self._offer = settings.offer(ends, settings.total)
        self._failed: dict[str, str] = {}
        """By burst, why its last `begin` failed."""

    @classmethod
    def offer_names(cls, settings: CommandSettings) -> Collection[str]:
        """Return the name of the one offer."""
        del settings
        return (OFFER,)

    def offers(self) -> Sequence[Offer]:
        """Return the one offer, `nodes`."""
        return [self._offer]

    def place(self) -> str:
        """Return the directory, and the program that knows the nodes."""
        program = " ".join(self._settings.program)
        return f"{socket.gethostname()}:{self._settings.dir} {program}"

    def provision(self, spec: BurstSpec) -> None:
        """Write the followers' files, and have the program begin an unlisted burst."""
        check_spec(spec, self._offer)
        self.begin(spec, followers.Files(flux=self._settings.flux).write)

    def begin(self, spec: BurstSpec, write: Write) -> None:
        """As `provision`, with the files that `write` writes."""
        self._home.open()
        place = self._home.path / spec.burst_id
        start = write(place, spec)
        with disk_errors(place, writing=True):
            content = msgspec.json.encode(spec)
            write_atomically(place / "spec.json", content, private=True)
        begins = self._program.still_begins(place / _CALL)
        if spec.burst_id in self.listed():
            return
        if begins:
            raise begins
        try:
            self._begin(spec, start, place)
        except ProviderError as error:
            self._failed[spec.burst_id] = error.what
            raise
        with disk_errors(place, writing=True):
            (place / "begun").touch()

    def _begin(self, spec: BurstSpec, start: Path, place: Path) -> None:
        left = spec.lease_end - time.time() if spec.lease_end else 0.0
        self._program.begin(
            BeginRequest(
                name=str(self.name_of(spec.burst_id)),
                hosts=spec.hosts,
                cores=self._settings.cores,
                gpus=self._settings.gpus,
                start=str(start),
                log=str(place / "log"),
                # One that is over already is not one without end.
                seconds=max(1, math.ceil(left)) if spec.lease_end else 0,
                users=spec.userids,
                arguments=self._settings.arguments,
            ),
            place / _CALL,
        )

    def observe(self) -> Sequence[BurstStatus]:
        """Return what the program lists, and what has files."""
        self._home.check()
        listed = self.listed()
        names = sorted({*self._home.names(), *listed})
        return [self._status(name, listed.get(name, ())) for name in names]

    def reap(self, burst_id: BurstId) -> None:
        """Have the program end it; once it lists it no more, remove the files."""
        self._home.check()
        if not is_safe_name(burst_id):
            raise NotFound(f"{burst_id!r} is no burst of this provider")
        place = self._home.path / burst_id
        begins = self._program.still_begins(place / _CALL)
        if burst_id in self.listed():
            self.end(burst_id)
            return
        if begins:
            raise begins
        followers.remove(place)
        self._failed.pop(burst_id, None)
        self._home.close()
        raise NotFound(f"the program lists no {burst_id}, and no file of it is left")

    def end(self, burst_id: str) -> None:
        """Have the program end a burst, whether it lists it or not."""
        name = str(self.name_of(burst_id))
        settings = self._settings
        self._program.end(
            EndRequest(name=name, dir=settings.dir, arguments=settings.arguments)
        )

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return what the program lists, of all owners; their files tell of leases."""
        base = Path(self._settings.dir)
        return [
            OwnedBurst(
                owner=name.owner,
                provider=name.provider,
                burst_id=BurstId(name.burst),
                lease_end=noted_lease(base, name.owner, name.provider, name.burst),
            )
            for name in self._list()
        ]

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the directory, and that the program lists what there is."""
        found = [*examine_lead(lead), examine_shared_dir(self._home)]
        try:
            count = len(self._list())
            found.append(ok(f"`{self._settings.program[0]} list` lists {count} bursts"))
        except ProviderError as error:
            advice = error.advice or "run it with `list`, as the daemon's user"
            found.append(wrong(error.what, advice))
        return found

    def check(self, tell: Callable[[str], None]) -> Sequence[Finding]:
        """Try what the program must keep to, on a burst that no lead knows."""
        return check(self, self._settings, tell)

    def name_of(self, burst_id: str) -> Name:
        """Return what the program is told that the burst is called."""
        return Name(self._owner, self._name, burst_id)

    def listed(self) -> Mapping[str, Sequence[ListedBurst]]:
        """Return what the program lists of this owner and provider, by burst id.

        More than one of a burst is a fault of the program.
        """
        return {
            name.burst: each
            for name, each in self._list().items()
            if (name.owner, name.provider) == (self._owner, self._name)
        }

    def _list(self) -> Mapping[Name, Sequence[ListedBurst]]:
        settings = self._settings
        return self._program.list(
            ListRequest(dir=settings.dir, arguments=settings.arguments)
        )

    def _status(self, name: str, listed: Sequence[ListedBurst]) -> BurstStatus:
        if len(listed) > 1:
            raise Transient(
                f"`{' '.join(self._settings.program)} list` printed {listed[0].name}"
                " more than once"
            )
        place = self._home.path / name
        spec = load_json(place / "spec.json", BurstSpec)
        said = read_log(place / "log", _LOG_TAIL)
        begun = (place / "begun").exists()
        seen = listed[0] if listed else self._unlisted(name, begun)
        phase = Phase(seen.state)
        last = "\n".join(main_lines(said)[-_LINES:]).strip()
        words = explain_log(said) or (last if phase is Phase.FAILED else "")
        return BurstStatus(
            burst_id=BurstId(name),
            phase=phase,
            followers=_followers(spec.hosts if spec else (), seen),
            why=": ".join(text for text in (seen.why, words) if text),
            failure=Failure(seen.cause or "other"),
        )

    def _unlisted(self, name: str, begun: bool) -> ListedBurst:
        """Return what is said of a burst that has files, and is not listed."""
        if begun:
            why = "the program lists it no more"
            return ListedBurst(name=name, state="failed", why=why)
        words = ("`begin` has not succeeded yet", self._failed.get(name, ""))
        why = ": ".join(filter(None, words))
        return ListedBurst(name=name, state="pending", why=why)


def _followers(hosts: Sequence[str], seen: ListedBurst) -> tuple[FollowerStatus, ...]:
    others = {node.host: node for node in seen.nodes}
    found = []
    for host in hosts:
        node = others.get(host)
        if node is None:
            found.append(FollowerStatus(host, Phase(seen.state), seen.why))
        else:
            phase = Phase(node.state)
            found.append(
                FollowerStatus(host, phase, node.why, node.reclaimed, node.lost)
            )
    return tuple(found)
