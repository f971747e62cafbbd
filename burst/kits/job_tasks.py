# SPDX-License-Identifier: MIT
"""The files of a burst that is one job, and the status of its followers.

    DIR/broker.toml, burst.cert, start   of all followers (burst.kits.followers)
    DIR/spec.json                        the burst's spec
    DIR/task                             `sh DIR/task` is a task of the job: a follower;
                                         only if followers are tasks of a batch system
    DIR/submitted                        the job's number or name; exists once it was
                                         submitted
    DIR/log                              the output of all tasks; each line begins with
                                         the number of its task, a colon and a space
    DIR/HOST.ended                       the exit status of a follower that ended

The directory is one that the daemon's host shares with the nodes. The batch system
ends a task by a signal to its first process, or to all its processes.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from burst.errors import Refused, SpecRefused
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
"""The variables that tasks get from the daemon. TMPDIR is left out: it is valid on the
daemon's host, and a node may have one for each job."""
# `env -i`: the follower must not get the job's environment, as its own jobs inherit it.
_TASK = """\
#!/bin/sh
# The follower of this task, until it ends.
set -- {hosts}
shift "${rank}"
env -i {environment} sh {place}/start "$1" &
child=$!
# Not before: a shell that has just forked may lose a signal.
trap 'kill -TERM "$child" 2> /dev/null' TERM INT HUP
{wait_for_child}# A further signal to all would end mv.
trap '' TERM INT HUP
# Whole at once, as the daemon may read it at any moment.
echo "$status" > {place}/"$1".part
mv {place}/"$1".part {place}/"$1".ended
exit "$status"
"""
_NAMED, _SPEC = "burst", "spec.json"
_LABEL = re.compile(r"^ *(\d+): ?")
_ENDED = ".ended"
_LAST_LINES = 12
# Seconds in which a broker may be joining, without an answer from the lead.
_JOINS_S = 10.0


class JobSeen(msgspec.Struct, frozen=True):
    """The state of a burst's job, from the batch system."""

    phase: Phase
    why: str = ""
    failure: Failure = Failure.OTHER
    ran: float = 0.0
    """For how many seconds the job has been running; 0 if it does not run."""


NOT_SUBMITTED = JobSeen(Phase.PENDING, "no job was submitted for it yet")


def check_spec(spec: BurstSpec, offer: Offer) -> None:
    """Raise SpecRefused unless the offer has what the spec asks for."""
    if not is_safe_name(spec.burst_id):
        raise SpecRefused(f"{spec.burst_id!r} cannot be a directory name")
    if spec.offer != offer.name or len(spec.hosts) > offer.max_nodes:
        raise SpecRefused(
            f"there is no offer {spec.offer!r} with {len(spec.hosts)} nodes"
        )
    if not offer.shape.holds(spec.shape):
        raise SpecRefused(
            f"its nodes have {spec.shape}, and those of the offer {offer.shape}",
            "set cores and gpus of the provider, or declare fewer in the lead's R",
        )


def time_limit(lease_end: float, longest: float, now: float) -> float:
    """Return how long a job may run, in seconds: `longest`, or the rest of its lease.

    The shorter one applies. `lease_end` is 0 for no end. Raises SpecRefused if the
    lease has ended.
    """
    left = lease_end - now if lease_end else math.inf
    if left <= 0:
        raise SpecRefused("its lease has ended")
    return min(left, longest)


def job_prefix(owner: str, provider: str) -> str:
    """Return how the names of a provider's jobs begin; a burst's id follows."""
    # Neither has a dot, so no two pairs share a prefix.
    return f"{_NAMED}.{owner}.{provider}."


def owned_bursts(names: Iterable[str], base: Path) -> Sequence[OwnedBurst]:
    """Return the bursts of all owners that have a job with such a name, or files.

    `base` contains the directories of all owners; a burst's files there tell its lease.
    Files are left if a lead is lost and the job has ended, and they have the lead's
    certificate. Of a `base` that is refused, only the jobs are returned; raises Refused
    if there are none.
    """
    words = (tuple(name.split(".")) for name in names)
    found = {each[1:] for each in words if len(each) == 4 and each[0] == _NAMED}
    try:
        found |= _with_files(base)
    except Refused:
        if not found:
            raise
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


