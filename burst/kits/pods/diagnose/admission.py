# SPDX-License-Identifier: MIT
"""Asks the API server by dry runs whether it would admit the followers' pods.

With `dryRun=All` a request is validated and goes through admission; nothing is stored.
The admission of a Job does not judge its pods, except for warnings about Pod Security
Standards: a namespace that enforces a standard denies pods, not the Job that makes
them. The API server only warns about the Job, if the namespace's labels ask for
warnings. Pods themselves are sent too if the credentials may create pods, as those of a
person may; the daemon's may not.

Source: the Kubernetes documentation, "Pod Security Admission" and "Pod Security
Standards".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    SpecRefused,
    Transient,
)
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import JOB, MINICLUSTER, POD, Manifest
from burst.kits.pods.names import Tags
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import job, operator, pod
from burst.kits.pods.template.object_labels import add_labels, labels_for
from burst.model.burst import BurstId
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import BurstSpec

_VIOLATION = "would violate PodSecurity "
_NAME = "burst-doctor"
# Fields of `pod` that every Pod Security Standard allows.
_ALLOWED = {
    *("containers", "imagePullSecrets", "nodeSelector", "serviceAccountName"),
    *("tolerations", "volumes"),
}
_OF_BROKER = {"env", "name", "resources", "volumeMounts"}
_VOLUMES = {
    *("configMap", "csi", "emptyDir", "name", "persistentVolumeClaim", "projected"),
    "secret",
}
_SECOND = 1


def judge_admission(
    cluster: Cluster, settings: PodSettings, lead: LeadIdentity | None
) -> Iterator[Finding]:
    """Send the Job or MiniCluster of each offer, for one follower, as a dry run.

    A MiniCluster is skipped without a lead, as it contains the lead's hosts. Raises
    Refused.
    """
    by_operator = settings.form == "operator"
    if by_operator and (lead is None or len(lead.hosts) < 2):
        return
    with_pods = not by_operator and cluster.may("create", POD, settings.namespace)
    accepted: list[str] = []
    warnings: dict[str, None] = {}
    for name, table in settings.offers.items():
        try:
            made = _render(name, table, settings, lead)
            made = add_labels(made, labels_for(settings.object_labels))
            for manifest in (made, _pod_of(made)) if with_pods else (made,):
                warnings |= dict.fromkeys(cluster.rehearse(manifest))
        except InsufficientCapacity as error:
            # Live bursts may have used up the quota.
            yield note(f"offer {name}: {error.what}", error.advice)
        except (SpecRefused, Transient, ConfigError, CertificateError) as error:
            # Transient: an object that the pods name, such as a RuntimeClass, is
            # missing.
            yield wrong(f"offer {name}: {error.what}", error.advice or "correct it")
        else:
            accepted.append(name)
    if accepted:
        kind = MINICLUSTER.name if by_operator else JOB.name
        pods = " and the pods" if with_pods else ""
        yield ok(f"the API server accepts the {kind}{pods} of {', '.join(accepted)}")
    if not by_operator:
        yield from _judge_standard(list(warnings), settings)


def standard_of(settings: PodSettings) -> str:
    """Return the strictest Pod Security Standard that followers comply with.

    It is restricted, baseline or privileged. What `pod` adds is not considered.
    """
    if settings.host_paths:
        return "privileged"
    loose = settings.security == "baseline" or pod.user_of(settings) == 0
    return "baseline" if loose else "restricted"


def advise(settings: PodSettings) -> str:
    """Return what to do if a namespace denies followers."""
    asking = ["host_paths"] if settings.host_paths else []
    if settings.multi_user:
        asking.append("multi_user")
    if settings.security == "baseline":
        asking.append('security = "baseline"')
    if pod.user_of(settings) == 0:
        asking.append("user = 0" + (", the daemon's" if settings.user is None else ""))
    if _has_overlays(settings):
        return f"change {' and '.join([*asking, 'pod'])}, or the namespace's label"
    if not asking:
        return "ask its administrator what it demands"
    return (
        f"remove {' and '.join(asking)}, or label it"
        f" pod-security.kubernetes.io/enforce={standard_of(settings)}"
    )


def _judge_standard(warnings: list[str], settings: PodSettings) -> Iterator[Finding]:
    found = [text for text in warnings if text.startswith(_VIOLATION)]
    for text in found:
        words = text.removeprefix(_VIOLATION)
        yield note(
            f"pods violate the Pod Security Standard {words}",
            f"namespace {settings.namespace} denies them if it enforces that:"
            f" {advise(settings)}",
        )
    if not found and not _has_overlays(settings):
        standard = standard_of(settings)
        yield ok(f"pods comply with the Pod Security Standard {standard}")


def _has_overlays(settings: PodSettings) -> bool:
    """Tell whether `pod` has fields that a Pod Security Standard may forbid."""
    overlays = (settings.pod, *(table.pod for table in settings.offers.values()))
    return any(_may_be_denied(overlay.get("spec", {})) for overlay in overlays)


def _may_be_denied(spec: Mapping[str, Any]) -> bool:
    containers = spec.get("containers", ())
    fields = {key for container in containers for key in container}
    sources = {key for volume in spec.get("volumes", ()) for key in volume}
    return bool(spec.keys() - _ALLOWED or fields - _OF_BROKER or sources - _VOLUMES)


def _render(
    offer: str, table: OfferTable, settings: PodSettings, lead: LeadIdentity | None
) -> Manifest:
    """Return the Job or MiniCluster of one follower.

    Raises Refused, ConfigError, CertificateError.
    """
    tags = Tags("nobody", "none")
    meta: Manifest = {
        "name": _NAME,
        "namespace": settings.namespace,
        "labels": tags.labels(_NAME),
        "annotations": {},
    }
    if lead is None or settings.form == "job":
        template = job.render_template(meta, table, settings)
        return job.render_job_of(meta, template, 1, _SECOND)
    spec = BurstSpec(
        burst_id=BurstId(_NAME),
        owner=tags.owner,
        offer=offer,
        hosts=lead.hosts[1:2],
        ranks=(1,),
        shape=Shape(1),
        lead=lead,
    )
    return operator.render_minicluster(meta, spec, settings, _SECOND)


def _pod_of(made: Manifest) -> Manifest:
    """Return a pod as the Job would make it."""
    template = made["spec"]["template"]
    names = {"name": _NAME, "namespace": made["metadata"]["namespace"]}
    meta = {**template["metadata"], **names}
    return {"apiVersion": POD.api, "kind": POD.name, **template, "metadata": meta}
