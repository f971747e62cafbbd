# SPDX-License-Identifier: MIT
"""The objects of a burst with form "job": an indexed Job of equal pods, a ConfigMap.

Pod I is the burst's host I: it finds its host name by its completion index in a list,
and passes the name to its broker. If the broker ends with an error, as after the loss
of the lead, the kubelet restarts it while the Job exists. If the pod is evicted or
deleted, the Job makes another pod (`start_broker`). If the broker ends without
an error and without SIGTERM, the lead was shut down, and the index is complete.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from burst.kits.broker import FollowerPrograms, follower_argv, follower_config
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.names import KUEUE_QUEUE
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.containers import BROKER, DEFAULT_CONTAINER
from burst.kits.pods.template.dns_names import name_fields
from burst.kits.pods.template.mount_paths import CONFIG_PATH, RUN_PATH, SECRET_PATH
from burst.kits.pods.template.multi_user import (
    certificate_of,
    check_lead,
    config_data,
    first_containers,
    make_rundir,
    multi_user_mounts,
    multi_user_volumes,
)
from burst.kits.pods.template.munge import start_munged
from burst.kits.pods.template.overlay import merge_pod
from burst.kits.pods.template.pod import CERTIFICATE
from burst.kits.pods.template.site_pod import Mounted
from burst.kits.pods.template.start_broker import start_broker
from burst.kits.pods.template.storage import (
    make_directories,
    mounts_of,
    rundir_of,
    volumes_of_settings,
)
from burst.kits.pods.template.view import find_view, view_containers
from burst.provider import BurstSpec

HOST = "@HOST@"  # shlex.join does not quote it
GRACE_S = 5
"""Seconds from SIGTERM to SIGKILL. A broker ends in 0.2 s; a broker whose gateway ended
before may not end at all."""
ENDLESS = 1_000_000
"""The `backoffLimit`. Restarts are limited by the lease and the daemon's deadlines, not
by their number."""
PYTHON = "python3"
"""The Python of the image, for a lead without Flux."""
# Seconds from the end of the Job, as at the end of its lease, until Kubernetes deletes
# the Job and all that it owns. A daemon that runs reaps the burst long before.
_KEPT_S = 300


def render_config_map(
    meta: Manifest, spec: BurstSpec, settings: PodSettings
) -> Manifest:
    """Return the ConfigMap: broker.toml, the hosts by index, the start script.

    Raises ConfigError, CertificateError, Refused.
    """
    check_lead(spec.lead, settings)
    config = follower_config(
        spec.lead, spec.hosts, spec.ranks, certificate_of(settings)
    )
    data = {
        "broker.toml": config,
        "hosts": "".join(f"{host}\n" for host in spec.hosts),
        "start": start_script(spec, settings),
        **config_data(spec.lead, settings),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def start_script(spec: BurstSpec, settings: PodSettings) -> str:
    """Return the start script of the container, for sh."""
    config, rundir = Path(CONFIG_PATH, "broker.toml"), Path(rundir_of(settings))
    programs = FollowerPrograms(settings.flux, PYTHON)
    argv = follower_argv(spec.lead, programs, config, HOST, rundir)
    return preamble(settings) + start_broker(with_host(argv))


def preamble(settings: PodSettings) -> str:
    """Return the beginning of start scripts, which prepares all that a broker needs."""
    return f"""\
set -eu
host=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" {CONFIG_PATH}/hosts)
{_copy_certificate(settings)}# Remove what an earlier broker in this pod left.
rm -rf {rundir_of(settings)}
{make_rundir(settings)}\
{make_directories(settings)}{find_view(settings)}\
{start_munged(settings, SECRET_PATH)}"""


def _copy_certificate(settings: PodSettings) -> str:
    """Return lines that make the broker's copy of the certificate.

    With `multi_user` they are empty, as the init container `prepare` makes it.
    """
    if settings.multi_user:
        return ""
    return f"""\
# A broker refuses a certificate that its group can read, as a mounted one may be.
(umask 077; cat {SECRET_PATH}/{CERTIFICATE} > {certificate_of(settings)})
"""


def with_host(argv: list[str]) -> str:
    """Return a command for sh in which HOST is the pod's host name."""
    return shlex.join(argv).replace(HOST, '"$host"')


