# SPDX-License-Identifier: MIT
"""Writes to each pending job a memo that says why it waits, whenever that changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from burst import log
from burst.core.job_memo import (
    LastMemo,
    Memo,
    memo,
    memo_due_at,
    memo_not_before,
    next_last_memo,
)
from burst.lead import Lead
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobView, LeadIdentity

# Seconds between two looks at the jobs whose memo is to change later.
_LOOK_AGAIN = 2.0


class MemoWriter:
    """Remembers the last memo of each pending job. Use from one thread."""

    def __init__(self, lead: Lead, identity: LeadIdentity) -> None:
        self._lead = lead
        self._identity = identity
        self._told: dict[JobId, LastMemo] = {}
        self._settled: dict[JobId, Decision] = {}
        """Decisions whose memo is written, or not to be written yet."""
        self._later: dict[JobId, float] = {}
        """Jobs whose memo is not to be written yet, and the time when it may be."""
        self._look_at = 0.0

    def change(self, identity: LeadIdentity) -> None:
        """Use another identity, which tells who is a guest of the lead."""
        self._identity = identity

    def send(
        self,
        decisions: Mapping[JobId, Decision],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> None:
        """Write the memos that changed. Raises Unreadable.

        A memo that failed, or that the lead has dropped since, is written again.
        """
        self._forget(decisions, jobs, now)
        memos = dict(self._changed(decisions, jobs, now))
        if not memos:
            return
        for job, text in memos.items():
            event = Event(now, "job", dict(text or {"state": "local"}))
            log.event(event, format_f58(job))
        failures = self._lead.write_memos(
            {
                job: {"state": None, "why": None, **(text or {})}
                for job, text in memos.items()
            }
        )
        for job, text in memos.items():
            if job in failures:
                self._told.pop(job, None)
                continue
            dropped = jobs[job].memos_dropped
            before = self._told.get(job)
            self._told[job] = next_last_memo(before, decisions[job], text, now, dropped)

    def _forget(
        self,
        decisions: Mapping[JobId, Decision],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> None:
        """Drop jobs that are not pending any more, and memos that the lead dropped."""
        for known in (self._told, self._settled, self._later):
            for job in known.keys() - decisions.keys():
                del known[job]
        for job, told in list(self._told.items()):
            if told.memo is not None and told.dropped != jobs[job].memos_dropped:
                del self._told[job]
                self._settled.pop(job, None)
        if now >= self._look_at:
            self._look_at = now + _LOOK_AGAIN
            for job in [job for job, at in self._later.items() if now >= at]:
                self._settled.pop(job, None)
                del self._later[job]

    def _changed(
        self,
        decisions: Mapping[JobId, Decision],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> Iterator[tuple[JobId, Memo]]:
        made: dict[tuple[int, bool], Memo] = {}
        for job, decision in decisions.items():
            if self._settled.get(job) is decision:
                continue
            self._settled.pop(job, None)
            self._later.pop(job, None)
            told_from = memo_not_before(self._told.get(job), decision)
            if now < told_from:
                self._settle(job, decision, told_from)
                continue
            # Many jobs share a decision, so few memos are made.
            guest = self._identity.is_guest(jobs[job].userid)
            key = id(decision), guest
            if key not in made:
                made[key] = memo(decision, guest=guest)
            text = made[key]
            told_from = memo_due_at(self._told.get(job), decision, text)
            if now >= told_from:
                yield job, text
                continue
            self._settle(job, decision, told_from)

    def _settle(self, job: JobId, decision: Decision, told_from: float) -> None:
        """Look at a job's memo again at `told_from`, or once its decision changes."""
        self._settled[job] = decision
        if told_from != math.inf:
            self._later[job] = told_from
