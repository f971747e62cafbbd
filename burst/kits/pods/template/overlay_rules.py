# SPDX-License-Identifier: MIT
"""What `pod` of the settings may not set, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_OURS = "is reserved for burst, which finds bursts by it"
_JOBS = "is reserved for the Job, which tells pods apart by it"

LABELS = {
    "burst.flux-framework.org/": _OURS,
    "batch.kubernetes.io/": _JOBS,
    "job-name": _JOBS,
    "controller-uid": _JOBS,
    "kueue.x-k8s.io/queue-name": "use queue: Kueue would count Job and pod",
}
"""The advice for labels, by how the label's key begins."""
ANNOTATIONS = {
    "burst.flux-framework.org/": _OURS,
    "batch.kubernetes.io/": _JOBS,
}

POD_FIELDS = {
    "restartPolicy": "a Job's way to start brokers again depends on it",
    "subdomain": "names of followers depend on it",
    "hostname": "the Job gives each pod its own",
    "hostnameOverride": "the Job gives each pod its own",
    "setHostnameAsFQDN": "names of followers depend on it",
    "nodeName": "use nodeSelector: all pods would be put on one node",
    "serviceAccount": "use serviceAccountName",
    "automountServiceAccountToken": (
        "users' jobs could use it; mount a projected volume where it is needed"
    ),
    "activeDeadlineSeconds": "use [deadlines] lease",
    "shareProcessNamespace": (
        "other containers could read the certificate under /proc; each has its own"
    ),
    "resources": "use cores, cpu, memory and gpus of the offer, as Flux counts them",
    "ephemeralContainers": "the template of a Job cannot have them",
}

CONTAINER_FIELDS = {
    "command": "starts the broker; use initContainers for what has to run before it",
    "args": "starts the broker; use initContainers for what has to run before it",
    "image": "use image",
    "readinessProbe": "tells whether the instance of an isolated burst is up",
    "terminationMessagePath": "the result of an isolated burst is written there",
    "terminationMessagePolicy": "the result of an isolated burst is its message",
}
"""The advice for fields of the container that runs the broker."""

RESOURCES = {
    "cpu": "use cores and cpu of the offer, as Flux counts them",
    "memory": "use memory of the offer",
}

_BROKERS = "of another broker: followers would use it"
ENVIRONMENT = {
    "JOB_COMPLETION_INDEX": "the Job sets it: it tells which host a pod is",
    "FLUX_URI": f"is the address {_BROKERS}",
}

SOCKET_VOLUME = "socket"
"""The only one of our volumes that other containers may mount."""
OUR_VOLUMES = {
    "config": "has the broker's settings; use another name",
    "secret": "has the certificate; use another name",
    "run": "has the broker's run directory; use another name",
    "munge": "has the munge key; use another name",
    "munge-key": "has the munge key, with multi_user; use another name",
    "users": "has passwd and group, with multi_user; use another name",
    SOCKET_VOLUME: "has the broker's socket; use another name",
    "cwd-": "is a directory of cwd; use another name",
    "host-": "is one of host_paths; use another name",
    "view-": "has Flux, of view; use another name",
}
"""The advice for volumes: a name with a dash at its end stands for all names that begin
with it."""


def find_prefix(name: str, rules: Mapping[str, str]) -> str:
    """Return the advice of the rule for a name; empty if there is none.

    A rule that ends in "/" or "-" applies to all names that begin with it.
    """
    for begin, advice in rules.items():
        if name == begin or (begin[-1] in "/-" and name.startswith(begin)):
            return advice
    return ""
