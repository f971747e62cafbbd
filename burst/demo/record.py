# SPDX-License-Identifier: MIT
"""What the story came to, and what of it is not as it should be. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from burst.core.timeline import STAGES
from burst.demo.parts import HUGE, LARGE, SMALL, Part, parts_of
from burst.demo.scene import IMPOSSIBLE, JobSeen, Row
from burst.model.jobid import format_f58


class Left(msgspec.Struct, frozen=True):
    """What is there after everything was taken down."""

    followers: int
    """Processes of followers and of the lead, of the daemon and of jobs."""
    slots: int
    """Rank slots that are not free."""
    files: int
    """What the provider left, and what is still there of the demo's directory."""


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """One of the jobs, and how it ended."""

    part: Part
    job: JobSeen
    output: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of it."""

    lead: str
    mode: str = "hold"
    """How jobs came in."""
    acts: tuple[Act, ...] = ()
    bursts: tuple[Row, ...] = ()
    left: Left
    failure: str = ""
    """What ended the story before its end; empty if nothing."""

    def faults(self) -> list[str]:
        """Return a sentence for everything that is not as it should be."""
        if self.failure:
            return [self.failure, *_faults_of_left(self.left)]
        return [
            *_faults_of_jobs(self.acts, self.mode),
            *_faults_of_bursts(self.bursts, self.mode),
            *_faults_of_left(self.left),
        ]

    def as_json(self) -> dict[str, Any]:
        """Return what `burst demo --json` prints."""
        return {
            "ok": not self.faults(),
            "lead": self.lead,
            "mode": self.mode,
            "jobs": [
                {
                    "id": format_f58(act.job.id),
                    "nodes": act.part.nodes,
                    "state": act.job.state,
                    "output": act.output,
                }
                for act in self.acts
            ],
            "bursts": [
                {
                    key: burst[key]
                    for key in ("id", "provider", "ranks", "result", "timeline")
                }
                for burst in self.bursts
            ],
            "left": msgspec.structs.asdict(self.left),
        }


def _faults_of_jobs(acts: tuple[Act, ...], mode: str) -> Iterator[str]:
    parts = parts_of(mode)
    if tuple(act.part for act in acts) != parts:
        yield f"{len(acts)} of {len(parts)} jobs were submitted"
    for act in acts:
        name = format_f58(act.job.id)
        fault = act.part.fault(act.job.state, act.output)
        if fault:
            yield f"job {name} of {act.part.nodes} nodes {fault}"
        # With the request that it takes back from a scheduler, Flux forgets what the
        # job was told; that it was is what the story waited for.
        forgot = mode == "scheduler" and not act.job.word
        if act.part == HUGE and act.job.word != IMPOSSIBLE and not forgot:
            yield f"job {name} of {act.part.nodes} nodes was not told why it waits"


def _faults_of_bursts(bursts: tuple[Row, ...], mode: str) -> Iterator[str]:
    # A scheduler that steps over jobs needs no hold of them.
    stages = [s for s in STAGES if mode == "hold" or s not in ("hold", "released")]
    wanted = sorted(part.nodes for part in (LARGE, SMALL))
    if sorted(burst["nodes"] for burst in bursts) != wanted:
        sizes = ", ".join(str(burst["nodes"]) for burst in bursts) or "none"
        yield f"two bursts of 4 and 2 nodes were to be made, not: {sizes}"
    for burst in bursts:
        missing = [stage for stage in stages if stage not in burst["timeline"]]
        if missing:
            yield f"burst {burst['id']} was never {', '.join(missing)}"
        if burst["result"] != "completed":
            note = f" ({burst['note']})" if burst["note"] else ""
            yield f"burst {burst['id']} ended as {burst['result']}{note}"


def _faults_of_left(left: Left) -> Iterator[str]:
    for what, count in msgspec.structs.asdict(left).items():
        if count:
            yield f"{count} {what} were left"
