# SPDX-License-Identifier: MIT
"""Determines the status of a follower from the status of its pod.

Sources: the Kubernetes documentation, "Pod Lifecycle" and "Disruptions".
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from burst.kits.join_errors import main_lines
from burst.kits.kube.kinds import Manifest, is_ending
from burst.kits.pods.template.containers import (
    container_of,
    container_status_of,
    first_unready_init,
)
from burst.kits.shorten import shorten
from burst.model.decision import exact_moment
from burst.provider import Phase

STARTING = "is being started"
WAITS = "waits for a node"
"""For a pod that no scheduler has considered yet."""
# By the reason of the condition PodScheduled. The last two are Volcano's: it starts no
# pod of a gang before all of them have a node.
_UNSCHEDULED = {
    "SchedulingGated": "is not scheduled before its scheduling gates are removed",
    "SchedulerError": "is not scheduled, as the scheduler has failed",
    "Schedulable": "fits a node, and waits for the rest of its gang",
    "Undetermined": "waits for the rest of its gang",
}
_GANG = re.compile(r"\bin gang\b|pod group is not ready")
_TAINT = "untolerated taint"
_TOLERATE = "`tolerations` in `pod` let followers onto nodes with a taint"
# The last lines to report: a broker that cannot join logs its shutdown after the
# reason.
_LAST_LINES = 8
# The cluster does not recover from these by itself.
_HOPELESS = ("InvalidImageName", "ErrImageNeverPull")
_CREATING = ("ContainerCreating", "PodInitializing")
_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", *_HOPELESS)


class PodStatus(msgspec.Struct, frozen=True):
    """The status of the follower in a pod."""

    phase: Phase
    why: str = ""
    since: float = 0.0
    """Since when it waits for capacity, in seconds since the epoch; 0 if it does
    not."""
    crashed: bool = False
    """Whether its broker ended at least once, so that its log may say why."""
    reclaimed: bool = False
    """Whether its node, or its place on the node, was taken back for others."""
    lost: str = ""
    """What ended its previous pod; empty once the next one runs."""
    before: str = ""
    """The end of the previous pod, to put before `why`. `why` is about the present pod,
    and events and queues may add to it."""

    def whole(self) -> PodStatus:
        """Return the status with `before` moved into `why`."""
        return msgspec.structs.replace(self, why=f"{self.before}{self.why}", before="")


_ENDED = PodStatus(Phase.FAILED, "its broker has ended", crashed=True)


def pod_status_of(pod: Manifest) -> PodStatus:
    """Return the status of the follower in the pod."""
    phase = phase_of(pod)
    if is_ending(pod) or phase == "Failed":
        # The Job makes another pod in its place, unless the Job itself ends.
        return PodStatus(Phase.PENDING, disruption_of(pod) or "is ending")
    if phase == "Succeeded":
        return _ENDED
    # Only the broker's container counts; others may end, fail and be restarted.
    container = container_status_of(pod)
    state = container.get("state") or {}
    restarts = container.get("restartCount", 0)
    if restarts or "terminated" in state:
        return _restarted(pod, container, restarts)
    if "running" in state:
        return PodStatus(Phase.RUNNING)
    unready = first_unready_init(pod)
    if unready is not None:
        return _initializing(pod, unready)
    return _pending(pod, state.get("waiting") or {})


def _initializing(pod: Manifest, init: Manifest) -> PodStatus:
    """Return the status of a pod whose broker waits for an init container.

    The Flux Operator adds an init container with an image of its own.
    """
    state = init.get("state") or {}
    if "running" in state:
        words = f"waits for its init container {init.get('name')}"
        return PodStatus(Phase.PENDING, words)
    if words := end_of_init(init):
        return PodStatus(Phase.PENDING, words)
    return _pending(pod, state.get("waiting") or {}, init.get("image", ""))


def end_of_init(init: Manifest) -> str:
    """Return how an init container ended, by its status; empty if it did not."""
    states = ((init.get(key) or {}).get("terminated") for key in ("state", "lastState"))
    ended = next(filter(None, states), None)
    if ended is None:
        return ""
    code = ended.get("exitCode", "unknown")
    words = f"its init container {init.get('name')} ended with exit status {code}"
    message = ended.get("message")
    return shorten(f"{words}: {message}" if message else words)


def seconds_of(time: str) -> float:
    """Return a time of Kubernetes in seconds since the epoch; 0 for an empty one."""
    return datetime.fromisoformat(time).timestamp() if time else 0.0


def made_at(manifest: Manifest) -> float:
    """Return when an object was made, in seconds since the epoch; 0 if not known."""
    return seconds_of(manifest["metadata"].get("creationTimestamp") or "")


def phase_of(pod: Manifest) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase", "Pending"))


def last_words(log: str) -> str:
    """Return the end of a broker's log as one line."""
    lines = [line for line in main_lines(log) if line]
    return shorten(" / ".join(lines[-_LAST_LINES:]))


