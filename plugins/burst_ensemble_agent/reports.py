# SPDX-License-Identifier: MIT
"""Keep the last report of each agent of an ensemble's members, in memory.

HTTP threads take reports and answer them from the record. The thread of the ensembles
decides by the reports since its last step, and finds agents that are silent. After the
daemon's start agents report again within `checkSeconds`.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from burst_ensemble.core.intents import Done
from burst_ensemble.core.job_rows import MemberState
from burst_ensemble.core.record import EnsembleRecords, Member
from burst_ensemble.core.report import ShownMember
from burst_ensemble.http.routes import RequestRefused
from burst_ensemble.runtime.client import DaemonClient

from burst import log
from burst.model.decision import moment
from burst.model.fsd import format_fsd
from burst_ensemble_agent.report import (
    AgentAnswer,
    AgentMember,
    TakenReport,
    check_order,
    read_report,
)


class AgentReports:
    """The `ExternalMembers` of ensembles. `take` and `show` work in any thread."""

    def __init__(self, daemon: DaemonClient) -> None:
        self._daemon = daemon
        self._lock = threading.Lock()
        self.last: dict[str, TakenReport] = {}
        """The last reports by ENSEMBLE/MEMBER. A new report drops those of ensembles
        that are no longer on record."""
        self._began = daemon.clock()
        """When this object began to take reports, in seconds since the epoch."""
        self._used: dict[str, TakenReport] = {}
        """The last report that a step used, by member: each is used for one step."""
        self._silent: set[str] = set()
        self._refused: dict[str, str] = {}
        """Why the last report that could not be read was refused, by member, until one
        is accepted."""

    def take(self, about: str, body: bytes, ensembles: EnsembleRecords) -> AgentAnswer:
        """Take a report about ENSEMBLE.MEMBER, and return what the agent has to do.

        Raises RequestRefused.
        """
        ensemble, _, name = about.partition(".")
        member = find_member(ensembles, ensemble, name)
        try:
            report = read_report(body)
        except RequestRefused as error:
            with self._lock:
                is_new = self._refused.get(member.key) != error.what
                self._refused[member.key] = error.what
            if is_new:
                # Its agent is silent from now on; this is the reason.
                text = "ensemble %s: a report about %s is refused: %s"
                log.say(text, ensemble, name, error, level=logging.WARNING)
            raise
        with self._lock:
            now = self._daemon.clock()
            check_order(report, self._taken(member), member.record.instance, now)
            answer = member.answer(report)
            kept = {
                key: taken
                for key, taken in self.last.items()
                if key.partition("/")[0] in ensembles
            }
            taken = TakenReport(now, now + _limit(member), report)
            self.last = {**kept, member.key: taken}
            self._refused.pop(member.key, None)
        return answer

    def read(self, member: Member) -> MemberState | None:
        """Return a member by its last report; None if the report was used already, or
        if the agent is silent, which is logged once.
        """
        now, taken = self._daemon.clock(), self._taken(member)
        self._tell(member, taken, now)
        if taken is None or now > taken.until or taken is self._used.get(member.key):
            return None
        self._used[member.key] = taken
        return _as_agents(member).read(taken.report, now)

    def submitted(self, member: Member) -> Done:
        """Return what the report of this step says about unconfirmed jobs."""
        return _as_agents(member).submitted(self._used[member.key].report)

    def show(self, member: Member) -> ShownMember:
        """Return the state of a member for people: `agent` is the time of the last
        report; `silent` tells whether the agent is silent, so that nothing is decided.
        An agent whose reports cannot be read is silent, too.
        """
        now, taken = self._daemon.clock(), self._taken(member)
        facts: dict[str, Any] = {"instance": member.record.instance, "agent": None}
        facts["silent"] = taken is None or now > taken.until
        what = self._refused.get(member.key, "")
        refused = what and f"the last report of its agent is refused: {what}"
        if taken is None:
            why = refused or "its agent has not reported since the daemon's start"
            return ShownMember(None, {**facts, "waits_for": why})
        facts |= {"instance": taken.report.instance, "agent": taken.at}
        if now > taken.until:
            why = refused or f"its agent has been silent since {moment(taken.at)}"
            return ShownMember(None, {**facts, "waits_for": why})
        if member.record.ended is None:
            facts |= dict.fromkeys(("nodes", "min", "max"), taken.report.nodes.up)
        state = _as_agents(member).read(taken.report, now)
        return ShownMember(state, facts)

    def _taken(self, member: Member) -> TakenReport | None:
        """Return the last report about a member, however old, unless the ensemble was
        started again since.
        """
        taken = self.last.get(member.key)
        started = member.ensemble.record.started
        return None if taken is None or taken.at < started else taken

    def _tell(self, member: Member, taken: TakenReport | None, now: float) -> None:
        """Log once that an agent is silent, and once that it reports again."""
        started = member.ensemble.record.started
        since = taken.at if taken else max(started, self._began)
        until = taken.until if taken else since + _limit(member)
        is_silent, was_silent = now > until, member.key in self._silent
        about = member.ensemble.record.name, member.name
        if was_silent and not is_silent:
            self._silent.discard(member.key)
            log.say("ensemble %s: the agent of %s reports again", *about)
        if is_silent and not was_silent:
            self._silent.add(member.key)
            log.say(
                "ensemble %s: the agent of %s has been silent since %s, for more than"
                " %s: nothing is decided for it until it reports",
                *about,
                moment(since),
                format_fsd(_limit(member)),
                level=logging.WARNING,
            )


def _limit(member: Member) -> float:
    """Return how long the member's agent may be silent, in seconds.

    An agent reports every `checkSeconds`.
    """
    return max(6 * member.ensemble.start.spec.check, 60.0)


def _as_agents(member: Member) -> AgentMember:
    return AgentMember(member.ensemble, member.name)


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
    if not one.start.spec.member(name).is_external:
        raise RequestRefused(
            409,
            f"{ensemble}/{name} is made by the daemon, and has no agent",
            'set mode = "external" in the file for a member that has one',
        )
    return AgentMember(one, name)