def render_job(
    meta: Manifest, spec: BurstSpec, settings: PodSettings, seconds: int
) -> Manifest:
    """Return the Job. `seconds` is the time until the lease ends; 0 for no end.

    It is suspended, so that it makes no pod until it owns what the pods mount.
    """
    table = pod.offer_table_for(spec, settings)
    template = render_template(meta, table, settings)
    if settings.queue:
        # Only on the Job: Kueue would queue pods with this label separately.
        labels = {**meta["labels"], KUEUE_QUEUE: settings.queue}
        meta = {**meta, "labels": labels}
    return render_job_of(meta, template, len(spec.hosts), seconds)


def render_job_of(
    meta: Manifest, template: Manifest, count: int, seconds: int
) -> Manifest:
    """Return the Job with `count` pods of a template; see `render_job`."""
    job: Manifest = {
        "completions": count,
        "parallelism": count,
        "completionMode": "Indexed",
        "backoffLimit": ENDLESS,
        # Two brokers of one rank would disconnect each other.
        "podReplacementPolicy": "Failed",
        "suspend": True,
        "ttlSecondsAfterFinished": _KEPT_S,
        "template": template,
    }
    if seconds:
        job["activeDeadlineSeconds"] = seconds
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}


def render_template(
    meta: Manifest, table: OfferTable, settings: PodSettings
) -> Manifest:
    """Return the template of the pods, with `pod` of the settings merged into it."""
    settings = settings.for_offer(table)
    noted = {**pod.pod_annotations(meta), DEFAULT_CONTAINER: BROKER}
    made = {
        "metadata": {"labels": meta["labels"], "annotations": noted},
        "spec": _pod_spec(meta, table, settings),
    }
    return merge_pod(made, settings.pod)


def _pod_spec(meta: Manifest, table: OfferTable, settings: PodSettings) -> Manifest:
    before = first_containers(settings) + view_containers(table, settings)
    return {
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": GRACE_S,
        **pod.base(settings),
        **name_fields(meta, settings),
        **pod.spread(settings, meta["labels"]),
        **({"initContainers": before} if before else {}),
        "containers": [_container(table, settings)],
        "volumes": volumes(meta["name"], table, settings),
    }


def _container(table: OfferTable, settings: PodSettings) -> Manifest:
    mounts = [
        {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
        {"name": "run", "mountPath": RUN_PATH},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  of the pod alone
        # A broker keeps its state there.
        {"name": "var-tmp", "mountPath": "/var/tmp"},  # noqa: S108
    ]
    if settings.multi_user is None:
        mounts.append({"name": "secret", "mountPath": SECRET_PATH, "readOnly": True})
    return {
        "name": BROKER,
        **pod.container(settings),
        "command": ["/bin/sh", f"{CONFIG_PATH}/start"],
        "resources": pod.resources(table, settings),
        "volumeMounts": [
            *mounts,
            *mounts_of(_more_volumes(table, settings)),
            *multi_user_mounts(settings),
        ],
    }


def volumes(name: str, table: OfferTable, settings: PodSettings) -> list[Manifest]:
    """Return the volumes of a pod; ConfigMap and Secret both have the name `name`."""
    secret = {"secretName": name, "defaultMode": 0o400}
    return [
        {"name": "config", "configMap": {"name": name}},
        {"name": "secret", "secret": secret},
        # In memory, so that the certificate's copy is never on a node's disk.
        {"name": "run", "emptyDir": _memory(table)},
        {"name": "tmp", "emptyDir": {}},
        {"name": "var-tmp", "emptyDir": {}},
        *(each.volume for each in _more_volumes(table, settings)),
        *multi_user_volumes(settings),
    ]


def _more_volumes(table: OfferTable, settings: PodSettings) -> list[Mounted]:
    return volumes_of_settings(settings, _memory(table))


def _memory(table: OfferTable) -> Manifest:
    """Return the emptyDir of the run directory, which may use all of the memory.

    The files of jobs are in it, too.
    """
    return {"medium": "Memory", "sizeLimit": pod.memory_limit(table)}
