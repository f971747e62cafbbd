# SPDX-License-Identifier: MIT
"""Followers of a burst that is one job: files, and the status of tasks.

    DIR/broker.toml, burst.cert, start   of all followers (burst.kits.followers)
    DIR/spec.json                        the burst's spec
    DIR/task                             `sh DIR/task` is a task of the job: a follower;
                                         where it is one of a batch system
    DIR/submitted                        exists once the job does; its number or name
    DIR/log                              what all tasks write, each line with the number
                                         of its task, a colon and a space in front
    DIR/HOST.ended                       the exit status of a follower that ended

The directory is one that the daemon's host shares with the nodes. The batch system
ends a task by signals to all its processes.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from burst.errors import SpecRefused
from burst.kits import followers
from burst.kits.atomic_file import write_atomically
from burst.kits.join_errors import explain_log, main_lines, read_log
from burst.kits.private_dir import (
    PrivateDirectory,
    disk_errors,
    is_safe_name,
    load_json,
)
from burst.provider import (
    BurstId,
    BurstSpec,
    BurstStatus,
    Failure,
    FollowerStatus,
    Offer,
    OwnedBurst,
    Phase,
)

GIVEN = tuple(name for name in followers.INHERITED if name != "TMPDIR")
"""The variables of the daemon that tasks get. TMPDIR is that of its host there, and may
be one of the job alone on a node."""
# `env -i`: nothing of the job's environment is for the follower, whose jobs inherit it.
_TASK = """\
#!/bin/sh
# The follower of this task, until it ends.
set -- {hosts}
shift "${rank}"
env -i {environment} sh {place}/start "$1" &
child=$!
# Not before: who dies of it until now has started nothing that does not get it, too.
trap : TERM INT HUP
# Whole at once, as the daemon may read it at any moment.
{wait_for_child}echo "$status" > {place}/"$1".part
mv {place}/"$1".part {place}/"$1".ended
exit "$status"
"""
_NAMED, _SPEC = "burst", "spec.json"
_LABEL = re.compile(r"^ *(\d+): ?")
_ENDED = ".ended"
_LAST_LINES = 12
# Until then a broker may be joining, and has no answer from the lead.
_JOINS_S = 10.0


class JobSeen(msgspec.Struct, frozen=True):
    """What the batch system says of a burst's job."""

    phase: Phase
    why: str = ""
    failure: Failure = Failure.OTHER
    ran: float = 0.0
    """For how many seconds it has been running, if it is."""


NOT_SUBMITTED = JobSeen(Phase.PENDING, "no job was submitted for it yet")


def check_spec(spec: BurstSpec, offer: Offer) -> None:
    """Raise SpecRefused unless the offer has what is asked for."""
    if not is_safe_name(spec.burst_id):
        raise SpecRefused(f"{spec.burst_id!r} cannot be a directory name")
    if spec.offer != offer.name or len(spec.hosts) > offer.max_nodes:
        raise SpecRefused(f"no offer {spec.offer!r} of {len(spec.hosts)} nodes")
    if not offer.shape.holds(spec.shape):
        raise SpecRefused(
            f"its nodes have {spec.shape}, and those of the offer {offer.shape}",
            "set cores and gpus of the provider, or fewer in the lead's R",
        )


def time_limit(lease_end: float, longest: float, now: float) -> float:
    """Return how long a job may run, in seconds: `longest`, or what its lease has left.

    `lease_end` is 0 if there is none. Raises SpecRefused if the lease has ended.
    """
    left = lease_end - now if lease_end else math.inf
    if left <= 0:
        raise SpecRefused("its lease has ended")
    return min(left, longest)


def job_prefix(owner: str, provider: str) -> str:
    """Return how the names of a provider's jobs begin; a burst's id ends them."""
    # Neither has a dot, so no two pairs share a prefix.
    return f"{_NAMED}.{owner}.{provider}."


def owned_bursts(names: Iterable[str], base: Path) -> Sequence[OwnedBurst]:
    """Return the bursts of jobs that are named so, and of files, of all owners.

    `base` has the directories of all; what is there of a burst tells of its lease.
    Files stay when a lead is lost and its job has ended, and have its certificate.
    """
    words = (tuple(name.split(".")) for name in names)
    found = {each[1:] for each in words if len(each) == 4 and each[0] == _NAMED}
    with disk_errors(base):
        for owner, provider in PrivateDirectory.owners(base):
            home = PrivateDirectory(base, owner, provider)
            found |= {(owner, provider, burst) for burst in home.names()}
    return [
        OwnedBurst(
            owner=owner,
            provider=provider,
            burst_id=BurstId(burst),
            lease_end=_noted_lease(base, owner, provider, burst),
        )
        for owner, provider, burst in sorted(found)
        if all(map(is_safe_name, (owner, provider, burst)))
    ]


def _noted_lease(base: Path, owner: str, provider: str, burst: str) -> float:
    """Return when the lease of a burst ends, by its spec there; 0 if that is not known.

    Raises Refused and Transient.
    """
    home = PrivateDirectory(base, owner, provider)
    home.check()
    with disk_errors(home.path):
        spec = load_json(home.path / burst / _SPEC, BurstSpec)
    return spec.lease_end if spec else 0.0


