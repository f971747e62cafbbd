# SPDX-License-Identifier: MIT
"""Make the views of members that algorithms get, from a record and readings."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from burst_ensemble.algorithm import (
    JobGroup,
    JobTally,
    MemberReading,
    MemberView,
    PeerView,
)
from burst_ensemble.config.spec import EnsembleSpec, JobSpec, MemberSpec
from burst_ensemble.core.job_rows import MemberState, SizedReading
from burst_ensemble.core.record import EnsembleRecord, MemberRecord


def take_in(record: EnsembleRecord, read: Mapping[str, MemberState]) -> EnsembleRecord:
    """Return the record with the jobs and the costs that were read."""
    return record.with_members(
        {
            name: msgspec.structs.replace(
                state.member,
                spent=max(state.member.spent, round(state.reading.spent, 2)),
                paid=state.reading.nodes_paid,
                leaving=max(0, state.reading.nodes_paid - state.reading.size),
            )
            for name, state in read.items()
        }
    )


def make_views(
    spec: EnsembleSpec, record: EnsembleRecord, readings: Mapping[str, SizedReading]
) -> dict[str, MemberView]:
    """Return the views of the members that were read and have not ended."""
    views = {
        each.name: _view(spec, record, each, readings[each.name])
        for each in spec.members
        if each.name in readings and record.members[each.name].ended is None
    }
    peers = {name: _peer(view) for name, view in views.items()}
    return {
        name: msgspec.structs.replace(
            view, peers=tuple(peer for other, peer in peers.items() if other != name)
        )
        for name, view in views.items()
    }


def fresh_view(spec: EnsembleSpec, member: MemberSpec) -> MemberView:
    """Return the view of a member that is not made yet, for checks of its options."""
    fresh = EnsembleRecord(
        name=spec.name, started=0.0, members={member.name: MemberRecord(started=0.0)}
    )
    size = member.max if member.is_external else 0
    return _view(spec, fresh, member, SizedReading(nodes_up=size))


def _view(
    spec: EnsembleSpec,
    record: EnsembleRecord,
    member: MemberSpec,
    reading: SizedReading,
) -> MemberView:
    kept = record.members[member.name]
    own = [_group(job, kept, kept.submitted, shared=False) for job in member.jobs]
    pool = [_group(job, kept, record.shared, shared=True) for job in spec.jobs]
    size = reading.nodes_up
    # Nodes that further bursts may have: they count as up and free, so that jobs are
    # submitted for them.
    free = max(0, kept.nodes - reading.nodes_paid) if member.is_isolated else 0
    nodes, least, most = (
        (size, size, size)
        if member.is_external
        else (kept.nodes, member.min, member.max)
    )
    read = {key: getattr(reading, key) for key in MemberReading.__struct_fields__}
    read |= {
        "nodes_up": reading.nodes_up + free,
        "nodes_free": reading.nodes_free + free,
    }
    return MemberView(
        **read,
        name=member.name,
        nodes=nodes,
        least=least,
        most=most,
        jobs=(*own, *pool),
        unconfirmed=len(kept.unconfirmed),
        waits_with_jobs=kept.waits_with_jobs,
        tally=kept.total,
        started=kept.started,
        grown=kept.grown,
        shrunk=kept.shrunk,
        limited=kept.limited,
        check=float(spec.check),
        commands=tuple(spec.custom),
    )


def _group(
    job: JobSpec, kept: MemberRecord, given: Mapping[str, int], *, shared: bool
) -> JobGroup:
    submitted = given.get(job.name, 0)
    return JobGroup(
        name=job.name,
        nodes=job.nodes,
        duration=float(job.duration),
        count=job.total,
        left=max(0, job.total - submitted) if job.total else None,
        submitted=submitted,
        shared=shared,
        tally=kept.statistics.get(job.name, JobTally()),
    )


def _peer(view: MemberView) -> PeerView:
    return PeerView(
        name=view.name,
        price=view.price,
        room=max(0, view.most - view.nodes_busy - view.nodes_waited_for),
        most=view.most,
        durations={
            group.name: group.tally.duration.mean
            for group in view.jobs
            if group.tally.success
        },
    )
