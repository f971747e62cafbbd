# SPDX-License-Identifier: MIT
"""The last report of each agent of an ensemble's members, in memory.

HTTP threads take reports in and answer them by what is on record; the thread of the
ensembles decides by them. After the daemon's start agents report again within
`checkSeconds`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from burst.core.records import Records
from burst.runtime.snapshot import Snapshot
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.core.agent_member import AgentMember
from burst_ensemble.core.agent_report import (
    AgentAnswer,
    ReportRefused,
    TakenReport,
    check_order,
    read_report,
)
from burst_ensemble.core.on_record import books_of, ensembles_of, starts_of
from burst_ensemble.core.stored import MemberBook


class AgentReports:
    """Use from any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, TakenReport] = {}
        self.began = clock()
        """No agent can have reported before, in seconds since the epoch."""

    def take(self, about: str, body: bytes, snapshot: Snapshot) -> AgentAnswer:
        """Take in a report about ENSEMBLE.MEMBER, and return what the agent is to do.

        Raises ReportRefused, and ConfigError for jobs of the file that none can have.
        """
        ensemble, _, name = about.partition(".")
        member = find_member(snapshot.records, ensemble, name)
        report = read_report(body, ensemble, name)
        with self._lock:
            now = self.clock()
            last = self._of_this_run(f"{ensemble}/{name}", member)
            check_order(report, last, member.book.instance, now)
            answer = member.answer(report)
            until = now + ensemble_settings(snapshot.settings).agent
            self._last[f"{ensemble}/{name}"] = TakenReport(now, until, report)
            self._forget(snapshot.records)
        return answer

    def current(self) -> Mapping[str, TakenReport]:
        """Return the last report about each ENSEMBLE/MEMBER, however old."""
        with self._lock:
            return dict(self._last)

    def _of_this_run(self, key: str, member: AgentMember) -> TakenReport | None:
        """Return the last report, if the ensemble was not started again since."""
        last = self._last.get(key)
        if last is not None and last.at >= member.record.started:
            return last
        return None

    def _forget(self, records: Records) -> None:
        for key in list(self._last):
            if key.partition("/")[0] not in ensembles_of(records):
                del self._last[key]


def find_member(records: Records, ensemble: str, name: str) -> AgentMember:
    """Return a member that has an agent. Raises ReportRefused for any other."""
    state, start = (
        ensembles_of(records).get(ensemble),
        starts_of(records).get(ensemble),
    )
    if state is None or start is None:
        raise ReportRefused(
            404, f"there is no ensemble {ensemble}", "burst ensemble up FILE starts it"
        )
    spec = {member.name: member for member in start.spec.members}.get(name)
    if spec is None or name not in state.record.members:
        raise ReportRefused(
            404,
            f"ensemble {ensemble} has no member {name}",
            f"it has {', '.join(state.record.members)}",
        )
    if not spec.has_agent:
        raise ReportRefused(
            409,
            f"{ensemble}/{name} is made by the daemon, and has no agent",
            'its file says mode = "external" for one that has',
        )
    book = books_of(records).get(f"{ensemble}/{name}", MemberBook())
    return AgentMember(start=start, record=state.record, book=book, name=name)
