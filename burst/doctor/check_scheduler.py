# SPDX-License-Identifier: MIT
"""Checks whether bursts work with the scheduler of a running instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from burst.config import IntakeSettings
from burst.core.plan.slots import RankSlot
from burst.doctor.facts import ReadFailure
from burst.flux.scheduler import (
    GRAPH_ADVICE,
    POLICY_ADVICE,
    find_denied,
    find_obstacles,
)
from burst.flux_setup.running_instance import RunningInstance
from burst.kits.systemd_user import ENABLE_LINGER
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity, LeadView
from burst.model.ranks import format_idset
from burst.model.scheduler import FLUXION


def check_scheduler(
    instance: RunningInstance | ReadFailure, intake: IntakeSettings
) -> Iterator[Finding]:
    """Check that jobs are scheduled; with Fluxion, which it denies, how they share."""
    if isinstance(instance, ReadFailure):
        return
    yield from _check_offline(instance)
    if not instance.known.is_fluxion:
        return
    known = instance.known
    found = find_obstacles(known, intake, instance.config)
    # The daemon does not start without its own queues; the site's are here alone.
    ours = {intake.queue, intake.ready}
    found += find_denied(known, instance.queues.keys() - ours)
    yield from found
    if not found:
        yield ok(f"bursts work with {known.title} in mode {intake.mode}")
    if known.fcfs_queues and intake.mode == "queue" and not found:
        yield note(
            "Fluxion's policy fcfs denies a job with a constraint, so each job of a"
            " queue that requires a property, while the nodes that match are busy with"
            " jobs without a time limit: it did so before burst",
            f"{POLICY_ADVICE}; or limit the duration of jobs, [policy.limits]",
        )
    if intake.mode == "queue" and intake.queue in known.fcfs_queues:
        yield note(
            f"once somebody starts queue {intake.queue}, as flux queue start --all"
            " does, Fluxion (fcfs) fails its waiting jobs that need more nodes than are"
            " up: the daemon stops that queue again only a moment later",
            "start the site's queues by name, flux queue start --queue=NAME; or add"
            f" {intake.queue}:easy to queue-policy-per-queue under [{FLUXION}] of the"
            " lead's configuration, and load Fluxion again",
        )
    if known.whole_nodes:
        yield note(
            "Fluxion gives each job whole nodes (match-policy): jobs that would share"
            " a node get one each, and that many nodes are paid for",
            "set another match-policy under [sched-fluxion-resource] if jobs are to"
            " share nodes",
        )


def _check_offline(instance: RunningInstance) -> Iterator[Finding]:
    """Check that the job manager asks the scheduler for resources.

    It stops doing so when a scheduler answers for a job that has resources. So has one
    after a restart if the lead ended when the scheduler had written R to the KVS and
    the job manager had not heard of it (job_create_from_eventlog in job.c).
    """
    if not any(queue.is_offline for queue in instance.queue_states.values()):
        return
    if not instance.known.name:
        yield wrong(
            "no scheduler is loaded: Flux starts no job, and no nodes are rented",
            "run flux modprobe load with the scheduler of this site",
        )
        return
    yield wrong(
        f"the scheduler is offline though {instance.known.name} is loaded: Flux starts"
        " no job, and no nodes are rented",
        "flux dmesg | grep 'already allocated' names the job that it stopped at, after"
        " each restart again: flux cancel that job; then load the scheduler again:"
        f" {instance.known.reload}",
    )


def check_resource_reload(instance: RunningInstance) -> Iterator[Finding]:
    """Find resources after which Flux takes each rank that goes down for lost.

    It does unless they are by its configuration (acquire.c of its resource module).
    """
    if instance.defined_by == "reload":
        yield wrong(
            "the lead has its resources by `flux resource reload`: the scheduler loses"
            " each rank that goes down, and no job starts there in a later burst",
            "restart Flux once `burst lead check` says that this is safe",
        )


def check_systemd(lead: LeadIdentity) -> Iterator[Finding]:
    """Tell what followers need if the lead's Flux uses systemd."""
    if lead.systemd:
        yield note(
            "the lead has [systemd] enable: a follower comes online only where the"
            " owner of the instance has a systemd of its own, so never in a pod",
            f"on the hosts of followers: {ENABLE_LINGER}",
        )


def check_scheduled_ranks(
    slots: Sequence[RankSlot], view: LeadView | ReadFailure
) -> Iterator[Finding]:
    """Check that the scheduler knows the ranks of all slots."""
    if isinstance(view, ReadFailure):
        return
    for slot in slots:
        unknown = view.unscheduled.intersection(slot.ranks)
        if unknown:
            yield wrong(
                f"ranks {format_idset(unknown)} of rank slot {slot.name} are not"
                f" leased: {view.scheduler.title} does not have them, so no job would"
                " start there",
                GRAPH_ADVICE
                if view.scheduler.is_fluxion
                else f"load it again: {view.scheduler.reload}; or restart Flux, if it"
                " does not have them then",
            )
