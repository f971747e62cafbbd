# SPDX-License-Identifier: MIT
"""Runs a pod that tries to connect to the lead, waits for its result, deletes it."""

from __future__ import annotations

import math
import os
import secrets
import time
from collections.abc import Callable, Sequence

import msgspec

from burst.errors import InsufficientCapacity, NotFound, ProviderError, Refused
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, POD, Manifest
from burst.kits.pods.diagnose.guest_probe import Guest, guest_objects
from burst.kits.pods.diagnose.probe_job import (
    ProbeResult,
    deadline_of,
    judge,
    judge_facts,
    judge_silence,
    probe_meta,
    render_probe,
    result_of,
)
from burst.kits.pods.lifecycle.creator import owned_by
from burst.kits.pods.lifecycle.reaper import Reaper
from burst.kits.pods.names import Tags
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_objects import group_by_burst
from burst.kits.pods.status.describe import describe, followers
from burst.kits.pods.status.kept_object import kept
from burst.kits.pods.status.read_events import read_warnings
from burst.kits.pods.template.containers import PROBE
from burst.model.burst import BurstId
from burst.model.finding import Finding, wrong
from burst.model.lead import LeadIdentity
from burst.provider import BurstStatus, Phase

# The kubelet has failed more than once to pull the image. A burst would wait longer, as
# somebody may repair it.
_GIVEN_UP = "ImagePullBackOff"


class ProbeTiming(msgspec.Struct, frozen=True):
    """The time limits of a probe, in seconds, and its clock."""

    answer: float = 120.0
    """From the pod's start to its result. It takes a tenth of a second if the node is
    not busy. As silence is reported as a fault, a busy node gets a thousand times as
    long."""
    removal: float = 120.0
    """Until the deletion of the probe has to be confirmed."""
    every: float = 0.5
    """Pause between two requests."""
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


class Probe:
    """Runs one probe in one pod. If it is not deleted, `burst gc` lists its id."""

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        tags: Tags,
        timing: ProbeTiming | None = None,
        guest: Guest | None = None,
    ) -> None:
        """With a guest, it also checks whether that user's jobs could run there."""
        self._guest = guest
        self._cluster = cluster
        self._settings = settings
        self._tags = tags
        self._timing = timing or ProbeTiming()
        self.id = BurstId(f"burst-{PROBE}-{secrets.token_hex(3)}")

    def run(self, lead: LeadIdentity, tell: Callable[[str], None]) -> Sequence[Finding]:
        """Return whether the pod reaches the lead, and what else it found.

        `tell` is called with each step. The Job is deleted in any case, even after
        KeyboardInterrupt. Raises ProviderError.
        """
        guest, settings = self._guest, self._settings
        meta = probe_meta(self.id, settings, self._tags)
        mounted = guest_objects(meta, lead, settings, guest) if guest else []
        job = render_probe(self.id, lead, settings, self._tags, guest)
        declined = False
        try:
            try:
                made = self._cluster.apply(job)
            except (InsufficientCapacity, Refused):
                declined = True
                raise
            for other in mounted:
                self._cluster.create(owned_by(other, made))
            if mounted:
                start: Manifest = {"metadata": {}, "spec": {"suspend": False}}
                self._cluster.merge(made, start)
            return self._await(lead, tell)
        finally:
            # Delete it even if it is not known whether it was made.
            if not declined:
                tell(f"{self.id}: {self._remove()}")

    def _await(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Wait for the result, or until it is clear that there will be none."""
        timing, clock, said = self._timing, self._timing.clock, ""
        begun, started = clock(), math.inf
        while True:
            end, status = self._look()
            if end is not None:
                found = judge_facts(end, lead, os.uname().machine, self._guest)
                return [judge(end, lead.endpoint), *found]
            if status is None:
                return [
                    wrong(
                        f"{self.id} was deleted before it had an answer",
                        "try again; burst gc --yes, for one, deletes what no record"
                        " explains",
                    )
                ]
            why = status.why or "tries to reach the lead"
            if why != said:
                tell(f"{self.id}: {why}")
                said = why
            late = clock() - begun > deadline_of(self._settings)
            if status.phase is Phase.RUNNING:
                started = min(started, clock())
                if clock() - started > timing.answer:
                    return [judge_silence(lead.endpoint, timing.answer)]
            elif late or status.phase is Phase.FAILED or _GIVEN_UP in why:
                return [
                    wrong(
                        f"no pod could try to connect to the lead: {why}",
                        "repair this first, as followers would not run either",
                    )
                ]
            timing.pause(timing.every)

    def _look(self) -> tuple[ProbeResult | None, BurstStatus | None]:
        """Return the probe's result and status; None for both if it was deleted."""
        labels, namespace = self._tags.labels(self.id), self._settings.namespace
        found = group_by_burst(
            kept(item)
            for kind in (JOB, POD)
            for item in self._cluster.find(kind, namespace, labels)
        )
        if not found:
            return None, None
        end = next(filter(None, map(result_of, found[0].of(POD.name))), None)
        words = [word for word, _ in followers(found[0]).values()]
        warnings = read_warnings(self._cluster, namespace, words)
        schedule = self._settings.schedule
        return end, describe(found[0], warnings, {}, schedule, self._time_there())

    def _time_there(self) -> float:
        """Return the API server's time, to compare with the times of its objects."""
        return time.time() + self._cluster.ahead

    def _remove(self) -> str:
        """Delete the probe's objects; return the outcome as text."""
        reaper = Reaper(self._cluster, self._settings, self._tags)
        ends = self._timing.clock() + self._timing.removal
        why = "its deletion is not confirmed"
        while self._timing.clock() < ends:
            try:
                reaper.reap(self.id, self._time_there())
            except NotFound:
                return "is removed"
            except ProviderError as error:
                why = error.what
            self._timing.pause(self._timing.every)
        return f"may be left: {why}; the cluster deletes it, or run `burst gc --yes`"
