# SPDX-License-Identifier: MIT
"""How an interleaving ends: all is healed, and then all must come to its end.

liveness  a job that limits, slots and offers could serve is served, whatever else is
          submitted; first, and not in each scenario, as it takes long
gone      nothing is left: no burst, no hold, no drain, no object
"""

from __future__ import annotations

import math

from burst.core.plan.fit import nodes_needed
from burst.core.plan.slots import ends_with_lease, find_slots
from burst.errors import BurstError
from burst.model.burst import State
from burst.model.lead import JobState
from tests.builders import NODE, whole
from tests.builders import OWN as OWN_NODE
from tests.machine.steps import CONSTRAINTS, Steps, enabling, taking_down
from tests.machine.world import OWN

# Turns within which all that can be served must be, and their length in seconds: each
# job may wait for those before it, which run for _RUNS and leave idle bursts.
_SERVED_BY = 240
_TICK = 5.0
_RUNS = 12.0
# Turns within which all must be gone, and their length.
_GONE_BY = 200
_LONG = 20.0


def end(steps: Steps) -> None:
    """Heal everything, serve what waits, and end it. Raises Broken."""
    heal(steps)
    if steps.world.scenario.get("serve"):
        serve(steps)
    clear(steps)


def heal(steps: Steps) -> None:
    """Put an end to all that is wrong, as persons would."""
    world, lead = steps.world, steps.world.lead
    lead.unreadable = lead.deaf = lead.stopped = lead.disk.full = False
    lead.silence.next.clear()
    lead.cleans, lead.fatal_signals = (), (9, 15)
    lead.housekeeping.clear()
    lead.begins = dict.fromkeys(lead.begins, 0.0)
    lead.disk.crash = ""
    world.joins = True
    world.executor.hung.clear()
    world.garbage.clear()
    # What was reaped while the store was full is on record before anything is moved.
    steps.tick(1.0)
    _clear_elsewhere(steps)
    sites = {name: dict(site) for name, site in world.scenario["providers"].items()}
    if world.sites != sites:
        world.sites = sites
        steps._reboot()
    for rank in [r for r, why in lead.drained.items() if why == "broken fan"]:
        # Of lent nodes, some stay broken, and all others are to be had.
        if rank in OWN or not world.scenario.get("fans"):
            del lead.drained[rank]
    for name, provider in world.providers.items():
        provider.next_offers_error = provider.next_provision_error = None
        provider.next_observe_error = provider.next_reap_error = None
        provider.next_resize_error = None
        provider.listed_still = provider.starts_after = provider.listed_after = 0
        provider.starts_only = provider.build_only = None
        provider.ends_with = 0
        world.set_capacity(name, world.sites[name].get("capacity", 1_000))
    steps.tick(1.0)
    steps.tick(1.0)
    for name in world.records.health:
        steps.world.engine.post(enabling(name))
    for burst in world.bursts:
        if burst.live and (burst.quarantined or burst.lease.isolated):
            steps.world.engine.post(taking_down(burst.id))
    for name in sorted({key.split("/")[1] for key in world.records.unreadable}):
        made = [key[1] for _, key, _ in world.made() if key[2] == name]
        by = made[0] if made else next(iter(world.providers))
        steps.world.engine.post(taking_down(name, by))
    steps.tick(1.0)


def _clear_elsewhere(steps: Steps) -> None:
    """Take down what a provider made in another place, where it has to be for that."""
    world = steps.world

    def there():
        known = {b.id for b in world.live if b.lease.place == "fake elsewhere"}
        lost = {key.split("/")[1] for key in world.records.unreadable}
        made = {key[2] for _, key, _ in world.made("elsewhere")}
        return sorted(known | (lost & made))

    if not there():
        return
    world.sites["a"] |= {"place": "elsewhere", "enabled": True}
    steps._reboot()
    steps.tick(1.0)
    for name in there():
        world.engine.post(taking_down(name, "a"))
    for _ in range(_GONE_BY):
        if not there():
            return
        for job in world.jobs(JobState.RUN):
            world.lead.finish(job.id)
        world.set_capacity("a", 0)
        steps.tick(_TICK)
    steps.invariants.must("gone", False, "what is elsewhere has not ended")


