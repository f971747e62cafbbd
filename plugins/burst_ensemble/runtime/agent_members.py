# SPDX-License-Identifier: MIT
"""Members with agents, for the thread that decides: what was reported since its last
step, and whose agents are silent.
"""

from __future__ import annotations

import logging

from burst import log
from burst.model.decision import moment
from burst.runtime.snapshot import Snapshot
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.core.agent_report import TakenReport
from burst_ensemble.core.intents import Answered, SubmitJobs
from burst_ensemble.core.read_members import MemberState
from burst_ensemble.runtime.agent_reports import AgentReports, find_member


class AgentMembers:
    """Use from one thread. Each report is good for one step."""

    def __init__(self, reports: AgentReports) -> None:
        self._reports = reports
        self._used: dict[str, TakenReport] = {}
        self._silent: set[str] = set()

    def read(
        self, ensemble: str, member: str, snapshot: Snapshot, now: float
    ) -> MemberState | None:
        """Return a member by its new report; None where there is none."""
        key = f"{ensemble}/{member}"
        found = find_member(snapshot.records, ensemble, member)
        taken = self._reports.current().get(key)
        if taken is not None and taken.at < found.record.started:
            taken = None
        self._tell(key, taken, found.record.started, snapshot, now)
        if taken is None or now > taken.until or taken is self._used.get(key):
            return None
        self._used[key] = taken
        return found.read(taken.report, now)

    def submit(self, ensemble: str, intent: SubmitJobs, snapshot: Snapshot) -> Answered:
        """Return what became of jobs, by the report of this step."""
        found = find_member(snapshot.records, ensemble, intent.member)
        report = self._used[f"{ensemble}/{intent.member}"].report
        return Answered(found.taken(report), found.refusal(report))

    def _tell(
        self,
        key: str,
        taken: TakenReport | None,
        started: float,
        snapshot: Snapshot,
        now: float,
    ) -> None:
        """Log once that an agent is silent, and that it is no longer."""
        since = taken.at if taken else max(started, self._reports.began)
        until = (
            taken.until if taken else since + ensemble_settings(snapshot.settings).agent
        )
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
