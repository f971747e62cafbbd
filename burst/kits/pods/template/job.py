# SPDX-License-Identifier: MIT
"""The objects of a burst with form "job": an indexed Job of equal pods, a ConfigMap.

Pod I is the burst's host I: by its completion index it reads its host name from a list,
and gives that to its broker. If the broker ends with an error, as after the loss of the
lead, the kubelet starts it again while the Job exists. If the pod is evicted or
deleted, the Job makes another (`commands.start_broker`). If the broker ends without an
error and without SIGTERM, the lead was shut down; then its index is complete.
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
from burst.kits.pods.template.broker_socket import (
    rundir_of,
    socket_mounts,
    socket_volumes,
)
from burst.kits.pods.template.commands import run_before, start_broker
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
from burst.kits.pods.template.munge import munge_mounts, munge_volumes, start_munged
from burst.kits.pods.template.overlay import merge_pod
from burst.kits.pods.template.pod import CERTIFICATE
from burst.kits.pods.template.site_pod import for_offer
from burst.kits.pods.template.storage import (
    make_directories,
    storage_mounts,
    storage_volumes,
)
from burst.kits.pods.template.view import (
    find_view,
    view_containers,
    view_mounts,
    view_volumes,
)
from burst.provider import BurstSpec

HOST = "@HOST@"  # which shlex.join leaves alone
GRACE_S = 5
"""From SIGTERM to SIGKILL. A broker ends in 0.2 s; one whose gateway ended before may
not end at all."""
# Restarts are not limited by number, but by the lease and the daemon's deadlines.
_ENDLESS = 1_000_000
# Seconds from the end of the Job, such as that of its lease, until Kubernetes deletes
# it and all that it owns. The daemon reaps it long before, if it runs.
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
    """Return what the container runs, for sh."""
    config, rundir = Path(CONFIG_PATH, "broker.toml"), Path(rundir_of(settings))
    programs = FollowerPrograms(settings.flux, settings.python)
    argv = follower_argv(spec.lead, programs, config, HOST, rundir)
    return preamble(settings) + start_broker(with_host(argv), settings)


def preamble(settings: PodSettings) -> str:
    """Return how start scripts begin: all that is there before the broker starts."""
    return f"""\
set -eu
host=$(sed -n "$((JOB_COMPLETION_INDEX + 1))p" {CONFIG_PATH}/hosts)
{_copy_certificate(settings)}# Remove what an earlier broker in this pod left.
rm -rf {rundir_of(settings)}
{make_rundir(settings)}\
{make_directories(settings)}{find_view(settings)}{start_munged(settings, SECRET_PATH)}\
{run_before(settings, certificate_of(settings))}"""


def _copy_certificate(settings: PodSettings) -> str:
    """Return lines that make the broker's copy; with many users it is made before."""
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
    """Return the Job. `seconds` are those until the lease ends, 0 for no end.

    It is suspended: it makes no pod until it owns what they mount, and is started then.
    """
    table = pod.offer_table_for(spec, settings)
    template = render_template(meta, table, settings)
    if settings.queue:
        # Of the Job alone: Kueue would take pods with it for others to queue.
        labels = {**meta["labels"], KUEUE_QUEUE: settings.queue}
        meta = {**meta, "labels": labels}
    return render_job_of(meta, template, len(spec.hosts), seconds)


def render_job_of(
    meta: Manifest, template: Manifest, count: int, seconds: int
) -> Manifest:
    """Return the Job of so many pods of a template, as `render_job`."""
    job: Manifest = {
        "completions": count,
        "parallelism": count,
        "completionMode": "Indexed",
        "backoffLimit": _ENDLESS,
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
    """Return the template of the pods, with what the settings have for it in `pod`."""
    settings = for_offer(settings, table)
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
        # Where a broker keeps its state.
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
            *socket_mounts(settings),
            *munge_mounts(settings),
            *pod.host_mounts(settings),
            *storage_mounts(settings),
            *view_mounts(settings),
            *multi_user_mounts(settings),
        ],
    }


def volumes(name: str, table: OfferTable, settings: PodSettings) -> list[Manifest]:
    """Return the volumes of a pod; `name` is that of ConfigMap and Secret."""
    # Jobs' own files are in the run directory too, so it may fill the pod's memory.
    memory = {"medium": "Memory", "sizeLimit": pod.memory_limit(table)}
    secret = {"secretName": name, "defaultMode": 0o400}
    return [
        {"name": "config", "configMap": {"name": name}},
        {"name": "secret", "secret": secret},
        # In memory: the certificate's copy is never on a node's disk.
        {"name": "run", "emptyDir": memory},
        {"name": "tmp", "emptyDir": {}},
        {"name": "var-tmp", "emptyDir": {}},
        *socket_volumes(settings, memory),
        *munge_volumes(settings),
        *pod.host_volumes(settings),
        *storage_volumes(settings),
        *view_volumes(settings),
        *multi_user_volumes(settings),
    ]
