# SPDX-License-Identifier: MIT
"""What a step of an ensemble asks the daemon to do.

Each is asked for again in every step until it is done: sizes and ends until a reading
shows it, jobs and commands until `confirm` (`burst_ensemble.core.controller`). So doing
one twice must be the same as doing it once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.jobid import JobId


class JobRef(msgspec.Struct, frozen=True, array_like=True):
    """One job of a file: the entry of `jobs`, and its number there from 0.

    It names the job for good: a job that is submitted bears it as an attribute, and one
    that is there already is not submitted again. Numbers of a shared group are given
    out once among all members.
    """

    group: str
    number: int
    shared: bool = False


class ResizeMember(msgspec.Struct, frozen=True, kw_only=True):
    """Make the member as large: a burst where there is none, else grow or shrink it.

    To shrink it, its upper nodes are drained first; jobs that run there end in peace.
    """

    member: str
    nodes: int
    why: str


class SubmitJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Submit jobs for a member, in this order; at most SUBMIT_MOST in one step."""

    member: str
    jobs: tuple[JobRef, ...]


class EndMember(msgspec.Struct, frozen=True, kw_only=True):
    """Take the member down for good: cancel what waits, drain, reap."""

    member: str
    why: str


class RunCustom(msgspec.Struct, frozen=True, kw_only=True):
    """Run a command of the file's table `custom`."""

    member: str
    command: str
    number: int
    """How many commands of this member were asked for before; it names this one."""


Intent = ResizeMember | SubmitJobs | EndMember | RunCustom


class Done(msgspec.Struct, frozen=True):
    """What became of an intent."""

    refused: str = ""
    """Why the member is not as large as it should be, or does not have a job."""
    jobs: Mapping[JobRef, JobId] = {}
    """Of jobs that were to be submitted those that the member has."""
