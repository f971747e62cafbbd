# SPDX-License-Identifier: MIT
"""What the contract of a lead needs of an instance under test.

A subclass of `LeadContract` provides the fixture `instance`. It starts an instance of
its own for each test and ends every process and removes every file of it afterwards.

    hosts        lead-[0-1], burst-0-[0-3], burst-1-[0-3] as ranks 0 to 9
    R            lead: 2 cores; burst: 4 cores and 1 GPU each
    properties   local: ranks 0-1, burst: 2-9, burst-0: 2-5, burst-1: 6-9

Only lead-0 is up when the fixture yields. It listens on loopback; the certificate,
sockets and state are in a private directory with a short path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from burst.lead import Lead
from burst.model.jobid import JobId
from burst.model.shape import Shape

OWN = ("lead-0", "lead-1")
SLOT_0 = tuple(f"burst-0-{i}" for i in range(4))
SLOT_1 = tuple(f"burst-1-{i}" for i in range(4))
HOSTS = OWN + SLOT_0 + SLOT_1
OWN_SHAPE = Shape(2)
BURST_SHAPE = Shape(4, 1)
SLEEP = ("sleep", "600")
"""A command that runs until its job is canceled."""


def rank_of(host: str) -> int:
    """Return the rank of one of HOSTS."""
    return HOSTS.index(host)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A job to submit, as `Instance.submit` is asked for it."""

    nodes: int
    slots: int
    cores: int
    gpus: int
    command: Sequence[str]
    urgency: int
    system: Mapping[str, Any]
    """Its `attributes.system`."""


class Instance(Protocol):
    """A running instance, and what users and the machine do to it."""

    opener: str
    """`MODULE:FUNCTION` that makes a Lead of `uri`, for processes that we start."""
    uri: str

    def lead(self) -> Lead:
        """Return a new client of the owner; whoever asked closes it."""
        ...

    def start_follower(self, host: str) -> None:
        """Start the broker of that host; returns without waiting for it to join."""
        ...

    def stop_follower(self, host: str) -> None:
        """End it cleanly (SIGTERM), and return once it is gone."""
        ...

    def kill_follower(self, host: str) -> None:
        """End it by SIGKILL, and return once it is gone."""
        ...

    def submit(
        self,
        *,
        nodes: int = 0,
        slots: int = 0,
        cores: int = 1,
        gpus: int = 0,
        burstable: bool = True,
        command: Sequence[str] = ("true",),
        urgency: int = 16,
        provider: str = "",
        attributes: Mapping[str, Any] = {},
    ) -> JobId:
        """Submit a job, as a user does.

        `slots` in all, each with `cores` and `gpus`, and one task each; 0 means one a
        node, or one. `nodes` 0 leaves the number of nodes to the scheduler. `provider`
        is `burst.provider` of the job; `attributes` are others of `attributes.system`.
        """
        system: dict[str, Any] = {"burstable": True} if burstable else {}
        if provider:
            system["burst"] = {"provider": provider}
        return self.submit_job(
            Submission(
                nodes=nodes,
                slots=slots,
                cores=cores,
                gpus=gpus,
                command=command,
                urgency=urgency,
                system={**system, **attributes},
            )
        )

    def submit_job(self, job: Submission) -> JobId:
        """Submit this job; `submit` makes it of its arguments."""
        ...

    def cancel(self, job: JobId) -> None:
        """Cancel it, as its user does."""
        ...

    def set_urgency(self, job: JobId, urgency: int) -> None:
        """Change its urgency, as its user does."""
        ...

    def output(self, job: JobId) -> str:
        """Wait for the job to end and return the standard output of all its tasks."""
        ...

    def memo(self, job: JobId) -> dict[str, Any]:
        """Return the job's memo under `burst`, as its user is shown it."""
        ...

    def exception(self, job: JobId) -> tuple[str, str]:
        """Return type and note of the job's last exception; empty if it has none."""
        ...

    def drain(self, host: str, reason: str) -> None:
        """Drain a rank, as the instance's administrator does; "" is no reason."""
        ...

    def store_late(self) -> AbstractContextManager[None]:
        """Have what happens to jobs be stored late, if it is ever stored late."""
        ...


class LastingInstance(Instance, Protocol):
    """An instance whose lead can end and come back with what it kept."""

    def stop(self) -> None:
        """End the lead cleanly, followers first, and return once it is gone."""
        ...

    def kill(self) -> None:
        """End the lead by SIGKILL, and return once it is gone."""
        ...

    def start(self) -> None:
        """Start the lead again on the state it left; no follower."""
        ...

    def lose_disk(self) -> None:
        """Have what the store is written to be gone, until `restore_disk`."""
        ...

    def restore_disk(self) -> None:
        """Have it back, as it was."""
        ...


class SharedInstance(Instance, Protocol):
    """An instance that others than its owner may use."""

    def guest(self) -> Lead:
        """Return a client of another user; whoever asked closes it."""
        ...
