# SPDX-License-Identifier: MIT
"""The status of a burst, from its job and its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from burst.kits.join_errors import explain_log, main_lines
from burst.provider import BurstId, BurstStatus, Failure, FollowerStatus, Phase
from burst_slurm.job_files import JobFiles
from burst_slurm.jobs import SlurmJob
from burst_slurm.states import reason_of

# Until then a broker may be joining, and has no answer from the lead.
_JOINS_S = 10.0
_LAST_LINES = 12
# As `srun --label` writes the lines of a task.
_LABEL = re.compile(r"^ *(\d+): ?")


class _Seen(msgspec.Struct, frozen=True):
    """What Slurm says of a burst's job."""

    phase: Phase
    why: str = ""
    failure: Failure = Failure.OTHER
    late: bool = False
    """Whether it has been running for so long that its followers should have joined."""


_NO_JOB = _Seen(Phase.PENDING, "no job was submitted for it yet")


def describe(
    burst_id: BurstId, files: JobFiles, job: SlurmJob | None, now: float
) -> BurstStatus:
    """Return the status of a burst of which there are files or a job.

    Raises Transient if its files cannot be read.
    """
    seen = _of_job(job, now) if job else _NO_JOB
    spec = files.spec()
    hosts = spec.hosts if spec else ()
    runs = seen.phase is Phase.RUNNING
    ended = files.ended() if runs else {}
    log = files.log() if seen.late or ended or not runs else ""
    if not runs:
        found = tuple(_alike(seen, hosts, started=bool(log)))
        words = _words(log, hosts) if seen.phase is Phase.FAILED else ""
        why = ": ".join(filter(None, (seen.why, words)))
        return BurstStatus(
            burst_id=burst_id,
            phase=seen.phase,
            followers=found,
            why=why,
            failure=seen.failure,
        )
    found = tuple(_running(hosts, ended, log, late=seen.late))
    failed = [follower for follower in found if follower.phase is Phase.FAILED]
    worst = next((f for f in failed or found if f.why), None)
    return BurstStatus(
        burst_id=burst_id,
        phase=Phase.FAILED if failed else Phase.RUNNING,
        followers=found,
        why=f"{worst.host} {worst.why}" if worst else "",
    )


def _of_job(job: SlurmJob, now: float) -> _Seen:
    state, words = job.state, [job.reason] if job.reason else []
    phase, failure, told = state.phase, state.failure, state.words
    if job.name == "PENDING":
        reason = reason_of(job.reason)
        told = reason.words
        if reason.failure and now - job.submitted >= reason.after:
            phase, failure = Phase.FAILED, reason.failure
    else:
        words = [job.name, *words]
    its = f"Slurm job {job.number}" if job.number else "its Slurm job"
    why = f"{its} {told}" + (f" ({': '.join(words)})" if words else "")
    late = phase is Phase.RUNNING and now - job.start > _JOINS_S
    return _Seen(phase, why, failure, late)


def _alike(
    seen: _Seen, hosts: Sequence[str], *, started: bool
) -> Iterator[FollowerStatus]:
    """Yield followers that are all as their job is."""
    lost = seen.why if started and seen.phase is Phase.FAILED else ""
    taken = seen.failure is Failure.RECLAIMED
    for host in hosts:
        yield FollowerStatus(host, seen.phase, seen.why, reclaimed=taken, lost=lost)


def _running(
    hosts: Sequence[str], ended: dict[str, str], log: str, *, late: bool
) -> Iterator[FollowerStatus]:
    """Yield followers of a job that runs, some of which have ended."""
    for number, host in enumerate(hosts):
        said = _of_task(log, number)
        if host in ended:
            what = f"has ended with status {ended[host]}"
            why = ": ".join(filter(None, (what, explain_log(said) or _last(said))))
            yield FollowerStatus(host, Phase.FAILED, why, lost=what)
        else:
            why = explain_log(said) if late else ""
            yield FollowerStatus(host, Phase.RUNNING, why)


def _words(log: str, hosts: Sequence[str]) -> str:
    """Return what a log says of why followers ended."""
    for number, host in enumerate(hosts):
        if explained := explain_log(_of_task(log, number)):
            return f"{host}: {explained}"
    return _last(log)


def _of_task(log: str, number: int) -> str:
    """Return the lines of one task."""
    found = ((_LABEL.match(line), line) for line in log.splitlines())
    mine = [line[m.end() :] for m, line in found if m and int(m[1]) == number]
    return "\n".join(mine)


def _last(text: str) -> str:
    plain = "\n".join(_LABEL.sub("", line, count=1) for line in text.splitlines())
    return "\n".join(main_lines(plain)[-_LAST_LINES:]).strip()
