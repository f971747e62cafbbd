# SPDX-License-Identifier: MIT
"""Bursts that are requested with a tag, and jobs that have it."""

from burst.core.burst_requests import request_nodes
from burst.model.burst import Tag
from burst.model.jobid import JobId
from burst.model.request import BurstPreferences
from tests.builders import but, job, whole

OURS = Tag("sweep/a", 100)


def request(sim, tag, nodes=2):
    """Have the engine make a burst with a tag, and return its id."""
    sim.tick(2)
    known = {burst.id for burst in sim.bursts}
    assert sim.request(but(request_nodes(nodes), tag=tag))
    (new,) = {burst.id for burst in sim.bursts} - known
    return new


def submit(sim, number, tag, nodes=2, userid=100, *, cores=1, constraint=""):
    """Submit a job with a tag, held, as `flux submit --burst` does.

    `cores` is how many each of its nodes must have.
    """
    held = {"urgency": 0, "held_at_submit": True, "t_submit": sim.now}
    request = whole(nodes, cores_per_slot=cores, constraint=constraint)
    wish = BurstPreferences(tag=tag, urgency=16)
    waits = job(number, request, userid=userid, preferences=wish, **held)
    sim.lead.jobs[JobId(number)] = waits
