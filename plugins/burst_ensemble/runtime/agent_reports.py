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
    ReportRefused,
    TakenReport,
    check_order,
    read_report,
)
from burst_ensemble.core.intents import Done
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import EnsembleRecords


class AgentReports:
    """Use from any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, TakenReport] = {}
        self.began = clock()
        """No agent can have reported before, in seconds since the epoch."""

    def take(
        self, about: str, body: bytes, ensembles: EnsembleRecords, settings: Settings
    ) -> AgentAnswer:
        """Take in a report about ENSEMBLE.MEMBER, and return what the agent is to do.

        Raises ReportRefused, and ConfigError for jobs of the file that none can have.
        """
        ensemble, _, name = about.partition(".")
        member = find_member(ensembles, ensemble, name)
        report = read_report(body, ensemble, name)
        with self._lock:
            now = self.clock()
            last = self._of_this_run(f"{ensemble}/{name}", member)
            check_order(report, last, member.record.instance, now)
            answer = member.answer(report)
            until = now + ensemble_settings(settings).agent
            self._last[f"{ensemble}/{name}"] = TakenReport(now, until, report)
            self._forget(ensembles)
        return answer

    def current(self) -> Mapping[str, TakenReport]:
        """Return the last report about each ENSEMBLE/MEMBER, however old."""
        with self._lock:
            return dict(self._last)

    def _of_this_run(self, key: str, member: AgentMember) -> TakenReport | None:
        """Return the last report, if the ensemble was not started again since."""
        last = self._last.get(key)
        if last is not None and last.at >= member.ensemble.record.started:
            return last
        return None

    def _forget(self, ensembles: EnsembleRecords) -> None:
        for key in list(self._last):
            if key.partition("/")[0] not in ensembles:
                del self._last[key]


def find_member(ensembles: EnsembleRecords, ensemble: str, name: str) -> AgentMember:
    """Return a member that has an agent. Raises ReportRefused for any other."""
    if ensemble not in ensembles:
        raise ReportRefused(
            404, f"there is no ensemble {ensemble}", "burst ensemble up FILE starts it"
        )
    one = ensembles[ensemble]
    spec = {member.name: member for member in one.start.spec.members}.get(name)
    if spec is None:
        raise ReportRefused(
            404,
            f"ensemble {ensemble} has no member {name}",
            f"it has {', '.join(one.record.members)}",
        )
    if not spec.has_agent:
        raise ReportRefused(
            409,
            f"{ensemble}/{name} is made by the daemon, and has no agent",
            'its file says mode = "external" for one that has',
        )
    return AgentMember(one, name)


class AgentMembers:
    """Use from one thread. Each report is good for one step."""

    def __init__(self, reports: AgentReports) -> None:
        self._reports = reports
        self._used: dict[str, TakenReport] = {}
        self._silent: set[str] = set()

    def read(
        self, member: AgentMember, settings: Settings, now: float
    ) -> MemberState | None:
        """Return a member by its new report; None where there is none."""
        started = member.ensemble.record.started
        key = f"{member.ensemble.record.name}/{member.name}"
        taken = self._reports.current().get(key)
        if taken is not None and taken.at < started:
            taken = None
        self._tell(key, taken, started, settings, now)
        if taken is None or now > taken.until or taken is self._used.get(key):
            return None
        self._used[key] = taken
        return member.read(taken.report, now)

    def submitted(self, member: AgentMember) -> Done:
        """Return what became of jobs, by the report of this step."""
        key = f"{member.ensemble.record.name}/{member.name}"
        return member.submitted(self._used[key].report)

    def _tell(
        self,
        key: str,
        taken: TakenReport | None,
        started: float,
        settings: Settings,
        now: float,
    ) -> None:
        """Log once that an agent is silent, and that it is no longer."""
        since = taken.at if taken else max(started, self._reports.began)
        until = taken.until if taken else since + ensemble_settings(settings).agent
        ensemble, _, member = key.partition("/")
        if now <= until:
            if key in self._silent:
                self._silent.discard(key)
                log.say("ensemble %s: the agent of %s reports again", ensemble, member)
            return
        if key not in self._silent:
            self._silent.add(key)
            log.say(
                "ensemble %s: the agent of %s is silent since %s: nothing is decided"
                " for it until it reports (ensemble.agent)",
                ensemble,
                member,
                moment(since),
                level=logging.WARNING,
            )
