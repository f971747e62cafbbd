# SPDX-License-Identifier: MIT
"""Determines the status of a follower from the status of its pod.

Sources: the Kubernetes documentation, "Pod Lifecycle" and "Disruptions" (pod
disruption conditions), "Pod Priority and Preemption", and KEP-2000 (graceful node
shutdown).
"""

from __future__ import annotations

import re

import msgspec

from burst.kits.join_errors import main_lines
from burst.kits.pods.status.kept_object import (
    Condition,
    ContainerState,
    ContainerStatus,
    ContainerWaiting,
    KeptObject,
    Terminated,
    seconds_of,
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
PREEMPTION = "was preempted by pods of a higher priority"
# By the reason of the end of a whole pod: how it ended, and what was taken from it.
# place: by other pods. node: it is tainted or drained, as before it is taken away, or
# is gone. shutdown: the kubelet also gives these reasons for lack of memory or disk;
# in a graceful shutdown its message has "in response to imminent node shutdown".
_ENDS = {
    "PreemptionByScheduler": (PREEMPTION, "place"),
    "Preempting": (PREEMPTION, "place"),
    "DeletionByTaintManager": ("was evicted from a node with a new taint", "node"),
    "EvictionByEvictionAPI": ("was evicted, as when a node is drained", "node"),
    "TerminationByKubelet": ("was ended by its node", "shutdown"),
    "Terminated": ("was ended with its node", "shutdown"),
    "NodeShutdown": ("was ended with its node", "shutdown"),
    "Shutdown": ("was ended with its node", "shutdown"),
    "Evicted": ("was evicted by its node", ""),
    "DeletionByPodGC": ("was lost with its node", "node"),
    "NodeLost": ("was lost with its node", "node"),
}
FOLLOWS_S = 60.0
"""Seconds from the end of a pod to the next pod, at most: it is made once the previous
pod has ended, which takes at most its grace period."""
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


def pod_status_of(pod: KeptObject) -> PodStatus:
    """Return the status of the follower in the pod."""
    if has_ended(pod):
        # The Job makes another pod in its place, unless the Job itself ends.
        return PodStatus(Phase.PENDING, disruption_of(pod) or "is ending")
    if pod.phase == "Succeeded":
        return _ENDED
    # Only the broker's container counts; others may end, fail and be restarted.
    broker = pod.broker
    if broker.restart_count or broker.state.terminated:
        return _restarted(pod, broker)
    if broker.state.running:
        return PodStatus(Phase.RUNNING)
    unready = pod.unready_init
    if unready is not None:
        return _initializing(pod, unready)
    return _pending(pod, broker.state)


def has_ended(pod: KeptObject) -> bool:
    """Tell whether a whole pod is being deleted or has failed."""
    return pod.ending or pod.phase == "Failed"


def _initializing(pod: KeptObject, init: ContainerStatus) -> PodStatus:
    """Return the status of a pod whose broker waits for an init container.

    The Flux Operator adds an init container with an image of its own.
    """
    if init.state.running:
        words = f"waits for its init container {init.name}"
        return PodStatus(Phase.PENDING, words)
    if words := end_of_init(init):
        return PodStatus(Phase.PENDING, words)
    return _pending(pod, init.state, init.image)


def end_of_init(init: ContainerStatus) -> str:
    """Return how an init container ended, by its status; empty if it did not."""
    ended = init.state.terminated or init.last_state.terminated
    if ended is None:
        return ""
    words = f"its init container {init.name} ended with exit status {ended.status}"
    return shorten(f"{words}: {ended.message}" if ended.message else words)


def last_words(log: str) -> str:
    """Return the end of a broker's log as one line."""
    lines = [line for line in main_lines(log) if line]
    return shorten(" / ".join(lines[-_LAST_LINES:]))


def is_reclaimed(pod: KeptObject) -> bool:
    """Tell whether a pod ended because its node or its place was taken back.

    If the node is not a spot node, its loss is a failure instead.
    """
    reason, message = _end_of(pod)
    _, taken = _ENDS.get(reason, ("", ""))
    lost = taken == "node" or (taken == "shutdown" and "shutdown" in message)
    return taken == "place" or (lost and pod.metadata.annotations.spot is not None)


def _end_of(pod: KeptObject) -> tuple[str, str]:
    """Return reason and message of the end of a whole pod; each empty if not known."""
    target, status = pod.condition("DisruptionTarget"), pod.status
    return target.reason or status.reason, target.message or status.message


def disruption_of(pod: KeptObject) -> str:
    """Return who ended the whole pod, and why; empty if nobody did."""
    reason, message = _end_of(pod)
    what, _ = _ENDS.get(reason, (f"ended: {reason}" if reason else "", ""))
    return shorten(f"{what}: {message}" if what and message else what)


def end_words(pod: KeptObject, ended: Terminated) -> str:
    """Return how a container of the pod ended, by its status."""
    words = f"exit status {ended.status}"
    if ended.reason == "OOMKilled":
        most = pod.container.memory
        limit = f"its limit of {most}" if most else "its node had left"
        return f"{words}, OOMKilled: it used more memory than {limit}"
    usual = ended.reason in ("", "Error", "Completed")
    return words if usual else f"{words}, {ended.reason}"


def _restarted(pod: KeptObject, broker: ContainerStatus) -> PodStatus:
    """Return the status of a pod whose broker has ended at least once.

    The kubelet starts it again only if it ended with an error.
    """
    ended = broker.state.terminated or broker.last_state.terminated or Terminated()
    if ended.exit_code == 0 and broker.state.terminated:
        return _ENDED
    how = end_words(pod, ended)
    if broker.state.running:
        restarts = broker.restart_count
        times = "once" if restarts == 1 else f"{restarts} times"
        return PodStatus(Phase.RUNNING, f"was restarted {times}, last after {how}")
    return PodStatus(Phase.RUNNING, f"ended with {how}; is started again", crashed=True)


def _unscheduled(scheduled: Condition, nominated: str) -> PodStatus:
    """Return the status of a pod without a node, from its condition PodScheduled.

    `nominated` is the node that the scheduler has chosen, on which other pods have to
    end first; empty if there is none.
    """
    since = seconds_of(scheduled.last_transition_time)
    reason, message = scheduled.reason or "", scheduled.message or ""
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


def _pending(pod: KeptObject, state: ContainerState, image: str = "") -> PodStatus:
    waiting = state.waiting or ContainerWaiting()
    reason, message = waiting.reason, waiting.message
    scheduled = pod.condition("PodScheduled")
    if scheduled.status == "False":
        return _unscheduled(scheduled, pod.status.nominated_node_name)
    if reason in _NO_IMAGE:
        image = image or pod.container.image
        words = shorten(f"image {image} cannot be pulled: {reason}: {message}")
        hopeless = Phase.FAILED if reason in _HOPELESS else Phase.PENDING
        return PodStatus(hopeless, words)
    if not pod.node:
        return PodStatus(Phase.PENDING, WAITS)
    if reason and reason not in _CREATING:
        return PodStatus(Phase.PENDING, shorten(f"{reason}: {message}".rstrip(": ")))
    return PodStatus(Phase.PENDING, STARTING)
