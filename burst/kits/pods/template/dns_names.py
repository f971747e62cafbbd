# SPDX-License-Identifier: MIT
"""DNS names of followers, with `names` in the settings.

The Job sets a pod's host name, `BURST-INDEX`, whatever the pod's template says, and a
pod has DNS names under that host name only. So each of the burst's hosts in the lead's
list gets a Service of the same name without a cluster IP, which selects the host's pod.
All pods of the namespace can resolve it. A Service with the burst's name gives DNS
records to the pods' own host names, and is in the DNS search list of the pods.

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
    """Return a Service without a cluster IP: a DNS name of the pods that it selects."""
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

    No Service is made for a name that one of the `others` has, such as a gateway's
    Service. The operator itself makes the Service of a MiniCluster's pods. Raises
    SpecRefused.
    """
    if not settings.names:
        return []
    taken = set(map(name_of, others))
    found = []
    burst = meta["labels"][ID]
    if settings.form == "job" and meta["name"] == burst:
        # It also selects the pods of growths.
        found.append(headless_service(meta, meta["labels"]))
    for index, host in enumerate(spec.hosts):
        if not is_name(host):
            raise SpecRefused(
                f"{host!r} is not a valid name for a Service",
                "name the rank slot's hosts with lower-case letters, digits and -, a"
                " letter first, or leave names out",
            )
        if host not in taken:
            job = {JOB_NAME: meta["name"], INDEX: str(index)}
            selector = {**meta["labels"], **job}
            found.append(headless_service({**meta, "name": host}, selector))
    return found


def name_fields(meta: Manifest, settings: PodSettings) -> Manifest:
    """Return the fields of a pod's spec that give it these names and search them."""
    if not settings.names:
        return {}
    burst = meta["labels"][ID]
    domain = f"{burst}.{meta['namespace']}.svc.cluster.local"
    return {"subdomain": burst, "dnsConfig": {"searches": [domain]}}