class JobTasks:
    """The files of one burst. Its methods raise Transient for errors of disks."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.task = place / "task"
        self.log = place / "log"
        self._submitted = place / "submitted"

    def write(self, spec: BurstSpec, flux: str, rank: str) -> None:
        """Write what its followers need; equal arguments write equal files.

        `rank` is the variable that has the number of a task in the job, from 0; empty
        where followers are no tasks. Also raises what `followers.Files.write` does.
        """
        files = followers.Files(flux=flux, signals_reach_all=bool(rank))
        files.write(self.place, spec)
        if rank:
            self._write_task(spec, rank)
        self.note_spec(spec)

    def _write_task(self, spec: BurstSpec, rank: str) -> None:
        given = [f"{name}={os.environ[name]}" for name in GIVEN if name in os.environ]
        task = _TASK.format(
            wait_for_child=followers.WAIT_FOR_CHILD,
            hosts=shlex.join(spec.hosts),
            rank=rank,
            environment=shlex.join(given),
            place=shlex.quote(str(self.place)),
        )
        with disk_errors(self.place, writing=True):
            write_atomically(self.task, task.encode(), private=True)

    def note_spec(self, spec: BurstSpec) -> None:
        """Write down the spec, as the last file before the job is submitted."""
        with disk_errors(self.place, writing=True):
            content = msgspec.json.encode(spec)
            write_atomically(self.place / _SPEC, content, private=True)

    def exist(self) -> bool:
        """Return whether they were written: without them no job was submitted."""
        with disk_errors(self.place):
            return (self.place / _SPEC).exists()

    def note_submission(self, number: str = "") -> None:
        """Write down that its job was submitted."""
        with disk_errors(self.place, writing=True):
            write_atomically(self._submitted, number.encode(), private=True)

    def submission(self) -> str | None:
        """Return what was noted, empty if tasks left a trace without that.

        None if there was no job, as far as can be seen here.
        """
        with disk_errors(self.place):
            if self._submitted.exists():
                return self._submitted.read_text()
            return "" if self.task.exists() and self.log.exists() else None

    def remove(self) -> None:
        """Remove all of it."""
        followers.remove(self.place)

    def spec(self) -> BurstSpec | None:
        """Return the spec; None if it is missing or damaged."""
        with disk_errors(self.place):
            return load_json(self.place / _SPEC, BurstSpec)

    def status(self, burst_id: BurstId, seen: JobSeen) -> BurstStatus:
        """Return the status of the burst, whose followers are tasks of a job."""
        spec = self.spec()
        hosts = spec.hosts if spec else ()
        runs = seen.phase is Phase.RUNNING
        late = seen.ran > _JOINS_S
        with disk_errors(self.place):
            ended = self._ended() if runs else {}
            log = read_log(self.log) if late or ended or not runs else ""
        if not runs:
            words = _words(log, hosts) if seen.phase is Phase.FAILED else ""
            return BurstStatus(
                burst_id=burst_id,
                phase=seen.phase,
                followers=tuple(_alike(seen, hosts, started=bool(log))),
                why=_join(seen.why, words),
                failure=seen.failure,
            )
        found = tuple(_running(hosts, ended, log, late=late))
        failed = [follower for follower in found if follower.phase is Phase.FAILED]
        worst = next((each for each in failed or found if each.why), None)
        return BurstStatus(
            burst_id=burst_id,
            phase=Phase.FAILED if failed else Phase.RUNNING,
            followers=found,
            why=f"{worst.host} {worst.why}" if worst else "",
        )

    def _ended(self) -> Mapping[str, str]:
        """Return the exit status of each follower that has ended, by host."""
        found = self.place.glob(f"*{_ENDED}")
        return {p.name.removesuffix(_ENDED): p.read_text().strip() for p in found}


def _alike(
    seen: JobSeen, hosts: Sequence[str], *, started: bool
) -> Iterator[FollowerStatus]:
    """Yield followers that are all as their job is."""
    lost = seen.why if started and seen.phase is Phase.FAILED else ""
    taken = seen.failure is Failure.RECLAIMED
    for host in hosts:
        yield FollowerStatus(host, seen.phase, seen.why, reclaimed=taken, lost=lost)


def _running(
    hosts: Sequence[str], ended: Mapping[str, str], log: str, *, late: bool
) -> Iterator[FollowerStatus]:
    """Yield followers of a job that runs, some of which have ended."""
    for number, host in enumerate(hosts):
        said = _of_task(log, number)
        if host in ended:
            what = f"has ended with status {ended[host]}"
            why = _join(what, explain_log(said) or _last(said))
            yield FollowerStatus(host, Phase.FAILED, why, lost=what)
        else:
            yield FollowerStatus(host, Phase.RUNNING, explain_log(said) if late else "")


def _words(log: str, hosts: Sequence[str]) -> str:
    """Return what a log says of why followers ended."""
    for number, host in enumerate(hosts):
        if explained := explain_log(_of_task(log, number)):
            return f"{host}: {explained}"
    return _last(log)


def _of_task(log: str, number: int) -> str:
    """Return the lines of one task."""
    found = ((_LABEL.match(line), line) for line in log.splitlines())
    return "\n".join(line[m.end() :] for m, line in found if m and int(m[1]) == number)


def _last(text: str) -> str:
    plain = "\n".join(_LABEL.sub("", line, count=1) for line in text.splitlines())
    return "\n".join(main_lines(plain)[-_LAST_LINES:]).strip()


def _join(*texts: str) -> str:
    return ": ".join(filter(None, texts))
