# SPDX-License-Identifier: MIT
"""The methods of the service `burst` that change something, each in a tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError

from burst.core import burst_requests, commands, orphans
from burst.core.burst_requests import MoreNodes, more_nodes, request_for_job
from burst.core.commands import TakeDown
from burst.core.guest_requests import (
    GuestLimits,
    halted,
    request_for_guest,
    take_down_guests,
)
from burst.core.records import RecordsView, Transaction
from burst.core.resize_request import WantedSize, resize_burst
from burst.core.standing import describe_renewal
from burst.core.tagged_jobs import IsolatedJobs, end_tag, jobs_without_bursts
from burst.errors import BurstError, Denied, Late, LeadError
from burst.lead import ServiceRequest
from burst.model.burst import BurstId, Tag
from burst.model.jobid import format_f58
from burst.runtime.engine import Engine
from burst.runtime.engine_commands import EngineCommand
from burst.runtime.engine_config import RELOAD_S
from burst.runtime.service_answers import Row, guest_view
from burst.runtime.service_requests import (
    BurstRequest,
    IsolateRequest,
    Method,
    NamedRequest,
    SizeRequest,
    demand_of,
    owner_only,
    parse_job,
    read_request,
)
from burst.runtime.snapshot import Snapshot

TICK_S = 30.0
"""How long a command may wait for the tick that carries it out, in seconds."""


class ServiceChanges:
    """Answers requests that change something, on several threads."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        wake: Callable[[], None],
        reload: Callable[[], Future[Row]],
        deadline: float,
    ) -> None:
        """`deadline` is a limit such as TICK_S; `reload` reads the settings again."""
        self._engine, self._wake, self._reload = engine, wake, reload
        self._deadline = deadline

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by name."""
        return {
            "release": self._release,
            "request-job": self._request_job,
            "request": self._request,
            "isolate": owner_only(self._isolate),
            "down": self._down,
            "resize": owner_only(self._resize),
            "gc": owner_only(self._gc),
            "enable": owner_only(self._enable),
            "reload": owner_only(self._do_reload),
        }

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
            raise BurstError("give the tag of the burst that is to grow")
        wanted = MoreNodes(
            demand=demand, least=asked.least, grow=asked.grow, note=asked.note
        )
        return self._make_burst(wanted)

    def _isolate(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Have the jobs with a tag run in isolated bursts of the requested total size.

        The answer has the bursts, and why a job that the size allows has none.
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

        def command(tx: Transaction) -> Row:
            before = set(tx.bursts)
            why = jobs.start(tx, waiting)
            return {"bursts": sorted(tx.bursts.keys() - before), "why": why}

        return self._carry_out(command)

    def _request_for_guest(
        self, asked: BurstRequest, userid: int, snapshot: Snapshot
    ) -> Row:
        """Make a burst that only this guest uses, if the site allows that."""
        GuestLimits(
            snapshot.records, snapshot.world, snapshot.settings, snapshot.now
        ).check(userid, asked.nodes)
        # An isolated burst of a request runs its jobs as the instance owner, and a
        # burst with a tag is kept even if it is idle.
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

        def command(tx: Transaction) -> Row:
            if userid is not None:
                # Checked again: one tick may carry out several requests of a user.
                nodes = demand.request.nodes
                GuestLimits(tx, tx.world, tx.settings, tx.now).check(userid, nodes)
            beside = burst_requests.usable_idle_bursts(tx, demand)
            made = more_nodes(tx, wanted)
            if not made.bursts:
                raise LeadError(made.text, beside)
            return {
                "bursts": made.bursts,
                "text": made.text,
                "why": made.why,
                "beside": beside,
            }

        return self._carry_out(command)

    def _request_job(self, request: ServiceRequest, snapshot: Snapshot) -> Row:
        """Have a burst made for a job within all limits, whatever its worth."""
        job = parse_job(read_request(request, NamedRequest).id)
        if not request.owner and job not in guest_view(snapshot, request.userid).jobs:
            raise Denied("that is not a job of yours")

        def begin(tx: Transaction) -> Row:
            if tx.world.halt is not None:
                raise halted(tx.world.halt, guest=not request.owner)
            request_for_job(tx, job)
            return {"id": format_f58(job)}

        return self._carry_out(begin)

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

        def release(tx: Transaction) -> Row:
            commands.release_jobs(tx, jobs, tx.world.lead)
            return {"released": released}

        return self._carry_out(release)

    def _down(self, request: ServiceRequest, _: Snapshot) -> Row:
        asked = read_request(request, NamedRequest)
        if asked.tag:
            return self._end_tag(request, asked)
        if not request.owner:
            # A guest's note and force are ignored: the note would be in the owner's
            # log, and after force a follower may run on and disturb the next burst.
            burst, userid = asked.burst, request.userid

            def down(tx: Transaction) -> Row:
                take_down_guests(tx, burst, userid)
                return {"burst": burst}

            return self._carry_out(down)
        note = asked.note or "taken down by hand"
        return self._take_down(TakeDown(asked.burst, note, asked.provider, asked.force))

    def _end_tag(self, request: ServiceRequest, asked: NamedRequest) -> Row:
        """Take down all bursts with a tag, and end the jobs with it that wait."""
        if not request.owner:
            raise Denied("down --tag: only the instance owner may do that")
        tag = Tag(asked.tag, request.userid)
        note = asked.note or "taken down by hand"

        def end(tx: Transaction) -> Row:
            end_tag(tx, tag, note)
            return {"tag": tag.name}

        return self._carry_out(end)

    def _take_down(self, down: TakeDown) -> Row:
        def command(tx: Transaction) -> Row:
            burst = BurstId(down.burst)
            known = tx.bursts.get(burst)
            cleaned = commands.has_housekeeping(tx, burst, tx.world)
            row = {"burst": burst, **_tag_row(tx, burst)}
            commands.take_down_any(tx, down)
            again = describe_renewal(tx, burst)
            if down.force:
                provider = known.lease.provider if known else down.provider
                self._force(burst, provider, needed=not cleaned)
            return row | ({"again": again} if again else {})

        return self._carry_out(command)

    def _force(self, burst: BurstId, provider: str, *, needed: bool) -> None:
        """Have a burst reaped without waiting for hosts that do not answer.

        Unless that is needed, a provider that cannot do it is no error.
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

        def command(tx: Transaction) -> Row:
            answer = resize_burst(tx, wanted)
            return {**answer._asdict(), **_tag_row(tx, answer.burst)}

        return self._carry_out(command)

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
        """Take these bursts down; return those that cannot be taken down, and why."""
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

        def enable(tx: Transaction) -> Row:
            commands.enable_provider(tx, provider)
            return {"enabled": provider}

        return self._carry_out(enable)

    def _do_reload(self, _: ServiceRequest, __: Snapshot) -> Row:
        # Making the providers may take that long; after that the reload is refused.
        limit = self._deadline + RELOAD_S
        return self._wait(self._reload(), limit)

    def _carry_out(self, command: EngineCommand) -> Row:
        """Have the next tick carry out the command, and wait for it."""
        future = self._engine().post(command)
        self._wake()
        return self._wait(future, self._deadline)

    def _wait(self, future: Future[Row], limit: float) -> Row:
        """Return the answer. A request that no tick has begun in time is dropped: its
        caller may repeat it.
        """
        try:
            answer: Row = future.result(limit)
        except LateError:
            dropped = future.cancel()
            raise Late(
                f"the daemon finished no tick for {limit:g} s; "
                + ("nothing was done" if dropped else "the request is under way"),
                "its log shows what it waits for",
            ) from None
        return answer


def _tag_row(records: RecordsView, burst: BurstId) -> Row:
    """Return the part of an answer with a burst's tag; empty if it has none."""
    known = records.bursts.get(burst)
    tag = known.lease.tag if known else None
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
