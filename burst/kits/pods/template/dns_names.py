# SPDX-License-Identifier: MIT
"""DNS names of followers, with `names` in the settings.

A pod's own host name is the Job's, `BURST-INDEX`, whatever its template says, and a
pod has DNS names under that only. So each host of the lead's list that the burst has
gets a Service of its name without a cluster IP, which selects its pod; all pods of the
namespace find it there. A Service of the burst's name gives pods' own host names DNS
records, and pods search it.

Source: the Kubernetes documentation, "DNS for Services and Pods" and "Indexed Job".
"""

from __future__ import annotations

from collections.abc import Iterable

from burst.errors import SpecRefused
from burst.kits.kube.kinds import SERVICE, Manifest, name_of
from burst.kits.pods.names import ID, INDEX, JOB_NAME, is_name
from burst.kits.pods.settings import PodSettings
from burst.provider import BurstSpec


def headless_service(
    meta: Manifest, selector: Manifest, ports: Iterable[Manifest] = ()
) -> Manifest:
    """Return a Service without a cluster IP: a name of the pods that it selects."""
    found: Manifest = {
        "clusterIP": "None",
        # Pods look for each other before they are Ready.
        "publishNotReadyAddresses": True,
        "selector": selector,
    }
    listed = list(ports)
    if listed:
        found["ports"] = listed
    return {
        "apiVersion": SERVICE.api,
        "kind": SERVICE.name,
        "metadata": meta,
        "spec": found,
    }


def host_services(
    meta: Manifest,
    spec: BurstSpec,
    settings: PodSettings,
    others: Iterable[Manifest] = (),
) -> list[Manifest]:
    """Return the Services of the burst's hosts; none without `names`.

    A name that one of the `others` has, such as a gateway's Service, is left to it; the
    operator makes the Service of a MiniCluster's pods itself. Raises SpecRefused.
    """
    if not settings.names:
        return []
    taken = set(map(name_of, others))
    found = []
    burst = meta["labels"][ID]
    if settings.form == "job" and meta["name"] == burst:
        # A growth's pods are selected by it, too.
        found.append(headless_service(meta, meta["labels"]))
    for index, host in enumerate(spec.hosts):
        if not is_name(host):
            raise SpecRefused(
                f"{host!r} is no name for a Service",
                "name the rank slot's hosts with lower-case letters, digits and -, a"
                " letter first, or leave names out",
            )
        if host not in taken:
            job = {JOB_NAME: meta["name"], INDEX: str(index)}
            selector = {**meta["labels"], **job}
            found.append(headless_service({**meta, "name": host}, selector))
    return found


def name_fields(meta: Manifest, settings: PodSettings) -> Manifest:
    """Return the fields of a pod's spec by which it has and searches these names."""
    if not settings.names:
        return {}
    burst = meta["labels"][ID]
    domain = f"{burst}.{meta['namespace']}.svc.{settings.cluster_domain}"
    return {"subdomain": burst, "dnsConfig": {"searches": [domain]}}
