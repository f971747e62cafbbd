# SPDX-License-Identifier: MIT
"""Renders the objects of a burst from its BurstSpec."""

from __future__ import annotations

import math
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from burst.errors import CertificateError, ConfigError, Refused, SpecRefused
from burst.kits import certificate
from burst.kits.broker import expand_hosts, find_gateways
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import (
    INDEX,
    SPOT,
    Tags,
    check_names,
    describe_spec,
    part_name,
)
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import job, operator, pod
from burst.kits.pods.template.dns_names import headless_service, host_services
from burst.kits.pods.template.isolated import render_isolated
from burst.kits.pods.template.object_labels import add_labels, labels_for
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec


def refuse_systemd(lead: LeadIdentity) -> None:
    """Raise Refused if followers need a systemd, which pods do not have."""
    if lead.systemd:
        raise Refused(
            "the lead has [systemd] enable, and a pod has no systemd: it would never"
            " come online (sdmon), and no job would start there (sdexec)",
            "set [systemd] enable = false and no [exec] service in the lead's"
            " configuration, and restart it; or use another provider",
        )


def refuse_user(lead: LeadIdentity, settings: PodSettings) -> None:
    """Raise SpecRefused if followers would run as another user than the lead.

    flux-shell there accepts no job that the lead's owner has signed, so all jobs fail.
    Those of guests do not, with `multi_user`: the IMP starts each as its own user.
    """
    if runs_as_another(lead, settings) and settings.multi_user is None:
        raise SpecRefused(
            f"followers would run as user {settings.user} and the lead runs as"
            f" {lead.owner_userid}, so Flux would fail each job on them",
            f"set user = {lead.owner_userid}, which the image must have in /etc/passwd;"
            " isolated bursts may have another user",
        )


def runs_as_another(lead: LeadIdentity, settings: PodSettings) -> bool:
    """Tell whether followers run as another user than the lead."""
    return lead.owner_userid is not None and settings.user not in (
        None,
        lead.owner_userid,
    )


def render(
    spec: BurstSpec, settings: PodSettings, tags: Tags, now: float, first: int = 0
) -> list[Manifest]:
    """Return the burst's objects. The last one makes the pods, and owns the others.

    With `first`, return the objects of a growth: `spec` has only the further hosts, and
    `first` is the number of the burst's hosts before them. With form operator the first
    object is the marker, which has no owner. It reads the certificate, or makes one for
    an isolated burst; the certificate is only in the Secret. Raises Refused.
    """
    if spec.image:
        settings = msgspec.structs.replace(settings, image=spec.image)
    table = pod.offer_table_for(spec, settings)
    noted = {SPOT: "true"} if settings.is_spot(table) else {}
    name = part_name(spec.burst_id, first) if first else str(spec.burst_id)
    check_names(spec, tags, name)
    seconds = _seconds_until(spec.lease_end, now) if spec.lease_end else 0
    meta = {
        "name": name,
        "namespace": settings.namespace,
        "labels": tags.labels(spec.burst_id),
        "annotations": {**describe_spec(spec, now), **noted},
    }
    if spec.program is not None:
        made = render_isolated(meta, spec, settings, seconds)
    else:
        made = _render_joined(meta, spec, settings, seconds)
    labels = labels_for(settings.object_labels, spec)
    return [add_labels(manifest, labels) for manifest in made]


def _render_joined(
    meta: Manifest, spec: BurstSpec, settings: PodSettings, seconds: int
) -> list[Manifest]:
    refuse_systemd(spec.lead)
    refuse_user(spec.lead, settings)
    try:
        if settings.form == "operator":
            before = [operator.render_marker(meta)]
            last = operator.render_minicluster(meta, spec, settings, seconds)
        else:
            before = [job.render_config_map(meta, spec, settings)]
            last = job.render_job(meta, spec, settings, seconds)
        secret = _secret(meta, spec, settings)
        services = _gateway_service(meta, spec)
        services += host_services(meta, spec, settings, services)
    except (ConfigError, CertificateError) as error:
        raise Refused(error.what, error.advice) from error
    return [*before, secret, *services, last]


def _seconds_until(end: float, now: float) -> int:
    """Return `activeDeadlineSeconds` for a Job that must not end before `end`.

    It counts whole seconds from `status.startTime`, which is cut to a whole second.
    """
    return max(1, math.ceil(end - now) + 1)


def _secret(meta: Manifest, spec: BurstSpec, settings: PodSettings) -> Manifest:
    # The file is parsed and formatted, not copied, so only a certificate is sent.
    found = certificate.read(Path(spec.lead.certificate))
    text = certificate.format_certificate(found)
    return pod.secret_of(meta, {pod.CERTIFICATE: text}, settings)


def _gateway_service(meta: Manifest, spec: BurstSpec) -> list[Manifest]:
    """Return the Service with the DNS name of the gateway, if the burst has one.

    The lead's configuration has that name,
    `tcp://SERVICE.NAMESPACE.svc.cluster.local:PORT`, since a pod's own name contains
    the burst's id. If the gateway's address has no such name, no Service is made, and
    the site has to make the address work.
    """
    gateways = find_gateways(spec.lead, spec.hosts)
    if not gateways:
        return []
    if len(gateways) > 1:
        raise SpecRefused(
            f"{', '.join(gateways)} are gateways of one burst, which can have only one",
            "let all hosts of a rank slot join through its first host",
        )
    entries = {entry.host: entry for entry in expand_hosts(spec.lead.bootstrap)}
    address = urlsplit(entries[gateways[0]].connect)
    name, _, rest = (address.hostname or "").partition(".")
    where, _, zone = rest.partition(".")
    if zone.split(".")[0] != "svc" or where != meta["namespace"]:
        return []
    index = spec.hosts.index(gateways[0])
    ports = [{"name": "broker", "port": address.port, "protocol": "TCP"}]
    selector = {**meta["labels"], INDEX: str(index)}
    return [headless_service({**meta, "name": name}, selector, ports)]
