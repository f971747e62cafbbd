# SPDX-License-Identifier: MIT
"""Checks, without making anything, whether followers can run in a cluster."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from burst.errors import ProviderError, Refused
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.faults import NoNamespace
from burst.kits.kube.kinds import (
    CONFIG_MAP,
    EVENT,
    JOB,
    MINICLUSTER,
    NODE,
    POD,
    SECRET,
    SERVICE,
    Kind,
    Manifest,
)
from burst.kits.pods.diagnose.admission import judge_admission, standard_of
from burst.kits.pods.settings import PodForm, PodSettings
from burst.kits.pods.status.owned import judge_owners
from burst.kits.pods.template.multi_user import check_lead, config_data
from burst.kits.pods.template.munge import munge_data
from burst.kits.pods.template.pod import memory_limit
from burst.kits.pods.template.render import (
    refuse_systemd,
    refuse_user,
    runs_as_another,
)
from burst.model.finding import Finding, Level, note, ok, wrong
from burst.model.host import is_loopback
from burst.model.lead import LeadIdentity
from burst.model.version import major_minor

_DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
_OPERATOR = "operator-system", "operator-controller-manager"
# The first version with podReplacementPolicy of Jobs and the index as a label of pods.
_OLDEST = 1, 29
# Kind, subresource, verbs. A Secret is only created: Kubernetes deletes it with its
# owner.
_PODS = (
    (POD, "", "list watch delete"),
    (POD, "log", "get"),
    (EVENT, "", "list"),
    (SECRET, "", "create"),
)
_JOB_RIGHTS = (
    (JOB, "", "get list watch create patch delete"),
    (CONFIG_MAP, "", "get create"),
    (SERVICE, "", "get create delete"),
)
# The operator makes the Job of a burst, which we only list and delete; a probe makes
# one.
_OPERATOR_RIGHTS = (
    (MINICLUSTER, "", "get list watch create patch delete"),
    (JOB, "", "get list watch create patch delete"),
    (CONFIG_MAP, "", "get list watch create patch delete"),
    (SERVICE, "", "get list watch create delete"),
)
_IMAGE_VERSION = re.compile(r"(?:^|[^0-9.])v?(\d+\.\d+\.\d+)(?:[^0-9.]|$)")


def examine_cluster(
    cluster: Cluster,
    settings: PodSettings,
    lead: LeadIdentity | None,
    *,
    has_namespace: bool = True,
) -> Iterator[Finding]:
    """Check what can be checked without making anything.

    `has_namespace` is false if the namespace is made with the first burst.
    """
    try:
        yield _judge_version(cluster)
        rights = _judge_rights(cluster, settings)
        if (
            has_namespace
            and rights.level is not Level.OK
            and cluster.lacks_namespace(settings.namespace)
        ):
            raise NoNamespace(settings.namespace)
        yield rights
        if settings.form == "operator":
            yield from _judge_operator(cluster)
        yield from _judge_nodes(cluster)
        if has_namespace and rights.level is Level.OK:
            if lead is not None:
                yield judge_owners(cluster, settings, lead.owner)
            yield from judge_admission(cluster, settings, lead)
    except ProviderError as error:
        yield wrong(error.what, error.advice or "try again")
    if lead is not None:
        yield from examine_lead(settings, lead)


def examine_lead(settings: PodSettings, lead: LeadIdentity) -> Iterator[Finding]:
    """Check what needs no cluster: the image's version and the lead's address."""
    yield _judge_image(settings, lead)
    yield _judge_endpoint(lead)
    try:
        refuse_systemd(lead)
        if settings.mode == "joined":
            refuse_user(lead, settings)
    except Refused as error:
        yield wrong(error.what, error.advice)
    yield from _judge_guests(settings, lead)
    yield from _tell_memory(settings)


def needed_rights(form: PodForm) -> list[tuple[str, Kind, str]]:
    """Return verb, kind and subresource of all requests that bursts need."""
    needed = _OPERATOR_RIGHTS if form == "operator" else _JOB_RIGHTS
    return [
        (verb, kind, part)
        for kind, part, verbs in (*needed, *_PODS)
        for verb in verbs.split()
    ]


def _judge_version(cluster: Cluster) -> Finding:
    version = cluster.version()
    match = re.match(r"v(\d+)\.(\d+)", version)
    if match and (int(match[1]), int(match[2])) < _OLDEST:
        return wrong(
            f"{cluster.access} is Kubernetes {version}",
            "upgrade it to 1.29 or later",
        )
    return ok(f"{cluster.access} is Kubernetes {version}")


def _judge_rights(cluster: Cluster, settings: PodSettings) -> Finding:
    namespace = settings.namespace
    lacking = [
        f"{verb} {kind.resource}{'/' * bool(part)}{part}"
        for verb, kind, part in needed_rights(settings.form)
        if not cluster.may(verb, kind, namespace, part)
    ]
    if lacking:
        return wrong(
            f"lacks rights in namespace {namespace}: {', '.join(lacking)}",
            "apply a Role with these verbs and bind it; manifests/role has all"
            + ", with manifests/parts/miniclusters" * (settings.form == "operator"),
        )
    return ok(f"has all rights that it needs in namespace {namespace}")


def _judge_nodes(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.may("get", NODE, ""):
        yield note(
            "may not get nodes: a pod on a dead node keeps its burst from ending",
            "apply manifests/parts/nodes, or run `burst down --force` in that case",
        )


def _judge_operator(cluster: Cluster) -> Iterator[Finding]:
    if not cluster.serves(MINICLUSTER):
        yield wrong(
            f"the cluster has no kind {MINICLUSTER.resource} of {MINICLUSTER.api}",
            'install the Flux Operator, or set form = "job", which needs none',
        )
        return
    yield ok(f"the cluster has the kind {MINICLUSTER.resource} of {MINICLUSTER.api}")
    namespace, name = _OPERATOR
    if not cluster.may("get", _DEPLOYMENT, namespace):
        yield note(
            "may not get deployments, so whether the Flux Operator runs was not"
            " checked",
            f"kubectl get deployment {name} -n {namespace}",
        )
        return
    found = cluster.get(_DEPLOYMENT, namespace, name)
    if found is None:
        yield note(
            f"there is no deployment {name} in namespace {namespace}",
            "check that the Flux Operator runs, since bursts wait for it",
        )
    elif not (found.get("status") or {}).get("availableReplicas"):
        yield wrong(
            f"the Flux Operator ({_images(found)}) is not available",
            f"kubectl describe deployment {name} -n {namespace}",
        )
    else:
        yield ok(f"the Flux Operator runs: {_images(found)}")


def _images(deployment: Manifest) -> str:
    pods = deployment["spec"]["template"]["spec"]
    return ", ".join(str(container["image"]) for container in pods["containers"])


def _judge_image(settings: PodSettings, lead: LeadIdentity) -> Finding:
    image = settings.view or settings.image
    if lead.follower_module:
        return ok(f"followers of this lead need no Flux in {image}")
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    match = _IMAGE_VERSION.search(tag)
    if match is None:
        return note(
            f"the name of {image} does not tell its version of Flux",
            f"the lead is {lead.version} and rejects another MAJOR.MINOR",
        )
    if major_minor(match[1]) != major_minor(lead.version):
        return wrong(
            f"{image} has Flux {match[1]}, by its name, which a lead of {lead.version}"
            " rejects",
            "set image to one with the lead's version of Flux",
        )
    return ok(f"{image} has the lead's Flux, {match[1]}")


def _tell_memory(settings: PodSettings) -> Iterator[Finding]:
    """Report the memory limit of offers that do not set one."""
    for name, table in settings.offers.items():
        if not table.memory:
            yield ok(
                f"a follower of offer {name} may use {memory_limit(table)} of memory, a"
                " limit from its cores, as the offer does not set memory"
            )


def _judge_guests(settings: PodSettings, lead: LeadIdentity) -> Iterator[Finding]:
    """Check that jobs of all users that the lead serves can run in pods."""
    if settings.multi_user is None:
        if lead.access.allow_guest_user:
            yield note(
                "the lead accepts jobs of guests, but pods run only jobs of its owner:"
                " no burst is made for jobs of guests",
                "set multi_user, or use another provider for guests",
            )
        return
    try:
        check_lead(lead, settings)
        config_data(lead, settings)
        munge_data(settings)
    except Refused as error:
        yield wrong(error.what, error.advice)
        return
    if not lead.access.allow_guest_user:
        yield wrong(
            "multi_user is set, but the lead accepts no jobs of guests",
            "set access.allow-guest-user in the lead's configuration, or leave"
            " multi_user out, which keeps pods to the restricted standard",
        )
        return
    if runs_as_another(lead, settings):
        yield note(
            f"followers run as user {settings.user} and the lead as"
            f" {lead.owner_userid}: jobs of guests run there, and Flux fails each job"
            f" of user {lead.owner_userid}",
            f"set user = {lead.owner_userid}, which the image must have in /etc/passwd,"
            " or submit burst jobs as guests only",
        )
    yield ok(
        f"pods run jobs of guests with {lead.access.imp} of the image, which must be"
        f" setuid root: the Pod Security Standard {standard_of(settings)} admits them,"
        " restricted does not"
    )


def _judge_endpoint(lead: LeadIdentity) -> Finding:
    """Check the lead's address as far as possible from outside the cluster."""
    advice = "set address and port under [lead] to those that pods can connect to"
    host = urlsplit(lead.endpoint).hostname
    if not host:
        return wrong("the address that pods connect to is not known", advice)
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except OSError as error:
        return note(
            f"{host}, the lead's address, cannot be resolved here: {error.strerror}",
            "check that pods can resolve it",
        )
    addresses = {str(entry[4][0]) for entry in found}
    if all(is_loopback(address) for address in addresses):
        return wrong(
            f"{lead.endpoint} is a loopback address, which in each pod is the pod"
            " itself",
            advice,
        )
    return ok(f"pods connect to the lead at {lead.endpoint}")
