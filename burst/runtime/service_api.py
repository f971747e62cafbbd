# SPDX-License-Identifier: MIT
"""The methods of the service `burst`, which the command line calls.

Guests may read what concerns their own jobs, release those, and, where `[guests]`
allows it, request bursts for themselves; everything else is the instance owner's.
Answers to reads come from the last tick, without waiting for one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError

import msgspec

from burst import __version__
from burst.config import Settings
from burst.core import burst_requests, commands, orphans, report
from burst.core.burst_requests import MoreNodes, more_nodes, request_for_job
from burst.core.commands import TakeDown
from burst.core.guest_requests import (
    GuestLimits,
    refuse_call,
    request_for_guest,
    take_down_guests,
)
from burst.core.guest_view import status_for
from burst.core.records import Records
from burst.core.resize_request import WantedSize, resize_burst, tag_of
from burst.core.select.confinement import confines_jobs
from burst.core.standing import describe_renewal
from burst.core.tagged_jobs import IsolatedJobs, end_tag, jobs_without_bursts
from burst.core.tagged_nodes import tagged_nodes
from burst.core.tick import TickResult
from burst.core.world import World
from burst.errors import BurstError, Denied, Late, LeadError
from burst.lead import ServiceRequest
from burst.model.burst import BurstId, Tag
from burst.model.confinement import LENT
from burst.model.jobid import format_f58
from burst.runtime import service_answers
from burst.runtime.call_limits import CallLimits
from burst.runtime.engine import Engine
from burst.runtime.engine_commands import EngineCommand
from burst.runtime.engine_config import RELOAD_S
from burst.runtime.policy_check import check_policy, with_rules
from burst.runtime.service_answers import Row, burst_totals, for_guests, guest_view
from burst.runtime.service_requests import (
    MAX_NAME,
    BurstRequest,
    CostRequest,
    IsolateRequest,
    NamedRequest,
    PolicyRequest,
    ReportRequest,
    SizeRequest,
    StatusRequest,
    demand_of,
    parse_job,
    read_request,
)
from burst.runtime.snapshot import Snapshot

# How long a command may wait for the tick that carries it out, in seconds.
_TICK_DEADLINE = 30.0


class ServiceApi:
    """Answers requests, on several threads."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        wake: Callable[[], None],
        reload: Callable[[], Future[Row]],
        served_by: Row,
        deadline: float = _TICK_DEADLINE,
    ) -> None:
        """`served_by` describes this process, as `describe_process` returns it."""
        self._deadline = deadline
        self._engine = engine
        self._wake = wake
        self._reload = reload
        self._served_by = served_by
        self._limits = CallLimits()
        self._methods: dict[str, Callable[[ServiceRequest, Snapshot], Row]] = {
            "ping": self._ping,
            "intake": self._intake,
            "tagged": self._owner_only(self._tagged),
            "status": self._status,
            "explain": self._explain,
            "cost": self._cost,
            "output": self._output,
            "report": self._report,
            "release": self._release,
            "request-job": self._request_job,
            "plan": self._owner_only(self._plan),
            "policy": self._owner_only(self._policy),
            "request": self._request,
            "isolate": self._owner_only(self._isolate),
            "down": self._down,
            "resize": self._owner_only(self._resize),
            "gc": self._owner_only(self._gc),
            "enable": self._owner_only(self._enable),
            "reload": self._owner_only(self._do_reload),
        }

    def add_owners(
        self, methods: Mapping[str, Callable[[ServiceRequest, Snapshot], Row]]
    ) -> None:
        """Add methods of a package, for the instance owner only."""
        self._methods |= {
            name: self._owner_only(method) for name, method in methods.items()
        }

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
        snapshot = self._engine().snapshot
        if request.owner:
            return method(request, snapshot)
        try:
            answer = method(request, for_guests(snapshot))
        except BurstError as error:
            # As of now: what the request changed may be told in the error, too.
            view = guest_view(self._engine().snapshot, request.userid)
            error.what = view.hide_in(error.what)
            error.advice = view.hide_in(error.advice)
            raise
        if method == self._output:
            return answer  # what their own job printed
        hidden: Row = guest_view(self._engine().snapshot, request.userid).hide(answer)
        return hidden

    def _owner_only(
        self, method: Callable[[ServiceRequest, Snapshot], Row]
    ) -> Callable[[ServiceRequest, Snapshot], Row]:
        def guarded(request: ServiceRequest, snapshot: Snapshot) -> Row:
            if not request.owner:
                raise Denied(f"{request.method}: only the instance owner may do that")
            return method(request, snapshot)

        return guarded

    def _ping(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return which process serves, its settings file, and what is wrong with it."""
        if not request.owner:
            return {**self.holder(), "config": ""}
        trouble = snapshot.world.store_trouble
        return {
            **self.holder(),
            **({"store_trouble": trouble.text()} if trouble else {}),
        }

    def _intake(self, _: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return how jobs come in; `flux submit --burst` asks that."""
        settings = snapshot.settings
        intake, identity = settings.intake, snapshot.world.identity
        return {
            "mode": intake.mode,
            "attribute": intake.attribute,
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
        row = status_for(guest_view(snapshot, request.userid), row)
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
        """Return what the rules decide, or those of another file in their stead."""
        asked = read_request(request, PolicyRequest)
        settings = snapshot.settings
        if asked.tables is not None:
            settings = with_rules(settings, asked.tables, asked.where)
        return check_policy(snapshot, settings)

    def _request(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, BurstRequest)
        if asked.provider:
            _check_provider(asked.provider, snapshot)
        if not request.owner:
            return self._request_for_guest(asked, request.userid, snapshot)
        demand = demand_of(asked, request.userid)
        if asked.image:
            _check_images(asked.provider, snapshot)
        if asked.slot and asked.isolated is None:
            burst_requests.check_slot(
                asked.slot, asked.least or asked.nodes, snapshot.world.slots
            )
        if asked.grow and not asked.tag:
            raise BurstError("a burst that is to grow is found by its tag")
        wanted = MoreNodes(
            demand=demand, least=asked.least, grow=asked.grow, note=asked.note
        )
        return self._make_burst(wanted)

    def _isolate(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Have the jobs with a tag run in isolated bursts, as far as there is room.

        The answer has the bursts, and why a job for which there is room has none.
        """
        asked = read_request(request, IsolateRequest)
        _check_provider(asked.provider, snapshot)
        if asked.image:
            _check_images(asked.provider, snapshot)
        jobs = IsolatedJobs(
            tag=Tag(asked.tag, request.userid),
            nodes=asked.nodes,
            provider=asked.provider,
            offer=asked.offer,
            image=asked.image,
        )
        lead, decisions = snapshot.world.lead, snapshot.decisions
        waiting = jobs_without_bursts(lead, jobs.tag, decisions) if lead else ()

        def command(
            records: Records, world: World, settings: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made, why = jobs.start(records, world, settings, waiting, now)
            new = sorted(made.records.bursts.keys() - records.bursts.keys())
            return made, {"bursts": new, "why": why}

        return self.carry_out(command)

    def _request_for_guest(
        self, asked: BurstRequest, userid: int, snapshot: Snapshot
    ) -> Row:
        """Make a burst that a guest alone uses, where the site allows that."""
        GuestLimits(
            snapshot.records, snapshot.world, snapshot.settings, snapshot.now
        ).check(userid, asked.nodes)
        # What runs in an isolated burst of a request runs as the instance owner, and
        # one with a tag is kept though it is idle.
        for option, given in (
            ("--isolated", asked.isolated is not None),
            ("--slot", asked.slot),
            ("--tag", asked.tag),
            ("--offer", asked.offer),
            ("--image", asked.image),
        ):
            if given:
                what = f"request {option}"
                raise Denied(f"{what}: only the instance owner may do that")
        demand = request_for_guest(asked.nodes, asked.provider, userid)
        return self._make_burst(MoreNodes(demand=demand, least=asked.least))

    def _make_burst(self, wanted: MoreNodes) -> Row:
        demand, userid = wanted.demand, wanted.demand.userid

        def command(
            records: Records, world: World, settings: Settings, now: float
        ) -> tuple[TickResult, Row]:
            if userid is not None:
                # Again: several requests of a user may be carried out in one tick.
                nodes = demand.request.nodes
                GuestLimits(records, world, settings, now).check(userid, nodes)
            made = more_nodes(records, world, settings, wanted, now)
            beside = burst_requests.usable_idle_bursts(records, demand)
            if not made.bursts:
                raise LeadError(made.text, beside)
            return made.result, {
                "bursts": made.bursts,
                "text": made.text,
                "why": made.why,
                "beside": beside,
            }

        return self.carry_out(command)

    def _request_job(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Have a burst made for a job, whatever that is worth, within all limits."""
        job = parse_job(read_request(request, NamedRequest).id)
        if not request.owner and job not in guest_view(snapshot, request.userid).jobs:
            raise Denied(f"{format_f58(job)} is no job of yours")
        return self.carry_out(
            lambda records, world, settings, now: (
                request_for_job(records, world, settings, job, now),
                {"id": format_f58(job)},
            )
        )

    def _output(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Return the output of what ran in an isolated burst."""
        name = read_request(request, NamedRequest).id
        burst = report.find_isolated(snapshot.records, name)
        theirs = burst is not None and request.userid in burst.lease.userids
        if burst is None or not (request.owner or theirs):
            raise BurstError(
                f"{name}: no isolated burst of that id, nor of a job of that id",
                "burst status -a lists those that are known",
            )
        text = snapshot.records.outputs.get(burst.id)
        if text is None:
            raise BurstError(
                f"{burst.id} is in state {burst.state.value} and left no output",
                "it is kept once what runs there has ended",
            )
        return {"burst": burst.id, "exit_status": burst.exit_status, "text": text}

    def _release(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        asked = read_request(request, NamedRequest)
        if asked.all:
            jobs = commands.held_jobs(snapshot.records)
        else:
            jobs = [parse_job(text) for text in asked.ids]
        if not request.owner:
            view = guest_view(snapshot, request.userid)
            jobs = [job for job in jobs if job in view.jobs]
            if not jobs:
                raise Denied("none of these jobs is yours and held")
        released = [format_f58(job) for job in jobs]
        return self.carry_out(
            lambda records, world, _, now: (
                commands.release_jobs(records, jobs, now, world.lead),
                {"released": released},
            )
        )

    def _down(self, request: ServiceRequest, _: Snapshot) -> Row:
        asked = read_request(request, NamedRequest)
        if asked.tag:
            return self._end_tag(request, asked)
        if not request.owner:
            # Without their note and force: the note would be in the owner's log, and
            # with force a follower may go on that disturbs the next burst.
            burst, userid = asked.burst, request.userid
            return self.carry_out(
                lambda records, _, __, now: (
                    take_down_guests(records, burst, userid, now),
                    {"burst": burst},
                )
            )
        note = asked.note or "taken down by hand"
        return self._take_down(TakeDown(asked.burst, note, asked.provider, asked.force))

    def _end_tag(self, request: ServiceRequest, asked: NamedRequest) -> Row:
        """Take down all bursts with a tag, and end the jobs with it that wait."""
        if not request.owner:
            raise Denied("down --tag: only the instance owner may do that")
        tag = Tag(asked.tag, request.userid)
        note = asked.note or "taken down by hand"
        return self.carry_out(
            lambda records, world, _, now: (
                end_tag(records, world, tag, note, now),
                {"tag": tag.name},
            )
        )

    def _take_down(self, down: TakeDown) -> Row:
        def command(
            records: Records, world: World, settings: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made, burst = commands.take_down_any(records, world, down, now)
            again = describe_renewal(made.records, burst, settings, now)
            if down.force:
                known = records.bursts.get(burst)
                provider = known.lease.provider if known else down.provider
                self._force(
                    burst,
                    provider,
                    needed=not commands.has_housekeeping(records, burst, world),
                )
            row = {"burst": burst, **_tag_row(records, burst)}
            return made, row | ({"again": again} if again else {})

        return self.carry_out(command)

    def _force(self, burst: BurstId, provider: str, *, needed: bool) -> None:
        """Have a burst reaped without hosts that do not answer.

        Where that is not needed, its provider need not be one that can do it.
        """
        try:
            self._engine().force(burst, provider)
        except BurstError:
            if needed:
                raise

    def _resize(self, request: ServiceRequest, _: Snapshot) -> Row:
        """Have a burst grow or shrink."""
        asked = read_request(request, SizeRequest)
        wanted = WantedSize(asked.burst, asked.nodes, asked.note or "by hand")

        def command(
            records: Records, world: World, settings: Settings, now: float
        ) -> tuple[TickResult, Row]:
            made, answer = resize_burst(records, world, settings, wanted, now)
            return made, {**answer._asdict(), **_tag_row(records, answer.burst)}

        return self.carry_out(command)

    def _gc(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        rows = [orphans.orphan_row(orphan) for orphan in snapshot.orphans]
        spoilt = orphans.unreadable_rows(snapshot.records, snapshot.world)
        yes = read_request(request, NamedRequest).yes
        failed: dict[str, str] = {}
        if yes:
            self._engine().reap_orphans(snapshot.orphans)
            self._wake()
            failed = self._take_down_each([row["id"] for row in spoilt])
        views = snapshot.world.providers
        unread = {
            f"provider {name}": view.trouble or "it has not answered yet"
            for name, view in views.items()
            if view.trouble or not view.read_at
        }
        reaps = [orphans.reap_row(*key, call) for key, call in snapshot.reaps.items()]
        asked = [[o.provider, o.burst] for o in snapshot.orphans if yes]
        return {
            "orphans": [*rows, *spoilt],
            "deleting": yes,
            "asked": asked,
            "reaps": reaps,
            "looked_at": [name for name in views if f"provider {name}" not in unread],
            "failed": failed | unread,
        }

    def _take_down_each(self, bursts: list[str]) -> dict[str, str]:
        """Take these down; return those for which that cannot be done, and why."""
        failed = {}
        for burst in bursts:
            try:
                self._take_down(TakeDown(burst, "burst gc --yes"))
            except BurstError as error:
                failed[burst] = str(error)
        return failed

    def _enable(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        provider = read_request(request, NamedRequest).provider
        _check_provider(provider, snapshot)
        return self.carry_out(
            lambda records, _, __, now: (
                commands.enable_provider(records, provider, now),
                {"enabled": provider},
            )
        )

    def _do_reload(self, _: ServiceRequest, __: Snapshot) -> Row:
        # Providers may take that long to be made; past it the reload is refused.
        limit = self._deadline + RELOAD_S
        return self._wait(self._reload(), limit)

    def carry_out(self, command: EngineCommand) -> Row:
        """Have the next tick carry out the command, and wait for it."""
        future = self._engine().post(command)
        self._wake()
        return self._wait(future, self._deadline)

    def _wait(self, future: Future[Row], limit: float) -> Row:
        try:
            answer: Row = future.result(limit)
        except LateError:
            raise Late(
                f"the daemon took no tick for {limit:g} s",
                "its log shows what it waits for",
            ) from None
        return answer


def _tag_row(records: Records, burst: BurstId) -> Row:
    """Return what is told of the tag of a burst; nothing if it has none."""
    tag = tag_of(records, burst)
    return {"tag": tag.name} if tag else {}


def _check_images(provider: str, snapshot: Snapshot) -> None:
    """Raise BurstError where no burst of a provider can have an image of its own."""
    offers = snapshot.world.providers[provider].offers or ()
    if not any(offer.own_images for offer in offers):
        raise BurstError(
            f"bursts of provider {provider} have no images",
            "name a provider that makes pods, or leave --image out",
        )


def _check_provider(provider: str, snapshot: Snapshot) -> None:
    known = snapshot.world.providers
    if provider not in known:
        raise BurstError(
            f"there is no provider {provider}",
            f"the settings have {', '.join(known) or 'none'}",
        )
