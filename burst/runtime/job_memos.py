# SPDX-License-Identifier: MIT
"""Writes a memo to each job that says why it waits; only where it changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from burst import log
from burst.core.job_memo import LastMemo, Memo, memo, memo_due_at, next_last_memo
from burst.lead import Lead
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobView

# Seconds after which jobs whose memo is to change later are looked at again.
_LOOK_AGAIN = 2.0


class JobMemos:
    """Remembers the last memo of each pending job. Use from one thread."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._told: dict[JobId, LastMemo] = {}
        self._settled: dict[JobId, Decision] = {}
        """Decisions whose memo is written, or not to be written yet."""
        self._later: set[JobId] = set()
        """Jobs whose memo is not to be written yet."""
        self._look_at = 0.0

    def send(
        self,
        verdicts: Mapping[JobId, Decision],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> None:
        """Write the memos that changed. Raises Unreadable.

        One that failed, or that the lead has dropped since, is written again.
        """
        self._forget(verdicts, jobs, now)
        memos = dict(self._changed(verdicts, now))
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
            self._told[job] = next_last_memo(before, verdicts[job], text, now, dropped)

    def _forget(
        self,
        verdicts: Mapping[JobId, Decision],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> None:
        """Drop jobs that are not pending any more, and memos that the lead dropped."""
        for known in (self._told, self._settled):
            for job in known.keys() - verdicts.keys():
                del known[job]
        for job, told in list(self._told.items()):
            if told.memo is not None and told.dropped != jobs[job].memos_dropped:
                del self._told[job]
                self._settled.pop(job, None)
        if now >= self._look_at:
            self._look_at = now + _LOOK_AGAIN
            for job in self._later:
                self._settled.pop(job, None)
            self._later.clear()

    def _changed(
        self, verdicts: Mapping[JobId, Decision], now: float
    ) -> Iterator[tuple[JobId, Memo]]:
        made: dict[int, Memo] = {}
        for job, verdict in verdicts.items():
            if self._settled.get(job) is verdict:
                continue
            self._settled.pop(job, None)
            # Many jobs share a verdict, so few memos are made.
            if id(verdict) not in made:
                made[id(verdict)] = memo(verdict)
            text = made[id(verdict)]
            told_from = memo_due_at(self._told.get(job), verdict, text)
            if now >= told_from:
                yield job, text
                continue
            self._settled[job] = verdict
            if told_from != math.inf:
                self._later.add(job)
