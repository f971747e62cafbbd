# SPDX-License-Identifier: MIT
"""The methods of the service `burst`, which the command line calls.

Guests may read what concerns their own jobs, release those, and, where `[guests]`
allows it, request bursts for themselves; everything else is for the instance owner
only. Reads are answered from the last tick; only the first tick is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

import msgspec

from burst import __version__
from burst.core import report
from burst.core.guest_requests import (
    refuse_call,
)
from burst.core.guest_view import status_for
from burst.core.jobs.confinement import confines_jobs
from burst.core.tagged_nodes import tagged_nodes
from burst.errors import BurstError
from burst.lead import ServiceRequest
from burst.model.confinement import LENT
from burst.request_threads import FAST_METHODS
from burst.runtime import service_answers
from burst.runtime.call_limits import CallLimits
from burst.runtime.engine import Engine
from burst.runtime.policy_check import check_policy, with_rules
from burst.runtime.service_answers import Row, burst_totals, for_guests, guest_view
from burst.runtime.service_changes import TICK_S, ServiceChanges
from burst.runtime.service_requests import (
    MAX_NAME,
    CostRequest,
    Method,
    NamedRequest,
    PolicyRequest,
    ReportRequest,
    StatusRequest,
    owner_only,
    read_request,
)
from burst.runtime.snapshot import Snapshot


class ServiceApi:
    """Answers requests, on several threads."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        wake: Callable[[], None],
        reload: Callable[[], Future[Row]],
        served_by: Row,
        deadline: float = TICK_S,
    ) -> None:
        """`served_by` describes this process, as `describe_process` returns it."""
        self._engine, self._deadline = engine, deadline
        self._served_by = served_by
        self._limits = CallLimits()
        self._methods: dict[str, Method] = {
            "ping": self._ping,
            "intake": self._intake,
            "tagged": owner_only(self._tagged),
            "status": self._status,
            "explain": self._explain,
            "cost": self._cost,
            "output": self._output,
            "report": self._report,
            "plan": owner_only(self._plan),
            "policy": owner_only(self._policy),
            **ServiceChanges(engine, wake, reload, deadline).methods,
        }

    def add_owners(self, methods: Mapping[str, Method]) -> None:
        """Add methods of a package, for the instance owner only."""
        self._methods |= {name: owner_only(each) for name, each in methods.items()}

    def admit(self, method: str, userid: int, owner: bool) -> None:
        """Count a call of a guest. Raises CallsTooOften, Denied if it is not taken."""
        if not owner:
            snapshot = self._engine().snapshot
            refuse_call(userid, snapshot.world, snapshot.settings.guests)
        self._limits.admit(method, userid, owner)

    def holder(self) -> Row:
        """Return what a second daemon is told of this one."""
        return self._served_by

    def answer(self, request: ServiceRequest) -> Row:
        """Answer one request. Raises BurstError, Denied."""
        method = self._methods.get(request.method)
        if method is None:
            raise BurstError(
                f"the daemon knows no method {request.method[:MAX_NAME]}",
                f"it is version {__version__}; the command may be newer",
            )
        if request.method not in FAST_METHODS:
            self._await_tick()
        snapshot = self._engine().snapshot
        if request.owner:
            return method(request, snapshot)
        try:
            answer = method(request, for_guests(snapshot))
        except BurstError as error:
            # By the newest snapshot: the error may tell what the request changed.
            view = guest_view(self._engine().snapshot, request.userid)
            error.what = view.hide_in(error.what)
            error.advice = view.hide_in(error.advice)
            raise
        if method == self._output:
            return answer  # what their own job printed
        hidden: Row = guest_view(self._engine().snapshot, request.userid).hide(answer)
        return hidden

    def _await_tick(self) -> None:
        """Wait for the first tick: before it, nothing is known of the lead.

        Raises BurstError if there is none in time.
        """
        if not self._engine().await_tick(self._deadline):
            raise BurstError("the daemon is starting", "try again")

    def _ping(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return which process serves, its settings file, and what is wrong with it."""
        if not request.owner:
            return {**self.holder(), "config": ""}
        world = snapshot.world
        halt, views = world.halt, world.providers
        troubles = {name: view.trouble for name, view in views.items() if view.trouble}
        return {
            **self.holder(),
            **({"halt": halt.text(), "halt_advice": halt.advice} if halt else {}),
            **({"troubles": troubles} if troubles else {}),
        }

    def _intake(self, _: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return how jobs come in, for `flux submit --burst`."""
        settings = snapshot.settings
        intake, identity = settings.intake, snapshot.world.identity
        return {
            "mode": intake.mode,
            "property": LENT,
            "queue": intake.queue,
            # Whether a burst job may have --requires.
            "requires": intake.mode != "queue" or confines_jobs(identity, settings),
            "providers": list(snapshot.world.providers),
            "directories": {
                name: list(paths) for name, paths in self._engine().directories.items()
            },
        }

    def _status(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        row = service_answers.status(snapshot, self.holder())
        most = read_request(request, StatusRequest).jobs
        if most:
            userid = None if request.owner else request.userid
            row["jobs"] = service_answers.waiting_jobs(snapshot, most, userid)
        if request.owner:
            return row
        view, decided = guest_view(snapshot, request.userid), snapshot.decisions
        row = status_for(view, row, decided.keys())
        row["totals"] = burst_totals(row["bursts"], snapshot)
        return row

    def _tagged(self, _: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return a `TaggedNodes`, for programs that request nodes with tags."""
        row: Row = msgspec.to_builtins(
            tagged_nodes(
                snapshot.records, snapshot.world, snapshot.settings, snapshot.now
            )
        )
        return row

    def _explain(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        return service_answers.explain(
            snapshot,
            read_request(request, NamedRequest).id,
            None if request.owner else request.userid,
            self._engine().active_job,
        )

    def _cost(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        return service_answers.cost_of(
            snapshot,
            read_request(request, CostRequest),
            None if request.owner else request.userid,
        )

    def _report(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        return service_answers.report_of(
            snapshot,
            read_request(request, ReportRequest),
            None if request.owner else request.userid,
        )

    def _plan(self, _: ServiceRequest, snapshot: Snapshot) -> Row:
        return service_answers.plan(snapshot)

    def _policy(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return what the daemon's rules would decide, or those of another file."""
        asked = read_request(request, PolicyRequest)
        settings = snapshot.settings
        if asked.tables is not None:
            settings = with_rules(settings, asked.tables, asked.where)
        return check_policy(snapshot, settings)

    def _output(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return the output of what ran in an isolated burst."""
        name = read_request(request, NamedRequest).id
        burst = report.find_isolated(snapshot.records, name)
        theirs = burst is not None and request.userid in burst.lease.userids
        if burst is None or not (request.owner or theirs):
            raise BurstError(
                f"{name}: no isolated burst has that id or a job with that id",
                "burst status -a lists those that are known",
            )
        text = snapshot.records.outputs.get(burst.id)
        if text is None:
            raise BurstError(
                f"{burst.id} is in state {burst.state.value} and left no output",
                f"burst explain {burst.id} says why it ended without one"
                if burst.exception
                else "output is kept once what runs there has ended",
            )
        return {"burst": burst.id, "exit_status": burst.exit_status, "text": text}
