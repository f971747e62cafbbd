# SPDX-License-Identifier: MIT
"""Intents: what a step of an ensemble asks the daemon to do.

Every step repeats an intent until it is done: sizes and ends until a reading shows
them, jobs and commands until `confirm` (`burst_ensemble.core.controller`). So doing an
intent twice must have the same effect as doing it once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.jobid import JobId


class JobRef(msgspec.Struct, frozen=True, array_like=True):
    """One job of a file: the entry of `jobs`, and its number in that entry from 0.

    It identifies the job for good: it is part of the name of the submitted job, and a
    job whose name exists is not submitted again. In a shared group each number is used
    once among all members.
    """

    group: str
    number: int
    shared: bool = False


class ResizeMember(msgspec.Struct, frozen=True, kw_only=True):
    """Give the member this size: make a burst if it has none, else grow or shrink it.

    To shrink a burst, its upper nodes are drained first; jobs that run there continue.
    """

    member: str
    nodes: int
    why: str


class SubmitJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Submit jobs for a member, in this order; at most SUBMIT_MOST in one step."""

    member: str
    jobs: tuple[JobRef, ...]


class EndMember(msgspec.Struct, frozen=True, kw_only=True):
    """Take the member down for good: cancel waiting jobs, drain, reap."""

    member: str
    why: str


class RunCustom(msgspec.Struct, frozen=True, kw_only=True):
    """Run a command of the file's table `custom`."""

    member: str
    command: str
    number: int
    """How many commands this member was given before; it identifies this one."""


Intent = ResizeMember | SubmitJobs | EndMember | RunCustom


class Done(msgspec.Struct, frozen=True):
    """The outcome of an intent."""

    refused: str = ""
    """Why the member does not reach its size, a job was refused for now, or the intent
    failed; empty if it is done."""
    jobs: Mapping[JobRef, JobId] = {}
    """For SubmitJobs: the jobs that the lead has now."""
    never_taken: Mapping[JobRef, str] = {}
    """For SubmitJobs: the jobs that the lead will never accept, and why."""
