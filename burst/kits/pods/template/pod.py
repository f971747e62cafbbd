# SPDX-License-Identifier: MIT
"""The parts of a pod that the forms job and operator share."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping

from burst.errors import SpecRefused
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import LEASE, OWNER
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.munge import munge_data
from burst.kits.pods.template.site_pod import pull_policy, variables
from burst.provider import BurstSpec

CERTIFICATE = "curve.cert"
"""The name of the certificate in the Secret, and of its copy."""
# Capabilities of flux-imp: it becomes the user, and signals the user's processes.
_OF_IMP = ("KILL", "SETGID", "SETUID")
# Memory request and limit for each core, if an offer names none: what the smallest
# machines of clouds can give, and all that usual ones have for a core of two vCPUs.
_REQUEST_MI, _LIMIT_GI = 512, 8
LEFT_ALONE = {
    # Autoscalers drain nodes of little use, and would take a job's nodes from it.
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}


def pod_annotations(meta: Manifest) -> dict[str, str]:
    """Return the annotations of a follower's pod.

    The lease is left out: it counts from the creation of the object, but the pod may
    replace an earlier one.
    """
    noted = {key: text for key, text in meta["annotations"].items() if key != LEASE}
    return {**noted, **LEFT_ALONE}


def secret_of(
    meta: Manifest, texts: Mapping[str, str], settings: PodSettings
) -> Manifest:
    """Return the Secret with these texts and the munge key. Raises Refused."""
    data = {key: base64.b64encode(texts[key].encode()).decode() for key in texts}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "Opaque",
        "data": {**data, **munge_data(settings)},
    }


def offer_table_for(spec: BurstSpec, settings: PodSettings) -> OfferTable:
    """Return the table of the spec's offer. Raises SpecRefused if it does not fit."""
    table = settings.offers.get(spec.offer)
    if table is None:
        raise SpecRefused(
            f"there is no offer {spec.offer!r}",
            "there are " + ", ".join(sorted(settings.offers)),
        )
    count = len(spec.hosts)
    if count > table.max_nodes:
        raise SpecRefused(
            f"{count} nodes of {spec.offer}, which has at most {table.max_nodes}",
            "raise max_nodes of the offer if the cluster can run more",
        )
    if table.cores < spec.shape.cores or table.gpus < spec.shape.gpus:
        raise SpecRefused(
            f"{spec.offer} has fewer cores or GPUs than the lead's R has for these"
            f" ranks, {spec.shape}",
            "set cores and gpus of the offer, or declare fewer in the lead's R: jobs"
            " would get cores that do not exist",
        )
    return table


def user_of(settings: PodSettings) -> int:
    """Return the numeric user that brokers run as."""
    return os.geteuid() if settings.user is None else settings.user


def resources(table: OfferTable, settings: PodSettings) -> Manifest:
    """Return a pod's resource requests and limits."""
    request = table.memory or f"{table.cores * _REQUEST_MI}Mi"
    requests: dict[str, str | int] = {
        "cpu": table.cpu or str(table.cores),
        "memory": request,
    }
    limits: dict[str, str | int] = {"memory": memory_limit(table)}
    if table.gpus:
        requests[settings.gpu_resource] = limits[settings.gpu_resource] = table.gpus
    return {"requests": requests, "limits": limits}


def memory_limit(table: OfferTable) -> str:
    """Return the memory limit of a follower; its volumes in memory count towards it."""
    return table.memory or f"{table.cores * _LIMIT_GI}Gi"


def small_resources() -> Manifest:
    """Return requests and limits of a container that does little.

    They are set as a quota may demand limits of each container.
    """
    requests = {"cpu": "10m", "memory": "32Mi"}
    return {"requests": requests, "limits": {"memory": "256Mi"}}


def spread(settings: PodSettings, labels: dict[str, str]) -> Manifest:
    """Return the fields of a pod's spec that spread pods over nodes."""
    node = "kubernetes.io/hostname"
    if settings.one_per_node:
        others = {"matchExpressions": [{"key": OWNER, "operator": "Exists"}]}
        # An empty selector selects all namespaces; without it, only the pod's own one.
        everywhere: Manifest = {}
        term = {
            "labelSelector": others,
            "namespaceSelector": everywhere,
            "topologyKey": node,
        }
        anti = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        return {"affinity": {"podAntiAffinity": anti}}
    constraint = {
        "maxSkew": 1,
        "topologyKey": node,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    return {"topologySpreadConstraints": [constraint]}


def pod_security(settings: PodSettings) -> Manifest:
    """Return a pod's securityContext."""
    user = user_of(settings)
    context: Manifest = {
        "runAsUser": user,
        "runAsNonRoot": user != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if settings.multi_user:
        # No fsGroup: it would give all volumes, even homes, to that group. The group is
        # set, as a user whom the image does not know would get root's.
        return {**context, "runAsGroup": user}
    # Without it only root could read the mounted certificate.
    return {**context, "fsGroup": user} if user else context


def container_security(settings: PodSettings) -> Manifest:
    """Return a container's securityContext.

    It is empty with `security = "baseline"`, except with `multi_user`.
    """
    if settings.multi_user:
        # A process of the followers' user has none of these, but the setuid IMP has.
        return {
            "allowPrivilegeEscalation": True,
            "capabilities": {"drop": ["ALL"], "add": list(_OF_IMP)},
        }
    if settings.security == "baseline":
        return {}
    context: Manifest = {"allowPrivilegeEscalation": False}
    if settings.form == "job":  # the operator's scripts write to the root filesystem
        context["readOnlyRootFilesystem"] = True
    # Root without capabilities could not read other users' files on a host path.
    return context | ({"capabilities": {"drop": ["ALL"]}} if user_of(settings) else {})


def base(settings: PodSettings) -> Manifest:
    """Return the fields of a pod's spec for its service account and user."""
    return {
        # Followers do not use the API server.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(settings),
    }


def container(settings: PodSettings) -> Manifest:
    """Return the image, environment and securityContext of a container."""
    return {
        "image": settings.image,
        "imagePullPolicy": pull_policy(settings.pod),
        "env": variables(settings.pod),
        "securityContext": container_security(settings),
    }
