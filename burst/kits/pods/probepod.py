# SPDX-License-Identifier: MIT
"""The pod that tries whether followers would reach the lead, and what its end means.

It is as followers are, where that bears on the way to the lead: image, user, nodes. It
has a Job around it, as that ends by its deadline and is then deleted even where the pod
never finds a node and nobody of ours lives. Nothing secret is in it: it only connects.
"""

from __future__ import annotations

import msgspec

from burst.kits import tcp
from burst.kits.kube.kinds import Manifest
from burst.kits.pods import pod
from burst.kits.pods.names import HOSTS, Tags
from burst.kits.pods.settings import OfferTable, PodSettings
from burst.model.finding import Finding, note, wrong
from burst.model.lead import LeadIdentity

PROBE = "probe"
"""What it is called where followers have the names of their hosts."""
# Longer nobody waits who asked, whatever followers may take to find a node.
_LONGEST_S = 600.0
# So long after that the cluster itself ends it, and then keeps it.
_GRACE_S = 60
_KEPT_S = 60


class ProbeResult(msgspec.Struct, frozen=True):
    """How the pod's program ended."""

    status: int
    said: str = ""


def render_probe(
    name: str, lead: LeadIdentity, settings: PodSettings, tags: Tags
) -> Manifest:
    """Return the Job. Raises Refused.

    Of several offers it is the first whose nodes are asked for.
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
        # The operator's pods run as whoever the image says.
        del inside["securityContext"]
    job: Manifest = {
        "completions": 1,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "activeDeadlineSeconds": round(deadline_of(settings)) + _GRACE_S,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": {
            "metadata": {"labels": meta["labels"], "annotations": meta["annotations"]},
            "spec": inside,
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def _container(table: OfferTable, settings: PodSettings) -> Manifest:
    resources: Manifest = {"requests": {"cpu": "10m"}}
    if table.memory:
        # Where a quota asks for limits, followers have some too.
        resources["limits"] = {"memory": "64Mi"}
    return {
        "name": PROBE,
        **pod.container(settings),
        "command": ["/bin/sh", "-c", tcp.SCRIPT, "sh"],
        # What it says is then in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": resources,
        "volumeMounts": pod.host_mounts(settings),
    }


def deadline_of(settings: PodSettings) -> float:
    """Return how many seconds the pod may take to run."""
    return min(settings.schedule, _LONGEST_S)


def result_of(pod: Manifest) -> ProbeResult | None:
    """Return how the pod's program ended, None if it did not."""
    containers = (pod.get("status") or {}).get("containerStatuses") or [{}]
    ended = (containers[0].get("state") or {}).get("terminated")
    if ended is None:
        return None
    return ProbeResult(ended.get("exitCode", -1), ended.get("message", ""))


def judge(end: ProbeResult, endpoint: str) -> Finding:
    """Say what came of it."""
    if end.status == tcp.NO_PROGRAM:
        return note(
            f"whether a pod there reaches {endpoint} cannot be tried: the image has"
            " neither bash nor Python",
            "the first burst will tell",
        )
    found = tcp.judge(end.status, end.said, endpoint, "a pod there", "pods")
    if found.advice == tcp.UNKNOWN:
        return wrong(found.what, "see that the image runs on those nodes")
    return found


def judge_silence(endpoint: str, seconds: float) -> Finding:
    """Say that the pod has run for so long without an answer."""
    return tcp.judge_silence(seconds, endpoint, "a pod there", "pods")
