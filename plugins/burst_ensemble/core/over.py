# SPDX-License-Identifier: MIT
"""What is left of a run of an ensemble: bursts and jobs after its end, and what is not
counted in the next run.
"""

from __future__ import annotations

from collections.abc import Collection

from burst.core.tagged_nodes import TaggedBurst, TaggedNodes
from burst.model.burst import Tag
from burst.model.lead import JobState
from burst_ensemble.core.job_rows import GROUP
from burst_ensemble.core.read_members import jobs_by_tag
from burst_ensemble.core.record import (
    EnsembleRecords,
    EnsembleStart,
    KnownJob,
    MemberBook,
)


def is_over(
    ensembles: EnsembleRecords, name: str, nodes: TaggedNodes, pending: Collection[Tag]
) -> bool:
    """Tell whether an ensemble has ended and neither a burst nor a job is left.

    `pending` is `nodes.tags_waiting()`. A job that runs is on a burst. One that waits
    may be all that is left: of members that had no burst when they ended. False while
    the daemon cannot tell.
    """
    state, start = ensembles.states[name], ensembles.starts[name]
    if state.record.ended is None or not nodes.is_read:
        return False
    if any(each.live and each.tag.name.startswith(f"{name}/") for each in nodes.bursts):
        return False
    # Jobs for a member that it does not have are nobody's to end.
    return not any(
        start.membership(member["name"]) in pending
        for member in start.tables["members"]
        if member["mode"] != "external"
    )


def lost_members(ensembles: EnsembleRecords, nodes: TaggedNodes) -> list[TaggedBurst]:
    """Return the live bursts of ensembles that are not on record.

    Their record was lost or cannot be read: nobody would ever end them. Isolated ones
    end with their job.
    """
    return [
        burst
        for burst in nodes.bursts
        if burst.live
        and burst.usable
        and not burst.isolated
        and "/" in burst.tag.name
        and burst.tag.name.partition("/")[0] not in ensembles.states
    ]


def books_of_earlier_run(
    nodes: TaggedNodes, file: EnsembleStart
) -> dict[str, MemberBook]:
    """Return the first books of an ensemble, in which these are as counted already.

    The lead shows jobs for a while after their end, and bursts stay on record.
    """
    books: dict[str, MemberBook] = {}
    jobs = jobs_by_tag(nodes)
    for member in file.tables["members"]:
        whose = file.membership(member["name"])
        ended = {
            job.id: KnownJob(
                job.attributes.get(GROUP, ""), 1, counted="finish", seen=nodes.now
            )
            for job in jobs.get(whose, ())
            if job.state is JobState.INACTIVE
        }
        paid = sorted(burst.id for burst in nodes.bursts if burst.tag == whose)
        if ended or paid:
            books[whose.name] = MemberBook(jobs=ended, settled_bursts=tuple(paid))
    return books
