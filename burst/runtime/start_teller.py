# SPDX-License-Identifier: MIT
"""Tells users in `flux jobs` when their pending jobs are expected to start.

In intake mode `scheduler` sched-burst annotates all pending jobs with the start, as
`sched.t_estimate`. In the other modes the start is in the memo of each burstable job,
as `user.burst.start`. Each memo is an event in the job's eventlog, for ever, so it is
written again only if the start has moved a lot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from burst import log
from burst.config import Settings
from burst.core.plan.estimate import StartEstimate
from burst.errors import Denied, LeadError, LeadGone
from burst.lead import Lead, StartHints
from burst.model.decision import moment
from burst.model.jobid import JobId
from burst.model.lead import JobState, LeadView

# Seconds until all starts are sent to the scheduler again, as its module may have been
# loaded again; and the least seconds between two sends, if starts have moved.
_AGAIN_S = 60.0
_PAUSE_S = 5.0
# A start has moved if it differs by more than so many seconds, and by more than this
# share of the time until it.
_NEAR_S = 30.0
_SHARE = 0.1
# The same for memos; and the least seconds between two memos of one job.
_MEMO_NEAR_S = 600.0
_MEMO_SHARE = 0.25
_MEMO_PAUSE_S = 600.0
# The most memos that are written in one tick, for the jobs that start first: each takes
# the lead about 0.3 ms.
_MEMOS = 50
# Seconds after which a start that is no longer known is taken out of the memo.
_LOST_S = 60.0
# Seconds between two comparisons of memos with the same starts. To compare takes a
# microsecond for each job, too long for every tick.
_LOOK_S = 5.0


class _Told(msgspec.Struct):
    """The start that is in a job's memo."""

    expected: float
    at: float
    dropped: int
    """How often the lead had dropped the job's memos by then."""
    known: float
    """When a start was last known."""


class StartTeller:
    """Remembers what it told last. Use from one thread."""

    def __init__(self, lead: Lead, settings: Settings) -> None:
        self._lead = lead
        self._settings = settings
        self._sent: tuple[float, Mapping[JobId, float]] = -math.inf, {}
        self._told: dict[JobId, _Told] = {}
        self._compared: tuple[float, Mapping[JobId, StartEstimate]] = -math.inf, {}
        """When starts were last compared with what was told, and these starts."""
        self._due: list[tuple[float, JobId]] = []
        """Starts that differed, and are not in a memo yet."""

    def change(self, settings: Settings) -> None:
        """Use other settings from now on."""
        self._settings = settings

    def tell(
        self, starts: Mapping[JobId, StartEstimate], view: LeadView, now: float
    ) -> None:
        """Tell what changed. A call that fails is repeated. Raises LeadGone."""
        try:
            if self._settings.intake.mode == "scheduler":
                self._send(starts, now)
            else:
                self._write_memos(starts, view, now)
        except LeadGone:
            raise
        except (Denied, LeadError) as error:
            what = "jobs are not given their expected start: %s"
            log.warn(what, error)

    def _send(self, starts: Mapping[JobId, StartEstimate], now: float) -> None:
        if not isinstance(self._lead, StartHints):
            return
        sent_at, sent = self._sent
        if starts is self._compared[1] and now - sent_at < _AGAIN_S:
            return
        wanted = {j: s.expected for j, s in starts.items() if s.expected < math.inf}
        if now - sent_at < _PAUSE_S or not (wanted or sent):
            return
        self._compared = now, starts
        same = wanted.keys() == sent.keys() and not any(
            _moved(sent[job], at, now, _NEAR_S, _SHARE) for job, at in wanted.items()
        )
        if same and now - sent_at < _AGAIN_S:
            return
        self._sent = now, wanted
        self._lead.send_starts(wanted)

    def _write_memos(
        self, starts: Mapping[JobId, StartEstimate], view: LeadView, now: float
    ) -> None:
        at, compared = self._compared
        if starts is not compared or now - at >= _LOOK_S:
            self._compared = now, starts
            self._due = self._find_due(starts, view, now)
        due, self._due = self._due[:_MEMOS], self._due[_MEMOS:]
        memos: dict[JobId, Mapping[str, str | None]] = {}
        for expected, number in due:
            job = view.jobs.get(number)
            if job is None or job.state is not JobState.SCHED:
                continue
            if expected < math.inf:
                self._told[number] = _Told(expected, now, job.memos_dropped, now)
                memos[number] = {"start": moment(expected)}
            else:
                self._told.pop(number, None)
                memos[number] = {"start": None}
        if memos:
            for job_id in self._lead.write_memos(memos):
                self._told.pop(job_id, None)

    def _find_due(
        self, starts: Mapping[JobId, StartEstimate], view: LeadView, now: float
    ) -> list[tuple[float, JobId]]:
        """Return the starts to be written into memos; math.inf removes a job's."""
        for gone in self._told.keys() - view.jobs.keys():
            del self._told[gone]
        due: list[tuple[float, JobId]] = []
        for number, job in view.jobs.items():
            if job.state is not JobState.SCHED:
                self._told.pop(number, None)
                continue
            told = self._told.get(number)
            if told is not None and told.dropped != job.memos_dropped:
                told = None
                del self._told[number]
            start = starts.get(number)
            expected = start.expected if start else math.inf
            if _memo_due(told, expected, now):
                due.append((expected, number))
        due.sort()
        return due


def _memo_due(told: _Told | None, expected: float, now: float) -> bool:
    """Tell whether a memo is to be written; notes that a start is known."""
    if told is None:
        return expected < math.inf
    if math.isinf(expected):
        return now - told.known >= _LOST_S
    told.known = now
    moved = _moved(told.expected, expected, now, _MEMO_NEAR_S, _MEMO_SHARE)
    return moved and now - told.at >= _MEMO_PAUSE_S


def _moved(before: float, after: float, now: float, near: float, share: float) -> bool:
    return abs(after - before) > max(near, share * (after - now))
