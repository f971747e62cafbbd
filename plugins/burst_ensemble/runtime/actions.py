# SPDX-License-Identifier: MIT
"""Do the intents of a step, through the daemon's service like any client, and the lead.

If a call fails, the next step asks for the same intent again.
"""

from __future__ import annotations

import logging
import os
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence

from burst import log
from burst.core.tagged_nodes import TaggedBurst, TaggedJob, TaggedNodes
from burst.errors import BurstError, JobRefused, Late, LeadError, Unreadable
from burst.model.active_job import JobOutcome
from burst.model.event import cut
from burst.model.jobid import JobId
from burst.model.ranks import format_hostlist
from burst.model.shape import Shape
from burst.runtime.service_answers import Row
from burst_ensemble.config.settings import ensemble_settings
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.intents import (
    Done,
    EndMember,
    Intent,
    JobRef,
    ResizeMember,
    RunCustom,
    SubmitJobs,
)
from burst_ensemble.core.job_rows import lost_jobs
from burst_ensemble.core.member_job import MemberNodes, job_name, make_job
from burst_ensemble.core.record import Ensemble, EnsembleStart, Member, MemberRecord
from burst_ensemble.runtime.client import DaemonClient
from burst_ensemble.runtime.files import environment_of

NO_CUSTOM = "the settings do not allow [custom] commands"


class MemberActions:
    """Does the intents for members that are not external. Use it from one thread.

    Nodes are requested with the member's tag, in its rank slot. If the provider can
    resize a burst, one that is online is resized. Otherwise a member grows by further
    bursts in the rest of its rank slot, with fewer nodes if necessary, and shrinks by
    whole bursts on which nothing runs. The size of an isolated member limits the nodes
    that the bursts of its jobs have together.
    """

    def __init__(self, daemon: DaemonClient) -> None:
        self._daemon = daemon

    def do(self, before: Ensemble, intent: Intent) -> Done:
        """Do an intent; `before` is the ensemble that the step was decided for.

        Raises LeadError; its subclass Late if the daemon has not answered in time.
        """
        start = before.start
        if isinstance(intent, EndMember):
            tag = Member(before, intent.member).tag
            self._daemon.call("down", {"tag": tag.name, "note": intent.why})
            return Done()
        if isinstance(intent, RunCustom):
            # The record may be from before the settings were changed, and whoever acts
            # as the instance owner can write records.
            if ensemble_settings(self._daemon.settings()).custom:
                run_command(start.spec, intent, self._daemon.lead.identity().uri)
            else:
                label = _label(start.spec, intent)
                log.say("%s: %s", label, NO_CUSTOM, level=logging.WARNING)
            return Done()
        # Read again: an intent for another member may have changed the nodes.
        nodes = self._daemon.nodes()
        if isinstance(intent, SubmitJobs):
            return self._submit(before, intent, nodes)
        return Done(self._resize(Member(before, intent.member), intent, nodes))

    def outcomes(
        self, member: MemberRecord, jobs: Iterable[TaggedJob]
    ) -> Mapping[JobId, JobOutcome]:
        """Return how jobs ended that are not in `jobs` any more. Raises LeadError."""
        lost = lost_jobs(member, {job.id for job in jobs})
        return self._daemon.submitter.outcomes(lost) if lost else {}

    def _resize(self, whose: Member, to: ResizeMember, nodes: TaggedNodes) -> str:
        """Resize a member; return why it will not reach its size, empty if it will."""
        tag, member = whose.tag, whose.spec
        request: dict[str, str | int] = {
            "provider": member.provider,
            "tag": tag.name,
            "offer": member.offer,
            "image": member.image,
        }
        if member.is_isolated:
            made, why = self._try("isolate", **request, nodes=to.nodes)
            return why or str(made["why"])
        request["slot"] = format_hostlist(
            whose.ensemble.start.slots.get(member.name, ())
        )
        paid = nodes.bursts_of(tag)
        live = [burst for burst in paid if burst.usable]
        more = to.nodes - sum(burst.wanted for burst in live)
        if more <= 0:
            self._shrink(live, -more, to.why)
            return ""
        # Nodes that are given back cost money until they are gone.
        more = min(more, member.max - sum(burst.nodes for burst in paid))
        if more <= 0:
            return "nodes that it gives back are not gone yet"
        request |= {"nodes": more, "least": 1, "grow": True, "note": to.why}
        made, why = self._try("request", **request)
        return why or str(made["why"])

    def _shrink(self, live: Sequence[TaggedBurst], fewer: int, why: str) -> None:
        """Take down whole bursts, the newest first; then shrink one burst."""
        rest = []
        for burst in reversed(live):
            if burst.nodes <= fewer and not burst.has_jobs:
                _, refusal = self._try("down", burst=burst.id, note=why)
                fewer -= 0 if refusal else burst.nodes
            else:
                rest.append(burst)
        for burst in rest:
            nodes = burst.wanted - fewer
            if fewer > 0 and nodes > 0:
                _, refusal = self._try("resize", burst=burst.id, nodes=nodes, note=why)
                if not refusal:
                    return

    def _try(self, method: str, **payload: str | int) -> tuple[Row, str]:
        """Call the service; return its answer, and why it refuses (empty if not)."""
        try:
            return self._daemon.call(method, payload), ""
        except (Late, Unreadable):
            raise
        except BurstError as error:
            return {}, error.what

    def _submit(self, before: Ensemble, to: SubmitJobs, nodes: TaggedNodes) -> Done:
        """Submit jobs of a member; return which of them the lead has now, and which it
        will never accept.

        The lead may have jobs already that were unconfirmed before the step.
        """
        start, spec, member = before.start, before.start.spec, to.member
        started = before.record.started
        names = {ref: job_name(spec, member, ref, started) for ref in to.jobs}
        earlier = before.record.members[member].unconfirmed
        doubtful = [names[ref] for ref in to.jobs if ref in earlier]
        there = self._daemon.submitter.find_jobs(doubtful) if doubtful else {}
        ids = {ref: there[name] for ref, name in names.items() if name in there}
        shape = _shape_of(start, member, nodes)
        if shape is None:
            provider = spec.member(member).provider
            return Done(f"provider {provider} offers no isolated bursts now", ids)
        rest = [ref for ref in to.jobs if ref not in ids]
        in_queue = self._daemon.settings().intake.mode == "queue"
        hosts = () if in_queue else start.slots.get(member, ())
        its = MemberNodes(shape, hosts)
        jobs = [make_job(start, member, ref, names[ref], its) for ref in rest]
        answers = self._daemon.submitter.submit_jobs(jobs) if jobs else []
        refused, never_taken = "", dict[JobRef, str]()
        for ref, answer in zip(rest, answers, strict=True):
            if isinstance(answer, JobRefused):
                never_taken[ref] = cut(str(answer), 300)
            elif isinstance(answer, BurstError):
                refused = refused or str(answer)
            else:
                ids[ref] = answer
        return Done(refused, ids, never_taken)


