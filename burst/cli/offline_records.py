# SPDX-License-Identifier: MIT
"""Answers from the records that a daemon has left, if none serves the lead now.

The modules that make them take longer to import than a daemon takes to answer, so
`burst.cli.daemon_call` imports this module only if there is no daemon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from burst.cli.target import Target
from burst.decode import from_plain
from burst.errors import START_A_DAEMON, BurstError, Denied, NoDaemon
from burst.lead import Lead
from burst.model.lead import PENDING
from burst.model.next_step import Actor
from burst.runtime import service_answers
from burst.runtime.offline import read_records_snapshot
from burst.runtime.service_requests import CostRequest, ReportRequest
from burst.runtime.snapshot import Snapshot

Asked = Mapping[str, Any]

_PENDING = {state.value for state in PENDING}


def _status(snapshot: Snapshot, asked: Asked) -> dict[str, Any]:
    found = service_answers.status(snapshot, None)
    if "jobs" in asked:
        found["jobs"] = service_answers.waiting_jobs(snapshot, asked["jobs"])
    return found


def _cost(snapshot: Snapshot, asked: Asked) -> dict[str, Any]:
    return service_answers.cost_of(snapshot, from_plain(asked, CostRequest))


def _report(snapshot: Snapshot, asked: Asked) -> dict[str, Any]:
    return service_answers.report_of(snapshot, from_plain(asked, ReportRequest))


def _explain(snapshot: Snapshot, asked: Asked) -> dict[str, Any]:
    try:
        found = service_answers.explain(snapshot, asked["id"])
    except BurstError:
        return {}
    # Nothing has been decided about a job that waits: a daemon does that.
    undecided = found["state"] in _PENDING and not found["verdict"]
    if undecided or found["next"].startswith(Actor.DAEMON.value):
        found["next"] = f"somebody starts the daemon: {START_A_DAEMON}"
    return found


_ANSWERS: Mapping[str, Callable[[Snapshot, Asked], dict[str, Any]]] = {
    "status": _status,
    "cost": _cost,
    "report": _report,
    "explain": _explain,
}


def answer_from_records(
    lead: Lead, target: Target, method: str, asked: Asked, error: NoDaemon
) -> dict[str, Any]:
    """Return what a daemon would answer; empty if `explain` knows nothing of the id.

    Raises `error` for a guest, who may not read records, and other BurstErrors.
    """
    try:
        snapshot = read_records_snapshot(lead, target.settings())
    except Denied:
        raise error from None
    return _ANSWERS[method](snapshot, asked)