def serve(steps: Steps) -> None:
    """Wait until each job was served that could be, while others come. Raises Broken.

    Those that their users took from us, and that could not run here, would block the
    queue by their users' will; they go.
    """
    world, lead = steps.world, steps.world.lead
    for job in lead.waiting():
        taken = job.id in steps.invariants.taken_back or world.is_obeyed(job)
        if taken or not job.request:
            lead.finish(job.id, "canceled")
    due = [job.id for job in world.jobs(JobState.SCHED) if servable(steps, job)]
    stream = world.scenario.get("stream")
    for tick in range(_SERVED_BY):
        for job in world.jobs(JobState.RUN):
            # The clock may have been set back since.
            if not 0 <= world.now - job.t_start < _RUNS:
                lead.finish(job.id)
        due = [job for job in due if not lead.jobs[job].t_start]
        due = [job for job in due if lead.jobs[job].state is JobState.SCHED]
        if not due:
            return
        if stream and tick % 2 == 0 and tick < _SERVED_BY // 2:
            lead.submit(
                whole(1, constraint=CONSTRAINTS[1]), userid=8, queue=steps._queue()
            )
        steps.tick(_TICK)
    steps.invariants.must("liveness", False, f"jobs {due} were not served")


def servable(steps: Steps, job) -> bool:
    """Tell whether a pending job could be served for sure, were it alone."""
    world, lead = steps.world, steps.world.lead
    if job.id in lead.plain:
        return bool(job.urgency and job.request.nodes <= len(OWN))
    if job.request is None or not _may_be_served(steps, job):
        return False
    admitted = lead.admitted(job)
    own = admitted & set(OWN) if nodes_needed(job.request, OWN_NODE) else set()
    if not job.queue and len(own) >= job.request.nodes:
        return True
    return any(
        _served_by(steps, job, admitted, name, site)
        for name, site in world.sites.items()
        if name in world.providers
    )


def _may_be_served(steps: Steps, job) -> bool:
    """Tell whether neither its user nor Flux keeps us from serving a job."""
    world, settings = steps.world, steps.world.settings
    held_by_user = not job.urgency and not world.is_held_by_us(job)
    too_long = job.duration and not math.isinf(settings.deadlines.lease)
    # A queue that is stopped and no longer ours; and Flux lets no job with further
    # constraints change its queue.
    stopped = job.queue and settings.intake.mode != "queue"
    bound = job.queue and job.request.constraint
    elsewhere = job.preferences.mode == "isolated"
    wide = not nodes_needed(job.request, NODE)
    return not (held_by_user or too_long or stopped or bound or elsewhere or wide)


def _served_by(steps: Steps, job, admitted, name: str, site) -> bool:
    """Tell whether one provider's bursts could be all that the job needs."""
    world, limits = steps.world, steps.world.settings.limits
    nodes, wish = job.request.nodes, job.preferences
    price = site.get("price", 0.0)
    if wish.provider not in {"", name} or "joined" not in site.get("modes", ["joined"]):
        return False
    if wish.max_price is not None and price > wish.max_price:
        return False
    bounds = (limits.max_nodes, limits.max_nodes_per_user, site.get("capacity", 0))
    if any(0 < bound < nodes for bound in bounds):
        return False
    each = site.get("max_nodes", 4)
    if limits.max_nodes_per_burst:
        each = min(each, limits.max_nodes_per_burst)
    slots = find_slots(world.lead.known, world.settings.lead.slots)
    person = set(world.lead.drained)
    rooms = [min(each, len(set(slot.ranks) & admitted - person)) for slot in slots]
    if max(rooms, default=0) >= nodes:
        return True
    if wish.where == "together" or not world.settings.plan.spread:
        return False
    most = limits.max_bursts or len(rooms)
    return bool(sum(sorted(rooms, reverse=True)[:most]) >= nodes)


def clear(steps: Steps) -> None:
    """End all jobs, and keep no nodes; then nothing may be left."""
    world, lead = steps.world, steps.world.lead
    if any(site.pop("keeps", 0) for site in world.sites.values()):
        steps.invariants.must("gone", world.reload(), "settings cannot be read again")
    for job in world.jobs(JobState.SCHED, JobState.RUN):
        lead.finish(job.id, "canceled")
    steps.tick(1.0)
    steps.tick(1.0)
    for _ in range(_GONE_BY):
        if _at_rest(steps):
            break
        steps.tick(_LONG)
    must = steps.invariants.must
    must("gone", _at_rest(steps), "not all bursts have ended")
    must("gone", not world.records.holds, f"holds are left: {world.records.holds}")
    ours = [r for r, why in lead.drained.items() if ends_with_lease(why)]
    must("gone", not ours, f"ranks {ours} are still drained by us, or by Flux")
    unanswered = [a for a in steps.answers if not a.done()]
    must("gone", not unanswered, f"{len(unanswered)} commands were never answered")
    for answer in steps.answers:
        error = answer.exception()
        told = error is None or isinstance(error, BurstError)
        must("gone", told, f"a command was answered by {error!r}")


def _at_rest(steps: Steps) -> bool:
    bursts = steps.world.bursts
    ended = all(b.state is State.INACTIVE for b in bursts)
    undone = any(b.drained for b in bursts)
    left = [key for _, key, _ in steps.world.made() if key[2] not in steps.world.strays]
    return ended and not undone and not left
