# SPDX-License-Identifier: MIT
"""The last report of each agent of an ensemble's members, in memory.

HTTP threads take reports in and answer them by what is on record; the thread of the
ensembles decides by them: what was reported since its last step, and whose agents are
silent. After the daemon's start agents report again within `checkSeconds`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from burst import log
from burst.config import Settings
from burst.model.decision import moment
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.core.agent_member import AgentMember
from burst_ensemble.core.agent_report import (
    AgentAnswer,
    RequestRefused,
    TakenReport,
    check_order,
    read_report,
)
from burst_ensemble.core.intents import Done
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import EnsembleRecords


class AgentReports:
    """`take` and `current` are for any thread, `read` and `submitted` for one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = threading.RLock()
        self._last: dict[str, TakenReport] = {}
        """By ENSEMBLE/MEMBER."""
        self._began = clock()
        """No agent can have reported before, in seconds since the epoch."""
        self._used: dict[str, TakenReport] = {}
        """Each report is good for one step."""
        self._silent: set[str] = set()

    def take(
        self, about: str, body: bytes, ensembles: EnsembleRecords, settings: Settings
    ) -> AgentAnswer:
        """Take in a report about ENSEMBLE.MEMBER, and return what the agent is to do.

        Raises RequestRefused.
        """
        ensemble, _, name = about.partition(".")
        member = find_member(ensembles, ensemble, name)
        report = read_report(body, ensemble, name)
        with self._lock:
            now = self.clock()
            last = self.current(ensembles).get(member.key)
            check_order(report, last, member.record.instance, now)
            answer = member.answer(report)
            until = now + ensemble_settings(settings).agent
            self._last[member.key] = TakenReport(now, until, report)
        return answer

    def current(self, ensembles: EnsembleRecords) -> Mapping[str, TakenReport]:
        """Return the last report about each ENSEMBLE/MEMBER, however old; those of
        ensembles that were forgotten or started again since are dropped.
        """
        with self._lock:
            for key, taken in list(self._last.items()):
                one = ensembles.get(key.partition("/")[0])
                if one is None or taken.at < one.record.started:
                    del self._last[key]
            return dict(self._last)

    def read(
        self,
        member: AgentMember,
        taken: TakenReport | None,
        settings: Settings,
        now: float,
    ) -> MemberState | None:
        """Return a member by its last report; None where it was used already."""
        self._tell(member, taken, settings, now)
        if taken is None or now > taken.until or taken is self._used.get(member.key):
            return None
        self._used[member.key] = taken
        return member.read(taken.report, now)

    def submitted(self, member: AgentMember) -> Done:
        """Return what became of jobs, by the report of this step."""
        return member.submitted(self._used[member.key].report)

    def _tell(
        self,
        member: AgentMember,
        taken: TakenReport | None,
        settings: Settings,
        now: float,
    ) -> None:
        """Log once that an agent is silent, and that it is no longer."""
        started = member.ensemble.record.started
        since = taken.at if taken else max(started, self._began)
        until = taken.until if taken else since + ensemble_settings(settings).agent
        is_silent, was_silent = now > until, member.key in self._silent
        about = member.ensemble.record.name, member.name
        if was_silent and not is_silent:
            self._silent.discard(member.key)
            log.say("ensemble %s: the agent of %s reports again", *about)
        if is_silent and not was_silent:
            self._silent.add(member.key)
            log.say(
                "ensemble %s: the agent of %s is silent since %s: nothing is decided"
                " for it until it reports (ensemble.agent)",
                *about,
                moment(since),
                level=logging.WARNING,
            )


def find_member(ensembles: EnsembleRecords, ensemble: str, name: str) -> AgentMember:
    """Return a member that has an agent. Raises RequestRefused for any other."""
    if ensemble not in ensembles:
        raise RequestRefused(
            404, f"there is no ensemble {ensemble}", "burst ensemble up FILE starts it"
        )
    one = ensembles[ensemble]
    if name not in one.record.members:
        raise RequestRefused(
            404,
            f"ensemble {ensemble} has no member {name}",
            f"it has {', '.join(one.record.members)}",
        )
    if not one.start.spec.member(name).has_agent:
        raise RequestRefused(
            409,
            f"{ensemble}/{name} is made by the daemon, and has no agent",
            'its file says mode = "external" for one that has',
        )
    return AgentMember(one, name)
