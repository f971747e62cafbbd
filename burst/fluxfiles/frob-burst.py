# SPDX-License-Identifier: MIT
"""Flux frobnicator: keeps jobs that do not burst off nodes that are lent to others.

Of the lead's configuration it reads, all of it optional:

    [ingest.frobnicator.burst]
    share = false               # true: all jobs may run on lent nodes
    attribute = "burstable"     # of attributes.system, marks a job that may burst
    property = "burst"          # of R, marks lent ranks
    ready = "burst-ready"       # the queue into which only the daemon moves jobs
"""

from flux.job.frobnicator import FrobnicatorPlugin


class Frobnicator(FrobnicatorPlugin):
    """Adds the constraint `^burst` to jobs that are not burstable."""

    def configure(self, args, config):
        table = config.get("ingest", {}).get("frobnicator", {}).get("burst", {})
        self._share = bool(table.get("share", False))
        self._attribute = table.get("attribute", "burstable")
        self._lent = table.get("property", "burst")
        self._ready = table.get("ready", "")
        self._queues = config.get("queues", {})

    def frob(self, jobspec, userid, urgency, flags):
        queue = jobspec.queue
        if queue and queue == self._ready:
            raise ValueError(
                f"queue {queue} is for jobs whose nodes are online; submit with"
                " flux submit --burst"
            )
        system = jobspec.attributes["system"]
        if system.get(self._attribute) or self._share:
            return
        requires = self._queues.get(queue, {}).get("requires", []) if queue else []
        if self._lent in requires:
            raise ValueError(
                f"queue {queue} is for burst jobs; submit with flux submit --burst"
            )
        if requires:
            # Its queue says which nodes it may have. With a constraint of its own
            # `flux update` could not move it to another queue any more.
            return
        constraint = {"properties": [f"^{self._lent}"]}
        old = system.get("constraints")
        jobspec.setattr(
            "system.constraints", {"and": [old, constraint]} if old else constraint
        )
