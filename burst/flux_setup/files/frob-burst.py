# SPDX-License-Identifier: MIT
"""Flux frobnicator: keeps jobs that do not burst off nodes that are lent to others.

Where burst jobs wait in a queue, it sends burstable jobs there that name no queue.

Of the lead's configuration it reads, all of it optional:

    [ingest.frobnicator.burst]
    any_job = false             # true: all jobs may run on lent nodes
    attribute = "burstable"     # of attributes.system, marks a job that may burst
    property = "burst"          # of R, marks lent ranks
    queue = "burst"             # the queue in which burstable jobs wait
    ready = "burst-ready"       # the queue into which only the daemon moves jobs
"""

from flux.job.frobnicator import FrobnicatorPlugin


class Frobnicator(FrobnicatorPlugin):
    """Adds the constraint `^burst` to jobs that are not burstable."""

    def configure(self, args, config):
        table = config.get("ingest", {}).get("frobnicator", {}).get("burst", {})
        # `share` is what the release before this one wrote.
        self._any_job = bool(table.get("any_job", table.get("share", False)))
        self._attribute = table.get("attribute", "burstable")
        self._lent = table.get("property", "burst")
        self._queue = table.get("queue", "")
        self._ready = table.get("ready", "")
        self._queues = config.get("queues", {})
        defaults = config.get("policy", {}).get("jobspec", {}).get("defaults", {})
        self._default = defaults.get("system", {}).get("queue", "")

    def frob(self, jobspec, userid, urgency, flags):
        queue = jobspec.queue
        if queue and queue == self._ready:
            raise ValueError(
                f"queue {queue} is for jobs whose nodes are online; submit with"
                " flux submit --burst"
            )
        system = jobspec.attributes["system"]
        if system.get(self._attribute):
            # The plugin `defaults` may have been here before, so a job that names the
            # default queue cannot be told from one that names none.
            if self._queue and (not queue or queue == self._default):
                self._into_queue(jobspec)
            return
        if self._any_job:
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

    def _into_queue(self, jobspec):
        """Send a burstable job to the queue in which it waits for its nodes."""
        if jobspec.attributes["system"].get("constraints"):
            raise ValueError(
                "on this instance a burstable job changes its queue, which Flux allows"
                " only without constraints of its own; submit it without --requires"
            )
        jobspec.setattr("system.queue", self._queue)
