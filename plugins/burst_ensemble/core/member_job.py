# SPDX-License-Identifier: MIT
"""Make the jobs that are submitted for a member from the entries of its file."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from burst.lead import NewJob
from burst.model.ranks import format_hostlist
from burst.model.request import BURSTABLE
from burst.model.shape import Shape
from burst_ensemble.config.spec import EnsembleSpec, JobSpec
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.job_rows import GROUP
from burst_ensemble.core.record import EnsembleStart

_URGENCY = 16
"""The urgency of a job once its nodes are up; it is submitted held."""


class MemberNodes(NamedTuple):
    """The nodes that jobs of a member may have."""

    shape: Shape
    """As the lead's R declares them; for an isolated member, as its offer says."""
    hosts: tuple[str, ...] = ()
    """Empty if its jobs name none: those of an isolated member, and in intake mode
    `queue`, in which Flux moves no job with a constraint to the queue where it starts.
    That queue has lent nodes alone, and the daemon keeps jobs on those of their tag."""


def job_name(spec: EnsembleSpec, member: str, ref: JobRef, started: float) -> str:
    """Return the name of one job in one run of an ensemble.

    It is unique: none of its parts may contain the / between them.
    """
    whose = spec.name if ref.shared else f"{spec.name}/{member}"
    return f"{whose}/{ref.group}/{ref.number}{run_of(started)}"


def run_of(started: float) -> str:
    """Return how the names of all jobs in one run of an ensemble end."""
    return f"-{int(started):x}"


def find_group(spec: EnsembleSpec, member: str, ref: JobRef) -> JobSpec:
    """Return the entry of `jobs` that a job belongs to. Raises KeyError."""
    jobs = spec.jobs if ref.shared else spec.member(member).jobs
    return {job.name: job for job in jobs}[ref.group]


def make_job(
    file: EnsembleStart, member: str, ref: JobRef, name: str, nodes: MemberNodes
) -> NewJob:
    """Return a job to submit: held, and for nodes of its member alone.

    A constraint of the job names their hosts, because Flux would give it any that fit.
    """
    spec = file.spec
    job = find_group(spec, member, ref)
    system: dict[str, Any] = {
        "duration": float(job.duration),
        "cwd": job.workdir or spec.directory or "/",
        "environment": dict(file.environment),
        "job": {"name": name},
        "burst": {"tag": f"{spec.name}/{member}", "urgency": _URGENCY},
        GROUP: ref.group,
        BURSTABLE: True,
    }
    if nodes.hosts:
        system["constraints"] = {"hostlist": [format_hostlist(nodes.hosts)]}
    return NewJob(make_jobspec(job, ref.number, nodes.shape, system), urgency=0)


def make_jobspec(
    job: JobSpec, number: int, shape: Shape, system: dict[str, Any]
) -> dict[str, Any]:
    """Return the jobspec of the job with this number, for nodes of this shape.

    `system` is `attributes.system` of the jobspec (RFC 14).
    """
    task = {
        "command": shlex.split(job.command_of(number)),
        "slot": "task",
        "count": {"per_slot": 1},
    }
    return {
        "version": 1,
        "resources": [_resources(job, shape)],
        "tasks": [task],
        "attributes": {"system": system},
    }


def _resources(job: JobSpec, shape: Shape) -> dict[str, Any]:
    """Return whole nodes and the tasks of each as resources of a jobspec (RFC 25)."""
    each = (job.tasks or job.nodes) // job.nodes
    cores = job.cores or (max(1, shape.cores // each) if job.tasks else 1)
    slot = {
        "type": "slot",
        "label": "task",
        "count": each,
        "with": [{"type": "core", "count": cores}],
    }
    node = {"type": "node", "count": job.nodes, "exclusive": True}
    return {**node, "with": [slot]}
