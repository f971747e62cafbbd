# SPDX-License-Identifier: MIT
"""What is seen at one moment, and what changed since another. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from burst.core.timeline import STAGES
from burst.model.jobid import JobId, format_f58

Row = Mapping[str, Any]
IMPOSSIBLE = "impossible"
"""The word for a job that no offer could ever serve."""
ENDED = frozenset({"completed", "failed", "canceled", "timeout"})


class JobSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the lead's own listing. Times are seconds since the epoch, or 0."""

    id: JobId
    nodes: int
    state: str
    """Flux's states and results in small letters, and `held` for urgency 0."""
    hosts: str = ""
    """A hostlist."""
    word: str = ""
    """What its memo says of its burst: the word for a column, `user.burst.state`."""
    why: str = ""
    """The same as a sentence, `user.burst.why`."""
    t_submit: float
    t_start: float = 0.0
    t_end: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.state in ENDED

    @property
    def news(self) -> str:
        """What a person wants to know of it: where it is, or why it is not."""
        return self.hosts or self.why


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One moment."""

    now: str = ""
    """What happens, in a few words."""
    jobs: tuple[JobSeen, ...] = ()
    """In the order of their submission."""
    bursts: tuple[Row, ...] = ()
    """As `burst status --json` shows them."""


def stage_of(burst: Row) -> tuple[str, float]:
    """Return the last stage that a burst has reached, and after how many seconds."""
    reached = burst["timeline"]
    return next((s, reached[s]) for s in reversed(STAGES) if s in reached)


def changes(before: Scene, after: Scene) -> Iterator[str]:
    """Yield a line for everything that is new."""
    if after.now != before.now:
        yield after.now
    jobs = {job.id: job for job in before.jobs}
    for job in after.jobs:
        old = jobs.get(job.id)
        if old is None or (old.state, old.news) != (job.state, job.news):
            news = f": {job.news}" if job.news else ""
            yield f"job {format_f58(job.id)} {job.state}{news}"
    bursts = {burst["id"]: burst for burst in before.bursts}
    for burst in after.bursts:
        yield from _burst_changes(bursts.get(burst["id"]), burst)


def _burst_changes(before: Row | None, after: Row) -> Iterator[str]:
    known = before["timeline"] if before else {}
    if before is None:
        yield (
            f"{after['id']}: {after['nodes']} nodes of {after['provider']} as ranks"
            f" {after['ranks']} for {' '.join(after['jobs'])}"
        )
    for stage in STAGES:
        if stage in after["timeline"] and stage not in known and stage != "submit":
            yield f"{after['id']}: {stage} after {after['timeline'][stage]:.2f} s"
    if after["result"] and not (before and before["result"]):
        completed = after["result"] == "completed"
        yield f"{after['id']}: {after['result']}" + (
            "" if completed else f": {after['note']}"
        )
