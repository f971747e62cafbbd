# SPDX-License-Identifier: MIT
"""What sched-burst knows about a pending job that may burst; it loads this file.

Like sched-burst, it runs in a broker, by Flux's Python, without any package of ours.
"""

import copy
import heapq
import json

from flux.resource import InfeasibleRequest


def is_burstable(jobspec):
    try:
        return bool(jobspec["attributes"]["system"].get("burstable"))
    except (AttributeError, KeyError, TypeError):
        return False


def without_lent(jobspec, lent):
    """Return the jobspec with a constraint that excludes ranks with this property.

    The jobspec itself is returned if its constraint excludes them already.
    """
    attributes = jobspec["attributes"]
    system = attributes["system"]
    old = system.get("constraints") or None
    if _keeps_off(old, lent):
        return jobspec
    part = keeping_off(lent)
    changed = {**system, "constraints": {"and": [part, old]} if old else part}
    return {**jobspec, "attributes": {**attributes, "system": changed}}


def keeping_off(lent):
    """Return the constraint that no rank with this property meets."""
    return {"properties": [f"^{lent}"]}


def _keeps_off(constraint, lent):
    """Tell whether no rank with this property can match a constraint (RFC 31)."""
    if not isinstance(constraint, dict) or len(constraint) != 1:
        return False
    ((operator, operands),) = constraint.items()
    if not isinstance(operands, list):
        return False
    if operator == "properties":
        return f"^{lent}" in operands
    return operator == "and" and any(_keeps_off(each, lent) for each in operands)


def restricted(request, *expressions):
    """Return the request with further constraints, which are evaluated first."""
    if request.constraint:
        expressions = (*expressions, request.constraint)
    narrowed = copy.copy(request)
    narrowed.constraint = {"and": list(expressions)}
    return narrowed


def fits(pool, request):
    """Tell whether the pool could meet the request if all of it were up and idle."""
    try:
        pool.check_feasibility(request)
    except InfeasibleRequest:
        return False
    return True


def first(heap, count):
    """Return the first `count` entries of a heap, in order, without sorting all."""
    found, open_ = [], [(heap[0], 0)] if heap else []
    while open_ and len(found) < count:
        job, at = heapq.heappop(open_)
        found.append(job)
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(heap):
                heapq.heappush(open_, (heap[child], child))
    return found


class BurstJob:
    """A pending job that may burst."""

    __slots__ = ("job", "key", "lent", "own")

    def __init__(self, job, lent):
        request = job.resource_request
        self.job = job
        self.lent = restricted(request, {"properties": [lent]})
        self.own = restricted(request, keeping_off(lent))
        # Jobs with equal keys fit, or do not fit, alike. The key has the whole text of
        # the resources, since both ends of a range of nodes or slots matter.
        self.key = (
            str(request.jobspec["resources"]),
            json.dumps(request.constraint, sort_keys=True),
        )
        # The shipped scheduler must see this request wherever the job is in its queue.
        job.resource_request = self.own

    def evaluate(self, pool):
        """Raise what its constraints raise on any rank, so that they never do later.

        It does not matter here whether the job fits: the daemon judges that.
        """
        fits(pool, self.lent)
        fits(pool, self.own)

    def order(self):
        return -self.job.priority, self.job.jobid
