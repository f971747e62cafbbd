# SPDX-License-Identifier: MIT
"""A burst as one MiniCluster of the Flux Operator (v1alpha2).

It takes account of what the operator does in 2026 (commit 0d75cef8):

* `bursting.leadBroker` renders a host list that no broker accepts. With `brokerConfig`
  the operator writes that text instead.
* `curveCert` is written to a ConfigMap and to logs, so it gets a placeholder. If it
  were empty, the operator would make a certificate. `commands.pre`, which the
  operator's script runs just before the broker, copies the real certificate from a
  Secret.
* The operator uses only `fsGroup` of the pod's securityContext, so the user that
  brokers run as is set for each container.
* The operator's init container, which writes the broker's files, runs in the image of
  the view. By default that is an image from the internet, even if no view is wanted.
* The script's shell, as the container's first process, would not pass SIGTERM on, and
  index 0 would not restart its broker. So `commands.pre` does not return: it starts the
  broker itself.
* It sets `backoffLimit` to 100 if a MiniCluster has none. A Job counts the restarts of
  all its pods together, and at the limit deletes them.
* The operator's options for the broker include `log-stderr-mode=local`. A broker that
  gets this option twice ends with "Operation not permitted". If `log-stderr-level` is
  given several times, a broker uses the last one.
"""

from __future__ import annotations

import shlex

from burst.errors import Refused
from burst.kits.broker import follower_config
from burst.kits.kube.kinds import MINICLUSTER, Manifest
from burst.kits.pods.names import KUEUE_QUEUE
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.job import ENDLESS
from burst.kits.pods.template.mount_paths import SECRET_PATH
from burst.kits.pods.template.munge import start_munged
from burst.kits.pods.template.operator_overlay import merge_minicluster
from burst.kits.pods.template.pod import CERTIFICATE
from burst.kits.pods.template.site_pod import pull_policy
from burst.kits.pods.template.start_broker import start_broker
from burst.kits.pods.template.storage import host_paths
from burst.model.ranks import format_hostlist
from burst.provider import BurstSpec

# Both are used literally in the operator's scripts.
_CURVE_PATH = "/mnt/flux/config/curve/curve.cert"
_PLACEHOLDER = "the certificate comes from a Secret"


def render_minicluster(
    meta: Manifest, spec: BurstSpec, settings: PodSettings, seconds: int
) -> Manifest:
    """Return the MiniCluster. Raises Refused, ConfigError, CertificateError.

    `seconds` is the time until the lease ends; 0 for no end.
    """
    if spec.lead.follower_module:
        raise Refused(
            "the Flux Operator starts Flux brokers, and the lead is not Flux",
            'set form = "job"',
        )
    queue = {KUEUE_QUEUE: settings.queue} if settings.queue else {}
    found: Manifest = {
        "size": len(spec.hosts),
        "minSize": 1,
        "backoffLimit": ENDLESS,
        "interactive": True,
        "logging": {"quiet": True},
        "jobLabels": {**meta["labels"], **queue},
        "network": {"disableAffinity": not settings.one_per_node},
        "flux": _flux(spec, settings),
        "pod": _pod(meta, settings),
        "containers": [_container(meta, spec, settings)],
    }
    table = pod.offer_table_for(spec, settings)
    found = merge_minicluster(found, settings.for_offer(table).pod)
    if seconds:
        found["deadlineSeconds"] = seconds
    return {
        "apiVersion": MINICLUSTER.api,
        "kind": MINICLUSTER.name,
        "metadata": meta,
        "spec": found,
    }


def render_marker(meta: Manifest) -> Manifest:
    """Return the marker: an empty ConfigMap, which is made first and deleted last.

    A MiniCluster is gone before the objects that the operator makes for it. The burst
    is listed while the marker exists. An annotation of the marker keeps since when it
    is the burst's only object.
    """
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def start_lines(spec: BurstSpec, settings: PodSettings) -> str:
    """Return `commands.pre`, for the bash of the operator's script."""
    hosts = shlex.join(spec.hosts)
    broker = (
        'flux broker --config-path "${cfg}" ${brokerOptions} -Shostname="$1"'
        " -Slog-stderr-level=7"
    )
    return (
        f'cat {SECRET_PATH}/{CERTIFICATE} > "${{curvepath}}"\n'
        'chmod 0600 "${curvepath}"\n'
        f"{start_munged(settings, SECRET_PATH)}"
        f"set -- {hosts}\n"
        'shift "${JOB_COMPLETION_INDEX}"\n'
        f"{start_broker(broker)}"
    )


def _flux(spec: BurstSpec, settings: PodSettings) -> Manifest:
    config = follower_config(spec.lead, spec.hosts, spec.ranks, _CURVE_PATH)
    # The operator writes it by a heredoc, in which the shell expands these characters.
    if any(letter in config for letter in "$`\\"):
        raise Refused(
            "the lead's [bootstrap] has a $, a backquote or a backslash, which the Flux"
            " Operator does not pass on unchanged",
            'change it there, or set form = "job"',
        )
    return {
        "brokerConfig": config,
        "curveCert": _PLACEHOLDER,
        "connectTimeout": "5s",
        # Otherwise the operator declares hosts of its own.
        "bursting": {"hostlist": format_hostlist(spec.lead.hosts)},
        "container": _init_container(settings),
    }


def _init_container(settings: PodSettings) -> Manifest:
    found = {
        "image": settings.view or settings.image,
        "resources": pod.small_resources(),
        **_security(settings),
    }
    return found if settings.view else {**found, "disable": True}


def _security(settings: PodSettings) -> Manifest:
    if settings.user is None:  # brokers run as the image's user
        return {}
    ours = pod.pod_security(settings)
    ours.pop("fsGroup", None)
    return {"securityContext": {**ours, **pod.container_security(settings)}}


def _pod(meta: Manifest, settings: PodSettings) -> Manifest:
    found: Manifest = {
        "labels": meta["labels"],
        "annotations": pod.pod_annotations(meta),
        "automountServiceAccountToken": False,
    }
    if settings.user:
        found["securityContext"] = {"fsGroup": settings.user}
    return found


def _container(meta: Manifest, spec: BurstSpec, settings: PodSettings) -> Manifest:
    volumes: Manifest = {
        "burst-key": {"secretName": meta["name"], "path": SECRET_PATH},
        **{
            name: {"hostPath": path, "path": path, "readOnly": True}
            for path, name in host_paths(settings).items()
        },
    }
    return {
        "image": settings.image,
        "imagePullPolicy": pull_policy(settings.pod),
        "command": "",
        "commands": {"pre": start_lines(spec, settings)},
        "environment": {},
        "resources": pod.resources(pod.offer_table_for(spec, settings), settings),
        "volumes": volumes,
        **_security(settings),
    }
