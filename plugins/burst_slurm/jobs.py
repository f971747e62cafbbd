# SPDX-License-Identifier: MIT
"""Calls of Slurm's programs to submit, list and cancel jobs, and their errors.

A job is found by its name, `burst.OWNER.PROVIDER.BURST`, or if somebody renamed it, by
its comment, which is the same text. squeue lists the jobs of this user only, with the
name as the last field: lines that a site prints first are not taken for jobs, and of a
name with `|` the part after the last one counts. Accounting has only the name.
`squeue --json` is not used: with it Slurm 22.05 prints all users' jobs, whatever is
asked for, and its fields differ in each release.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.job_tasks import GIVEN, JobSeen
from burst.kits.program import ErrorPattern, run
from burst.provider import Phase
from burst_slurm.states import LIMIT_OF_ONE_JOB, SlurmState, reason_of, state_of

# Slurm's programs give up after 10 s if no controller answers.
_LIMIT_S = 25.0
_MINE = ("--me", "--all", "--noheader")
_FORMAT = "%i|%T|%S|%D|%r|%k|%j"
_LINE = re.compile(
    r"(?P<number>\d+)\|(?P<state>[A-Z_]+)\|(?P<start>[^|]*)"
    r"\|(?P<nodes>\d+)\|(?P<reason>[^|]*)\|(?P<comment>.*)\|(?P<name>[^|]*)\Z"
)
# `batch*|up|1-00:00:00`, `few|down|30:00`, `long|up|infinite`
_PARTITION = re.compile(
    r"(?P<name>[^|]+?)(?P<default>\*?)\|(?P<state>[a-z]+)"
    r"\|((?P<days>\d+)-)?(?P<clock>[\d:]+|infinite)\Z"
)
_NUMBER = re.compile(r"(\d+)(;\S+)?\Z")
# Slurm's programs also take options from variables. Those that are set for other work,
# or by the job in which this process runs, are removed.
_OPTIONS = ("SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_", "SACCT_")
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")
# Messages of slurm_errno.c and of sbatch itself. Any other error is Transient.
_SUBMIT = (
    # These come first: a site may print any other words beside them.
    ErrorPattern(
        "unable to contact slurm|socket timed out|zero bytes|temporarily unable"
        "|authenticat|munge",
        Transient,
    ),
    # With a QOS's flag DenyOnLimit, sbatch fails with the reason that a job would
    # otherwise wait for.
    ErrorPattern(LIMIT_OF_ONE_JOB, SpecRefused),
    ErrorPattern(
        "accounting/QOS policy|not available now|partition not available|nodes are busy"
        "|reservation (not usable|is in use)|threshold",
        InsufficientCapacity,
    ),
    ErrorPattern(
        "node configuration is not available|node count specification"
        "|more processors requested|unspecified error|submit.*plugin",
        SpecRefused,
    ),
    ErrorPattern(
        "invalid (partition|account|feature|qos|licen|generic|wckey)|time limit"
        "|requested reservation is invalid|denied|not permitted|no partition specified"
        "|(unrecognized|invalid|ambiguous).*(option|specification)|mutually exclusive",
        Refused,
        "change that in the provider's table",
    ),
)
_GONE = (ErrorPattern("already complet|invalid job id", NotFound),)


class SlurmJob(msgspec.Struct, frozen=True):
    """One job, as squeue lists it."""

    number: int
    """0 if it is not known."""
    name: str
    """Name of its state, such as PENDING."""
    reason: str = ""
    start: float = 0.0
    """When it started, or is expected to, seconds since the epoch; 0 if not known."""
    nodes: int = 0
    """How many nodes it has, without those that it has lost; 0 if not known."""

    @property
    def state(self) -> SlurmState:
        """What its state means."""
        return state_of(self.name)

    @property
    def over(self) -> bool:
        """Whether it has ended, so that nothing of it runs or will run."""
        return self.state.over

    @property
    def is_stuck(self) -> bool:
        """Whether it is pending for a reason that fails the burst once it has lasted.

        squeue shows only one of several reasons, so it may be another at the next look.
        """
        return self.name == "PENDING" and reason_of(self.reason).after > 0


class SlurmPartition(NamedTuple):
    """A partition, as sinfo lists it."""

    name: str
    state: str
    """up, down, drain or inact."""
    limit: float
    """The longest time of a job, in seconds; inf if there is no limit."""


def describe(job: SlurmJob, now: float, stuck: float = 0.0) -> JobSeen:
    """Return what the state of a burst's job means for the burst, with a reason.

    `stuck`: for how many seconds each look at the job has found that it `is_stuck`.
    """
    state, words = job.state, [job.reason] if job.reason else []
    phase, failure, told = state.phase, state.failure, state.words
    if job.name == "PENDING":
        reason = reason_of(job.reason)
        told = reason.words
        if reason.failure and stuck >= reason.after:
            phase, failure = Phase.FAILED, reason.failure
    else:
        words = [job.name, *words]
    its = f"Slurm job {job.number}" if job.number else "its Slurm job"
    why = f"{its} {told}" + (f" ({': '.join(words)})" if words else "")
    return JobSeen(phase, why, failure, now - job.start)


class Slurm:
    """The jobs of one provider."""

    def __init__(self, prefix: str, cluster: str = "") -> None:
        self._prefix = prefix
        self._name = re.compile(re.escape(prefix) + r"([A-Za-z0-9-]+)\Z")
        self._cluster = [f"--clusters={cluster}"] if cluster else []

    def jobs(self) -> Mapping[str, Sequence[SlurmJob]]:
        """Return the jobs of each burst: those that live, the oldest first, then those
        that ended, the youngest first.

        Slurm lists a job for some minutes after its end (MinJobAge of slurm.conf).
        Raises Transient if Slurm cannot tell.
        """
        found: dict[str, list[SlurmJob]] = {}
        ask = (*_MINE, "--states=all", f"--format={_FORMAT}")
        for line in self._ask("squeue", *ask):
            match = _LINE.match(line)
            texts = match.group("name", "comment") if match else ()
            burst = next(filter(None, map(self._name.match, texts)), None)
            if match and burst:
                found.setdefault(burst[1], []).append(_job(match))
        for jobs in found.values():
            jobs.sort(key=_order)
        return found

    def names(self) -> Sequence[str]:
        """Return the names and comments of this user's jobs that have not ended."""
        lines = self._ask("squeue", *_MINE, "--format=%k|%j")
        texts = (text for line in lines for text in line.rsplit("|", 1))
        return list(dict.fromkeys(texts))

    def submit(self, options: Sequence[str], script: str) -> int:
        """Submit a job; return its number, 0 if Slurm's answer does not tell it.

        If it raises, the job may exist all the same.
        """
        lines = self._ask("sbatch", "--parsable", *options, given=script)
        found = [int(match[1]) for line in lines if (match := _NUMBER.match(line))]
        return found[-1] if found else 0

    def version(self) -> str:
        """Return the version that sbatch prints, after what a site prints first."""
        return next(reversed(self._ask("sbatch", "--version")), "")

    def test(self, options: Sequence[str]) -> None:
        """Let Slurm check whether it would take such a job; raise its error if not."""
        self._ask("sbatch", "--test-only", *options, given="#!/bin/sh\n")

    def cancel(self, jobs: Sequence[SlurmJob]) -> None:
        """Cancel these jobs; some or all of them may be gone."""
        numbers = [str(job.number) for job in jobs]
        with contextlib.suppress(NotFound):
            self._ask("scancel", *numbers, patterns=_GONE)

    def ended(self, number: int, burst: str) -> SlurmJob | None:
        """Return a burst's job if it has ended by Slurm's accounting, else None.

        None also if there is no accounting, or its database does not answer.
        """
        form = ("--noheader", "--parsable2", "--allocations", "--format=State")
        job = (f"--jobs={number}", f"--name={self._prefix}{burst}")
        try:
            lines = self._ask("sacct", *form, *job)
        except ProviderError:
            return None
        # `CANCELLED by 1000`
        names = (line.split(" ")[0] for line in lines)
        over = (name for name in names if state_of(name).over)
        return next((SlurmJob(number, name) for name in over), None)

    def partitions(self, names: str) -> Sequence[SlurmPartition]:
        """Return these partitions, named as sbatch(1) takes them; if empty, Slurm's
        default partition.
        """
        chosen = f"--partition={names}" if names else "--all"
        lines = self._ask("sinfo", "--noheader", chosen, "--format=%P|%a|%l")
        return [
            SlurmPartition(each["name"], each["state"], _seconds(each))
            for each in filter(None, map(_PARTITION.match, lines))
            if names or each["default"]
        ]

    def _ask(
        self,
        program: str,
        *words: str,
        given: str = "",
        patterns: Sequence[ErrorPattern] = _SUBMIT,
    ) -> list[str]:
        """Return the lines that one of Slurm's programs prints."""
        text = run(
            [program, *self._cluster, *words],
            limit=_LIMIT_S,
            given=given,
            environment=_environment(program),
            patterns=patterns if program in ("sbatch", "scancel") else (),
        )
        return [line.strip() for line in text.splitlines()]


def _environment(program: str) -> dict[str, str]:
    """Return the variables for a program; those of sbatch reach the job."""
    mine = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT
        or (name in GIVEN if program == "sbatch" else not name.startswith(_OPTIONS))
    }
    return {**mine, "SLURM_TIME_FORMAT": "%s"}


def _seconds(limit: re.Match[str]) -> float:
    if limit["clock"] == "infinite":
        return math.inf
    seconds = 0
    for part in limit["clock"].split(":"):
        seconds = seconds * 60 + int(part)
    return seconds + 86400.0 * int(limit["days"] or 0)


def _order(job: SlurmJob) -> tuple[bool, int]:
    return job.over, -job.number if job.over else job.number


def _job(line: re.Match[str]) -> SlurmJob:
    start, reason = line["start"], line["reason"]
    return SlurmJob(
        int(line["number"]),
        line["state"],
        "" if reason == "None" else reason,
        float(start) if start.isdecimal() else 0.0,
        int(line["nodes"]),
    )