def _condition(status: Manifest, kind: str) -> Manifest:
    found = (c for c in status.get("conditions") or [] if c.get("type") == kind)
    return next(found, {})


def end_of_pod(pod: Manifest) -> tuple[str, str]:
    """Return reason and message of the end of a whole pod; each empty if not known."""
    status = pod.get("status") or {}
    target = _condition(status, "DisruptionTarget")
    reason = target.get("reason") or status.get("reason") or ""
    return reason, target.get("message") or status.get("message") or ""


def disruption_of(pod: Manifest) -> str:
    """Return who ended the whole pod, and why; empty if nobody did."""
    reason, message = end_of_pod(pod)
    what = {
        "PreemptionByScheduler": "was preempted by pods of a higher priority",
        "Preempting": "was preempted by pods of a higher priority",
        "DeletionByTaintManager": "was evicted from a node with a new taint",
        "EvictionByEvictionAPI": "was evicted, as when a node is drained",
        "TerminationByKubelet": "was ended by its node",
        "Terminated": "was ended with its node",
        "NodeShutdown": "was ended with its node",
        "Shutdown": "was ended with its node",
        "Evicted": "was evicted by its node",
        "DeletionByPodGC": "was lost with its node",
        "NodeLost": "was lost with its node",
    }.get(reason, f"ended: {reason}" if reason else "")
    return shorten(f"{what}: {message}" if what and message else what)


def end_words(pod: Manifest, ended: Manifest) -> str:
    """Return how a container of the pod ended, by its status."""
    code, reason = ended.get("exitCode", "unknown"), ended.get("reason")
    words = f"exit status {code}"
    if reason == "OOMKilled":
        limits = (container_of(pod).get("resources") or {}).get("limits") or {}
        most = limits.get("memory")
        limit = f"its limit of {most}" if most else "its node had left"
        return f"{words}, OOMKilled: it used more memory than {limit}"
    return words if reason in (None, "Error", "Completed") else f"{words}, {reason}"


def _restarted(pod: Manifest, container: Manifest, restarts: int) -> PodStatus:
    """Return the status of a pod whose broker has ended at least once.

    The kubelet starts it again only if it ended with an error.
    """
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    if ended.get("exitCode") == 0 and "terminated" in state:
        return _ENDED
    how = end_words(pod, ended)
    if "running" in state:
        times = "once" if restarts == 1 else f"{restarts} times"
        return PodStatus(Phase.RUNNING, f"was restarted {times}, last after {how}")
    return PodStatus(Phase.RUNNING, f"ended with {how}; is started again", crashed=True)


def _unscheduled(scheduled: Manifest, nominated: str) -> PodStatus:
    """Return the status of a pod without a node, from its condition PodScheduled.

    `nominated` is the node that the scheduler has chosen, on which other pods have to
    end first; empty if there is none.
    """
    since = seconds_of(scheduled.get("lastTransitionTime") or "")
    reason, message = scheduled.get("reason") or "", scheduled.get("message") or ""
    what = _UNSCHEDULED.get(reason, "finds no node")
    if nominated:
        at = f" (since {exact_moment(since)})" if since else ""
        what = f"is nominated for node {nominated}{at}, and waits for room there"
    elif _GANG.search(message):
        what = "waits until there is room for its whole gang"
    words = shorten(f"{what}: {message or reason}".removesuffix(": "))
    if _TAINT in message:
        words += f"; {_TOLERATE}"
    return PodStatus(Phase.PENDING, words, since=since)


def _pending(pod: Manifest, waiting: Manifest, image: str = "") -> PodStatus:
    status = pod.get("status") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return _unscheduled(scheduled, status.get("nominatedNodeName") or "")
    if reason in _NO_IMAGE:
        image = image or container_of(pod).get("image", "")
        words = shorten(f"image {image} cannot be pulled: {reason}: {message}")
        hopeless = Phase.FAILED if reason in _HOPELESS else Phase.PENDING
        return PodStatus(hopeless, words)
    if not pod["spec"].get("nodeName"):
        return PodStatus(Phase.PENDING, WAITS)
    if reason and reason not in _CREATING:
        return PodStatus(Phase.PENDING, shorten(f"{reason}: {message}".rstrip(": ")))
    return PodStatus(Phase.PENDING, STARTING)
