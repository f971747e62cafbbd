# SPDX-License-Identifier: MIT
"""Tells jobs what became of them: a memo each, sent only when it says something new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from burst import log
from burst.core.memo import is_progress, memo
from burst.lead import Lead
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.reason import Verdict

# Progress alone is told to a job at most this often, in seconds: each memo is an event
# in its log.
_TELL_EVERY = 2.0

_Memo = dict[str, str] | None


class Memos:
    """What each pending job was told last. Use from one thread."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._told: dict[JobId, tuple[float, dict[str, str]]] = {}
        self._settled: dict[JobId, Verdict] = {}
        """Verdicts of which the memo is known to be there."""

    def send(self, verdicts: Mapping[JobId, Verdict], now: float) -> None:
        """Send the memos that changed; one that failed is sent again next time.

        Raises Unreadable.
        """
        for known in (self._told, self._settled):
            for job in known.keys() - verdicts.keys():
                del known[job]
        memos = dict(self._changed(verdicts, now))
        if not memos:
            return
        for job, text in memos.items():
            event = Event(now, "job", dict(text or {"state": "local"}))
            log.event(event, format_f58(job))
        failures = self._lead.tell(
            {
                job: {"state": None, "why": None, **(text or {})}
                for job, text in memos.items()
            }
        )
        for job, text in memos.items():
            if text is None or job in failures:
                self._told.pop(job, None)
            else:
                self._told[job] = now, text

    def _changed(
        self, verdicts: Mapping[JobId, Verdict], now: float
    ) -> Iterator[tuple[JobId, _Memo]]:
        made: dict[int, _Memo] = {}
        for job, verdict in verdicts.items():
            if self._settled.get(job) is verdict:
                continue
            self._settled.pop(job, None)
            # Many jobs share a verdict, so few memos are made.
            if id(verdict) not in made:
                made[id(verdict)] = memo(verdict)
            text = made[id(verdict)]
            told_at, told = self._told.get(job, (0.0, None))
            if text == told:
                self._settled[job] = verdict
            elif not is_progress(told, text) or now - told_at >= _TELL_EVERY:
                yield job, text