def _shape_of(start: EnsembleStart, member: str, nodes: TaggedNodes) -> Shape | None:
    """Return the shape of a member's nodes; None if no offer fits it, isolated."""
    spec = start.spec.member(member)
    if spec.is_isolated:
        offered = [
            offer.shape
            for offer in nodes.offers.get(spec.provider, ())
            if "isolated" in offer.modes and spec.offer in {"", offer.name}
        ]
        # Jobs that fit the smallest shape fit each of the offers.
        return min(offered, key=lambda shape: shape.cores, default=None)
    first = start.slots[member][0]
    shape = {slot.hosts[0]: slot.shape for slot in nodes.slots}.get(first)
    if shape is None:
        raise LeadError(
            f"{member}: the lead has no rank slot that begins with {first} any more",
            "end the ensemble and start it again",
        )
    return shape


def _label(spec: EnsembleSpec, intent: RunCustom) -> str:
    return f"ensemble {spec.name}: command {intent.command} of {intent.member}"


def run_command(spec: EnsembleSpec, intent: RunCustom, uri: str) -> None:
    """Start a command beside the daemon; its exit status goes to the log.

    `uri` is the lead's. The command gets only those variables of the daemon's
    environment that jobs of an ensemble get: others may hold secrets, which the file's
    author may not know.
    """
    told = {
        "BURST_ENSEMBLE": spec.name,
        "BURST_MEMBER": intent.member,
        "BURST_COMMAND_NUMBER": str(intent.number),
        "FLUX_URI": uri,
    }
    label = _label(spec, intent)
    try:
        process = subprocess.Popen(
            list(spec.custom[intent.command]),
            cwd=spec.directory or "/",
            env=environment_of(os.environ, told),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: no such argument
        log.say("%s cannot be run: %s", label, error, level=logging.WARNING)
        return

    def wait() -> None:
        status = process.wait()
        level = logging.WARNING if status else logging.INFO
        log.say("%s ended with status %d", label, status, level=level)

    threading.Thread(target=wait, name="burst-custom", daemon=True).start()
