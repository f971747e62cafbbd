# SPDX-License-Identifier: MIT
"""Limits of flux-accounting, their present use, and how it counts usage.

An association is a user and a bank. Its limits are described in flux-accounting's guide
(doc/components/limits.rst); its priority plugin keeps a job that would exceed a limit
in state DEPEND, with a dependency named after the limit.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst.model.shape import Shape

UNLIMITED = 2**31 - 1
"""The value that flux-accounting has for a limit that is not set."""


class AssociationUse(msgspec.Struct, frozen=True):
    """Running jobs, and the nodes and cores that they asked for.

    They are counted as by flux-accounting: a job that asks for cores only has one node.
    """

    jobs: int = 0
    nodes: int = 0
    cores: int = 0

    def plus(self, other: AssociationUse) -> AssociationUse:
        """Return the sum of both."""
        return AssociationUse(
            self.jobs + other.jobs, self.nodes + other.nodes, self.cores + other.cores
        )


class AssociationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one user in one bank, and what the user's jobs use."""

    max_running_jobs: int = UNLIMITED
    max_nodes: int = UNLIMITED
    max_cores: int = UNLIMITED
    max_sched_jobs: int = UNLIMITED
    running: AssociationUse = AssociationUse()
    """The use by all of the user's running jobs in this bank."""
    by_queue: Mapping[str, AssociationUse] = {}
    """The use by running jobs in each queue; cores are not counted there."""
    queues: frozenset[str] | None = None
    """The queues known to flux-accounting that the association may use; None if the
    plugin does not report them."""


class QueueLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a queue; each is for one association."""

    max_running_jobs: int = UNLIMITED
    max_nodes_per_assoc: int = UNLIMITED
    max_sched_jobs: int = UNLIMITED
    max_sched_nodes_per_assoc: int = UNLIMITED
    max_sched_cores_per_assoc: int = UNLIMITED


class UsageWeights(msgspec.Struct, frozen=True):
    """How much a node, core and GPU of a job adds to its bank's usage each second.

    flux-accounting has one set of weights for all nodes, lent or not
    (doc/components/job-usage-calculation.rst).
    """

    node: float = 1.0
    core: float = 0.0
    gpu: float = 0.0

    def of(self, shape: Shape) -> float:
        """Return how much a whole node of this shape adds each second."""
        return self.node + self.core * shape.cores + self.gpu * shape.gpus


class AccountingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The last answer of flux-accounting, except for who may use which bank."""

    read_at: float = 0.0
    """When it was asked, in seconds since the epoch."""
    associations: Mapping[tuple[int, str], AssociationLimits] = {}
    """Limits by user id and bank; empty if its plugin is not loaded: then Flux enforces
    no limits."""
    queues: Mapping[str, QueueLimits] = {}
    weights: UsageWeights | None = None
    """None if its service does not run; no other program knows the weights."""


def describe_limits(
    dependencies: tuple[str, ...],
    bank: str,
    queue: str,
    association: AssociationLimits | None,
    of_queue: QueueLimits | None,
) -> str:
    """Return the limits because of which a job has these dependencies, in words."""
    told = []
    for dependency in dependencies:
        fields, is_queues = LIMIT_DEPENDENCIES[dependency]
        whose = f"queue {queue}" if is_queues else f"bank {bank}"
        limits = of_queue if is_queues else association
        values = [(each, getattr(limits, each, UNLIMITED)) for each in fields]
        known = [f"{name} {most}" for name, most in values if most < UNLIMITED]
        told.append(f"limit {' and '.join(known or fields)} of {whose}")
    return ", ".join(told)


LIMIT_DEPENDENCIES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "max-running-jobs-user-limit": (("max_running_jobs",), False),
    "max-resources-user-limit": (("max_nodes", "max_cores"), False),
    "max-sched-jobs-user-limit": (("max_sched_jobs",), False),
    "max-run-jobs-queue": (("max_running_jobs",), True),
    "max-resources-queue": (("max_nodes_per_assoc",), True),
    "max-sched-jobs-queue-limit": (("max_sched_jobs",), True),
    "max-sched-nodes-queue-limit": (("max_sched_nodes_per_assoc",), True),
    "max-sched-cores-queue-limit": (("max_sched_cores_per_assoc",), True),
}
"""For each dependency that flux-accounting's plugin adds, its limits, and whether they
are limits of the job's queue (src/plugins/accounting.hpp)."""
