# SPDX-License-Identifier: MIT
"""The jobs of a month: how they are submitted, and how each came to its end."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import msgspec

from burst.flux.node_set import parse_nodes
from burst.model.jobid import format_f58
from burst.model.ranks import parse_idset
from tests.flux_instance import FluxInstance, flux_bindings

CHECKPOINT_S = 1.0
"""How often the lead's KVS is made safe; what is newer may be lost with the lead."""
_MARGIN_S = 30.0
"""By so much a busy machine, or its disk, may be late."""
# How many jobs in a hundred are like this: nodes, slots, lent nodes only, burstable.
_KINDS = (
    (50, (0, 1, True, True)),
    (18, (0, 1, False, True)),
    (10, (1, 1, True, True)),
    (6, (2, 2, True, True)),
    (3, (4, 4, True, True)),
    (3, (0, 6, True, True)),
    (10, (0, 1, False, False)),
)
_COMMANDS = (("true",), ("sleep", "0.1"), ("sleep", "0.3"))
_SIMULATED = ("simulated",)
"""Three of four jobs: Flux allocates nodes and plays 0.1 s of a job there, without the
shell, which takes most of the time of those that are real."""


class Killing(msgspec.Struct, frozen=True):
    """Something that was ended by SIGKILL."""

    what: str
    """A host, or `lead` or `daemon`."""
    when: float


class Ended(msgspec.Struct, frozen=True):
    """How a job ended."""

    id: int
    result: str
    note: str
    began: float
    ended: float
    hosts: frozenset[str]


class Jobs:
    """Submits jobs, and knows when each was accepted."""

    def __init__(self, instance: FluxInstance, random_: random.Random) -> None:
        self._instance = instance
        self._random = random_
        self.accepted: dict[int, float] = {}
        self._broken: set[int] = set()

    def submit(self, count: int) -> None:
        """Submit that many at once; return when Flux has taken them all."""
        job, handle = flux_bindings().job, self._instance.handle
        kinds = [kind for _, kind in _KINDS]
        shares = [share for share, _ in _KINDS]
        futures = []
        for kind in self._random.choices(kinds, shares, k=count):
            real = self._random.choice(_COMMANDS)
            spec = _spec(kind, self._random.choice([real, *[_SIMULATED] * 3]))
            futures.append(job.submit_async(handle, spec))
        for future in futures:
            self.accepted[int(future.get_id())] = time.time()

    def active(self) -> list[int]:
        """Return the jobs that have not ended."""
        found = self._instance.rpc("job-manager.list", {"max_entries": 0})["jobs"]
        return [entry["id"] for entry in found]

    def repair(self) -> int:
        """Cancel the jobs that a killed lead left broken; return how many these were.

        Flux 0.88 stores R before the event `alloc`. Where only R was made safe, the new
        job manager has R of a job that waits for it, refuses it from the scheduler
        ("already allocated", alloc.c) and sends no request to a scheduler any more.
        """
        constants = flux_bindings().constants
        found = self._instance.rpc("job-manager.list", {"max_entries": 0})["jobs"]
        broken = []
        for entry in found:
            waits = entry["state"] < constants.FLUX_JOB_STATE_RUN
            if waits and self._has_resources(entry["id"]):
                broken.append(entry["id"])
                # It may have ended since.
                with suppress(FileNotFoundError):
                    flux_bindings().job.cancel(self._instance.handle, entry["id"])
        if broken:
            self._instance.reload_scheduler()
        self._broken.update(broken)
        return len(broken)

    def cancel_those_nowhere(self) -> int:
        """Cancel jobs that run on offline ranks alone; return how many there are.

        Flux 0.88 does not end a job whose start was on its way to a broker that was
        killed: job-exec gets neither an answer nor an error.
        """
        constants = flux_bindings().constants
        online = self._instance.rpc("resource.status", {})["online"]
        up = parse_idset(online)
        found = self._instance.rpc("job-manager.list", {"max_entries": 0})["jobs"]
        nowhere = []
        for entry in found:
            if entry["state"] == constants.FLUX_JOB_STATE_RUN:
                asked = {"id": entry["id"], "keys": ["R"], "flags": 0}
                resources = self._instance.rpc("job-info.lookup", asked)["R"]
                if not up & parse_nodes(json.loads(resources)).ranks:
                    nowhere.append(entry["id"])
        new = [job for job in nowhere if job not in self._broken]
        for job in new:
            with suppress(FileNotFoundError):
                flux_bindings().job.cancel(self._instance.handle, job)
        self._broken.update(new)
        return len(new)

    def _has_resources(self, job: int) -> bool:
        asked = {"id": job, "keys": ["R"], "flags": 0}
        try:
            self._instance.rpc("job-info.lookup", asked)
        except FileNotFoundError:
            return False
        return True

    def ended(self) -> Iterator[Ended]:
        """Yield all jobs that Flux knows of."""
        jobs = flux_bindings().job.JobList(self._instance.handle, max_entries=0)
        for info in jobs.jobs():
            yield Ended(
                id=int(info.id),
                result=str(info.result),
                note=f"{info.exception.type} {info.exception.note}".strip(),
                began=info.t_run or info.t_submit,
                ended=info.t_inactive or time.time(),
                hosts=_hosts(str(info.nodelist)),
            )

    def unexplained(self, killings: list[Killing]) -> list[str]:
        """Return what became of each job that ought to have ended otherwise."""
        ended = {job.id: job for job in self.ended()}
        leads = [killing.when for killing in killings if killing.what == "lead"]
        wrong = []
        for job, when in self.accepted.items():
            name = format_f58(job)
            if job not in ended:
                safe = when + CHECKPOINT_S + _MARGIN_S
                if not any(when <= killed <= safe for killed in leads):
                    after = [f"{killed - when:.1f} s" for killed in leads]
                    wrong.append(f"{name} is lost; the lead was killed after {after}")
            elif job not in self._broken and not is_explained(ended[job], killings):
                wrong.append(f"{name}: {ended[job]}")
        return wrong


def is_explained(job: Ended, killings: list[Killing]) -> bool:
    """Tell whether a job ended well, or with its follower or its lead."""
    if job.result == "COMPLETED":
        return True
    if job.result != "FAILED" or not job.note.startswith("exec "):
        return False
    began, ended = job.began - _MARGIN_S, job.ended + _MARGIN_S
    return any(
        began <= killing.when <= ended and killing.what in {"lead", *job.hosts}
        for killing in killings
    )


def _hosts(nodelist: str) -> frozenset[str]:
    hostlist = flux_bindings().hostlist.Hostlist
    return frozenset(hostlist(nodelist)) if nodelist else frozenset()


@cache
def _spec(kind: tuple[int, int, bool, bool], command: tuple[str, ...]) -> str:
    nodes, slots, lent, burstable = kind
    spec = flux_bindings().job.JobspecV1.from_command(
        list(command), num_tasks=slots, num_nodes=nodes or None
    )
    spec.cwd = "/tmp"
    spec.environment = {"PATH": os.environ["PATH"]}
    # Nobody reads it, and each would be an entry in the KVS.
    spec.stdout = "/dev/null"
    if burstable:
        spec.setattr("burstable", True)
    if command == _SIMULATED:
        spec.setattr("system.exec.test.run_duration", "0.1s")
    wanted = "burst" if lent else "local"
    if lent or not burstable:
        spec.setattr("system.constraints", {"properties": [wanted]})
    return json.dumps(spec.jobspec)