def _with_files(base: Path) -> set[tuple[str, str, str]]:
    with disk_errors(base):
        return {
            (owner, provider, burst)
            for owner, provider in PrivateDirectory.owners(base)
            for burst in PrivateDirectory(base, owner, provider).names()
        }


def _noted_lease(base: Path, owner: str, provider: str, burst: str) -> float:
    """Return when the lease of a burst ends, from its spec file; 0 if it is not known.

    It is not read from a directory of another user, as a site's program lists bursts of
    all users. Raises Transient.
    """
    home = PrivateDirectory(base, owner, provider)
    try:
        home.check()
    except Refused:
        return 0.0
    with disk_errors(home.path):
        spec = load_json(home.path / burst / _SPEC, BurstSpec)
    return spec.lease_end if spec else 0.0


class JobTasks:
    """The files of one burst. Its methods raise Transient for disk errors."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.task = place / "task"
        self.log = place / "log"
        self._submitted = place / "submitted"

    def write(self, spec: BurstSpec, flux: str, rank: str) -> None:
        """Write the files of the followers; equal arguments write equal files.

        `rank` is the variable with the number of a task in the job, from 0; empty if
        followers are not tasks. Also raises what `followers.Files.write` raises.
        """
        files = followers.Files(flux=flux, signals_may_reach_all=True)
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
        """Write the spec, as the last file before the job is submitted."""
        with disk_errors(self.place, writing=True):
            content = msgspec.json.encode(spec)
            write_atomically(self.place / _SPEC, content, private=True)

    def exist(self) -> bool:
        """Return whether the files were written; without them no job was submitted."""
        with disk_errors(self.place):
            return (self.place / _SPEC).exists()

    def note_submission(self, number: str = "") -> None:
        """Note that the job was submitted, with its number if known."""
        with disk_errors(self.place, writing=True):
            write_atomically(self._submitted, number.encode(), private=True)

    def submission(self) -> str | None:
        """Return the noted number of the job; None if nothing here shows a job.

        It is empty if the number is not known, or if only the log of tasks shows a job.
        """
        with disk_errors(self.place):
            if self._submitted.exists():
                return self._submitted.read_text()
            return "" if self.task.exists() and self.log.exists() else None

    def remove(self) -> None:
        """Remove all files of the burst."""
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
    """Yield followers that all have the state of their job."""
    lost = seen.why if started and seen.phase is Phase.FAILED else ""
    taken = seen.failure is Failure.RECLAIMED
    for host in hosts:
        yield FollowerStatus(host, seen.phase, seen.why, reclaimed=taken, lost=lost)


def _running(
    hosts: Sequence[str], ended: Mapping[str, str], log: str, *, late: bool
) -> Iterator[FollowerStatus]:
    """Yield the followers of a running job, some of which may have ended."""
    for number, host in enumerate(hosts):
        said = _of_task(log, number)
        if host in ended:
            what = f"has ended with status {ended[host]}"
            why = _join(what, explain_log(said) or _last(said))
            yield FollowerStatus(host, Phase.FAILED, why, lost=what)
        else:
            yield FollowerStatus(host, Phase.RUNNING, explain_log(said) if late else "")


def _words(log: str, hosts: Sequence[str]) -> str:
    """Return why followers ended, from the log of their tasks."""
    for number, host in enumerate(hosts):
        if explained := explain_log(_of_task(log, number)):
            return f"{host}: {explained}"
    return _last(log)


def _of_task(log: str, number: int) -> str:
    """Return the lines of one task, without its number."""
    found = ((_LABEL.match(line), line) for line in log.splitlines())
    return "\n".join(line[m.end() :] for m, line in found if m and int(m[1]) == number)


def _last(text: str) -> str:
    plain = "\n".join(_LABEL.sub("", line, count=1) for line in text.splitlines())
    return "\n".join(main_lines(plain)[-_LAST_LINES:]).strip()


def _join(*texts: str) -> str:
    return ": ".join(filter(None, texts))
