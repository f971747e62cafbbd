# SPDX-License-Identifier: MIT
"""The pod that tries to connect to the lead, and the meaning of its result.

It has the followers' image, user and nodes, which decide how it reaches the lead. It is
made by a Job, which Kubernetes ends at its deadline and then deletes, even if the pod
finds no node and no process of ours runs. It has no secret: it only connects.
"""

from __future__ import annotations

import msgspec

from burst.kits import tcp
from burst.kits.kube.kinds import Manifest
from burst.kits.pods import pod
from burst.kits.pods.containers import PROBE, state_of
from burst.kits.pods.names import HOSTS, Tags
from burst.kits.pods.overlay import merge_pod, without_containers
from burst.kits.pods.settings import OfferTable, PodSettings
from burst.model.finding import Finding, note, wrong
from burst.model.lead import LeadIdentity

# The longest wait for a node, however long followers may wait.
_LONGEST_S = 600.0
# After so many more seconds the cluster itself ends it, and later deletes it.
_GRACE_S = 60
_KEPT_S = 60


class ProbeResult(msgspec.Struct, frozen=True):
    """The exit status and the output of the pod's program."""

    status: int
    said: str = ""


def render_probe(
    name: str, lead: LeadIdentity, settings: PodSettings, tags: Tags
) -> Manifest:
    """Return the Job. Raises Refused.

    It requests nodes of the first offer.
    """
    embedded = lead.kind == "embedded"
    python = [settings.python] if embedded else [settings.flux, "python"]
    arguments = tcp.arguments(lead.endpoint, *python)
    table = next(iter(settings.offers.values()))
    meta: Manifest = {
        "name": name,
        "namespace": settings.namespace,
        "labels": tags.labels(name),
        "annotations": {HOSTS: PROBE},
    }
    container = _container(table, settings)
    container["args"] = arguments
    inside = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        **pod.base(table, settings),
        "containers": [container],
        "volumes": pod.host_volumes(settings),
    }
    if settings.form == "operator" and settings.user is None:
        # The operator's pods run as the image's user.
        del inside["securityContext"]
    template: Manifest = {
        "metadata": {"labels": meta["labels"], "annotations": meta["annotations"]},
        "spec": inside,
    }
    overlays = map(without_containers, (settings.pod, table.pod))
    job: Manifest = {
        "completions": 1,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": round(deadline_of(settings)) + _GRACE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": merge_pod(template, *overlays),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def _container(table: OfferTable, settings: PodSettings) -> Manifest:
    resources: Manifest = {"requests": {"cpu": "10m"}}
    if table.memory:
        # A quota may require limits, which followers then have too.
        resources["limits"] = {"memory": "64Mi"}
    return {
        "name": PROBE,
        **pod.container(settings),
        "command": ["/bin/sh", "-c", tcp.SCRIPT, "sh"],
        # Its output is then in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": resources,
        "volumeMounts": pod.host_mounts(settings),
    }


def deadline_of(settings: PodSettings) -> float:
    """Return how many seconds the pod may wait for a node."""
    return min(settings.schedule, _LONGEST_S)


def result_of(pod: Manifest) -> ProbeResult | None:
    """Return the result of the pod's program; None if it has not ended."""
    ended = state_of(pod).get("terminated")
    if ended is None:
        return None
    return ProbeResult(ended.get("exitCode", -1), ended.get("message", ""))


def judge(end: ProbeResult, endpoint: str) -> Finding:
    """Return the finding for a result."""
    if end.status == tcp.NO_PROGRAM:
        return note(
            f"cannot try whether a pod there reaches {endpoint}: the image has"
            " neither bash nor Python",
            "the first burst will show it",
        )
    found = tcp.judge(end.status, end.said, endpoint, "a pod there", "pods")
    if found.advice == tcp.UNKNOWN:
        return wrong(found.what, "check that the image runs on those nodes")
    return found


def judge_silence(endpoint: str, seconds: float) -> Finding:
    """Return the finding for a pod that has run for so long without a result."""
    return tcp.judge_silence(seconds, endpoint, "a pod there", "pods")
