# SPDX-License-Identifier: MIT
"""Tells jobs what became of them: a memo each, sent only when it says something new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from burst import log
from burst.core.memo import is_progress, memo
from burst.lead import Lead
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobView
from burst.model.reason import Verdict

# Progress alone is told to a job at most this often, in seconds: each memo is an event
# in its log.
_TELL_EVERY = 2.0
# Where only the provider's words on a burst that comes are others, at most this often.
_WORDS_EVERY = 10.0

_Memo = dict[str, str] | None


class _Told(NamedTuple):
    at: float
    text: dict[str, str]
    dropped: int
    """How often the lead had dropped the job's memos before."""


class Memos:
    """What each pending job was told last. Use from one thread."""

    def __init__(self, lead: Lead) -> None:
        self._lead = lead
        self._told: dict[JobId, _Told] = {}
        self._settled: dict[JobId, Verdict] = {}
        """Verdicts of which the memo is known to be there."""

    def send(
        self,
        verdicts: Mapping[JobId, Verdict],
        jobs: Mapping[JobId, JobView],
        now: float,
    ) -> None:
        """Send the memos that changed; one that failed is sent again next time.

        One that the lead has dropped since is sent again, too. Raises Unreadable.
        """
        for known in (self._told, self._settled):
            for job in known.keys() - verdicts.keys():
                del known[job]
        for job, told in list(self._told.items()):
            if told.dropped != jobs[job].memos_dropped:
                del self._told[job]
                self._settled.pop(job, None)
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
                self._told[job] = _Told(now, text, jobs[job].memos_dropped)

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
            told = self._told.get(job)
            if text == (told.text if told else None):
                self._settled[job] = verdict
            elif (
                told is None
                or not is_progress(told.text, text)
                or now - told.at >= _pause(told.text, text)
            ):
                yield job, text


def _pause(before: dict[str, str], after: _Memo) -> float:
    """Return how long after a memo the next may follow that is progress, in seconds."""
    same = after is not None and before["state"] == after["state"]
    return _WORDS_EVERY if same else _TELL_EVERY
