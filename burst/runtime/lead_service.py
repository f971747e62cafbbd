# SPDX-License-Identifier: MIT
"""Reads the address and the owner tag of a lead in a pod from its Kubernetes Service.

At the address the lead is reached from outside: by a NodePort, at the address of a
node, or by a load balancer, at its own address. The owner tag stays the same when the
lead's pod and all its files are lost, and no other lead has it.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from burst import log
from burst.config import LONGEST_OWNER, LeadSettings
from burst.errors import ConfigError, LeadError, Refused
from burst.kits.kube import Cluster, InCluster, Manifest
from burst.kits.kube.access import NAMESPACE_FILE
from burst.kits.kube.kinds import NODE, POD, SERVICE, name_of
from burst.model.host import dns_label

_UID_DIGITS = 12


def read_from_service(settings: LeadSettings) -> LeadSettings:
    """Return the settings with the values that they take from our cluster.

    Raises ConfigError outside of a pod, LeadError where the address is not known yet,
    and what asking the cluster raises: Transient, Refused.
    """
    try:
        namespace = NAMESPACE_FILE.read_text().strip()
    except OSError as error:
        raise ConfigError(
            f"{_learnt_keys(settings)} read from the cluster, but this process runs in"
            " no pod with a service account",
            "set the address at which followers reach the lead, and a text as owner",
        ) from error
    cluster = Cluster(InCluster())
    try:
        return resolve_service(settings, cluster, namespace)
    finally:
        cluster.close()


def resolve_service(
    settings: LeadSettings, cluster: Cluster, namespace: str
) -> LeadSettings:
    """Return the settings with the owner tag, address and port of their Service."""
    service = cluster.get(SERVICE, namespace, settings.service)
    if service is None:
        raise LeadError(
            f"there is no Service {settings.service} in namespace {namespace}",
            "apply manifests/base/service.yaml, or name another in lead.service",
        )
    if settings.has_owner_of_service:
        settings = msgspec.structs.replace(settings, owner=_owner_tag(service))
    if not settings.is_learnt:
        return settings
    if settings.address == "service":
        address, port = _balancer(service), _port(service, "port")
    else:
        port = _port(service, "nodePort")
        address = _node_address(cluster, namespace, service)
    return msgspec.structs.replace(
        settings, address=address, port=settings.port or port
    )


def _learnt_keys(settings: LeadSettings) -> str:
    """Return which keys are read from the cluster, as the beginning of a sentence."""
    keys = [f'lead.address = "{settings.address}"'] if settings.is_learnt else []
    keys += ['lead.owner = "service"'] if settings.has_owner_of_service else []
    return " and ".join(keys) + (" are" if len(keys) > 1 else " is")


def _owner_tag(service: Manifest) -> str:
    """Return the Service's name and the first 12 hex digits of its UID.

    A UID belongs to one object in all clusters, and a Service outlives its pods.
    """
    digits = str(service["metadata"]["uid"]).replace("-", "")[:_UID_DIGITS]
    head = dns_label(name_of(service), "lead", LONGEST_OWNER - len(digits) - 1)
    return f"{head}-{digits}"


def _port(service: Manifest, key: str) -> int:
    """Return the port of the Service: the one named `broker`, or else the first."""
    ports: list[dict[str, Any]] = service["spec"].get("ports") or [{}]
    named = [port for port in ports if port.get("name") == "broker"]
    found = [*named, *ports][0].get(key)
    if not found:
        raise LeadError(
            f"Service {name_of(service)} opens no port on the nodes:"
            f" it is of type {service['spec'].get('type')}",
            'make it of type NodePort, or set lead.address = "service" if it has a'
            " load balancer",
        )
    return int(found)


def _balancer(service: Manifest) -> str:
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or [{}]
    found = ingress[0].get("ip") or ingress[0].get("hostname")
    if not found:
        kind = service["spec"].get("type")
        raise LeadError(
            f"Service {name_of(service)} has no load balancer address yet",
            "see its events with kubectl describe service"
            if kind == "LoadBalancer"
            else f"it is of type {kind}: make it LoadBalancer, or set lead.address ="
            ' "node"',
        )
    return str(found)


def _node_address(cluster: Cluster, namespace: str, service: Manifest) -> str:
    """Return the external address of the node of the lead's pod, else the internal."""
    selector = service["spec"].get("selector") or {}
    pods = cluster.find(POD, namespace, selector) if selector else []
    placed = [pod for pod in pods if pod.get("status", {}).get("hostIP")]
    if not placed:
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        raise LeadError(
            f"Service {name_of(service)} selects no pod: none in namespace"
            f" {namespace} has the labels {labels or '(it selects none)'}",
            "its selector has to match the lead's pod",
        )
    # A pod that is being deleted may still be listed beside the one in its place.
    placed.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
    pod = placed[-1]
    return _external(cluster, pod["spec"]["nodeName"]) or str(pod["status"]["hostIP"])


@functools.cache
def _tell_internal(why: str) -> None:
    """Log that the external address cannot be read: once, as it is asked for often."""
    log.say(
        "followers get the node's internal address, as reading its external one"
        " failed: %s",
        why,
    )


def _external(cluster: Cluster, name: str) -> str:
    """Return the node's external address; empty if it has none, or may not be read."""
    try:
        node = cluster.get(NODE, "", name)
    except Refused as error:
        _tell_internal(error.what)
        return ""
    addresses = (node or {}).get("status", {}).get("addresses", [])
    external = [a["address"] for a in addresses if a["type"] == "ExternalIP"]
    return str(external[0]) if external else ""
