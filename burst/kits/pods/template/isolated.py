# SPDX-License-Identifier: MIT
"""The objects of an isolated burst: an instance that runs one program once.

The pods are of one indexed Job; the pod with index 0 is the lead. Brokers find the lead
by name through a headless Service, and share a certificate that is made here and is
only in the Secret. The kubelet restarts no container, and the Job replaces no pod, as a
job that was started must not be started a second time. The lead writes the program's
result as its container's termination message.
"""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w

from burst.errors import SpecRefused
from burst.kits import certificate
from burst.kits.broker import flux_follower_argv
from burst.kits.kube.kinds import Manifest
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import job
from burst.kits.pods.template.containers import BROKER
from burst.kits.pods.template.dns_names import headless_service
from burst.kits.pods.template.mount_paths import (
    CONFIG_PATH,
    RESULT_PATH,
    RUN_PATH,
    SECRET_PATH,
)
from burst.kits.pods.template.pod import CERTIFICATE, secret_of
from burst.kits.pods.template.start_broker import start_broker
from burst.kits.pods.template.storage import rundir_of
from burst.kits.pods.template.view import flux_of
from burst.model.ranks import format_hostlist
from burst.model.resource_set import EMPTY, ResourceSet, group_of
from burst.provider import BurstSpec

_PORT = 8050
_SERVICE_PORT = 5000
_JOBSPEC = "jobspec.json"
_RUNNER = "run-isolated.py"
_ONLINE = f"{RUN_PATH}/online"
# Seconds from the end of the Job until Kubernetes deletes it. The daemon has to read
# the result from its pods before, and may be down for some hours.
_KEPT_S = 86400
# MaxSecretSize of the Kubernetes API, in bytes.
_SECRET_MOST = 1024 * 1024


def render_isolated(
    meta: Manifest, spec: BurstSpec, settings: PodSettings, seconds: int
) -> list[Manifest]:
    """Return the objects; the last one makes the pods. Raises Refused.

    `seconds` is the time until the lease ends; 0 for no end.
    """
    if settings.form == "operator":
        raise SpecRefused(
            "isolated bursts are Jobs, and this provider makes MiniClusters",
            'set form = "job"',
        )
    return [
        _config_map(meta, spec, settings),
        _secret(meta, spec, settings),
        _service(meta),
        _job(meta, spec, settings, seconds),
    ]


def access(namespace: str, pod: str, settings: PodSettings) -> str:
    """Return the command that gives a person a shell in the instance."""
    shell = f"{flux_of(settings)} proxy local://{rundir_of(settings)}/local"
    return f"kubectl exec -it -n {namespace} {pod} -c {BROKER} -- {shell}"


def address(name: str, settings: PodSettings) -> str:
    """Return the service's URL inside the cluster."""
    return f"http://{name}-0.{name}.{settings.namespace}.svc:{_SERVICE_PORT}"


def _config_map(meta: Manifest, spec: BurstSpec, settings: PodSettings) -> Manifest:
    data = {
        "broker.toml": tomli_w.dumps(_broker_tables(meta, spec)),
        "R": _resources(spec).encode(),
        "hosts": "".join(f"{host}\n" for host in spec.hosts),
        "start": _start_script(settings),
        "program": _program_script(spec, settings),
        _RUNNER: (files("burst") / "flux_setup" / "files" / _RUNNER).read_text(),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def _broker_tables(meta: Manifest, spec: BurstSpec) -> dict[str, Any]:
    # Without the cluster's domain, which is not known here; pods search it.
    domain = f"{meta['name']}.{meta['namespace']}.svc"
    return {
        "bootstrap": {
            "curve_cert": f"{RUN_PATH}/{CERTIFICATE}",
            "default_port": _PORT,
            "default_bind": "tcp://*:%p",
            "default_connect": f"tcp://%h.{domain}:%p",
            "hosts": [{"host": format_hostlist(spec.hosts)}],
        },
        # A pod sees all cores of its node, but may use only as many as the offer says.
        "resource": {"path": f"{CONFIG_PATH}/R", "noverify": True},
        "tbon": {"connect_timeout": "5s"},
    }


def _resources(spec: BurstSpec) -> ResourceSet:
    """Return the R of the instance, whose nodes are equal."""
    group = group_of(range(len(spec.hosts)), spec.shape)
    return EMPTY.with_ranks([group], spec.hosts)


def _start_script(settings: PodSettings) -> str:
    """Return the start script of each container, for sh."""
    config, rundir = Path(CONFIG_PATH, "broker.toml"), Path(rundir_of(settings))
    # Log errors only, as the job's output is in the same log.
    argv = flux_follower_argv(settings.flux, config, job.HOST, rundir, log_level=3)
    return f"""\
{job.preamble(settings)}set -- {job.with_host(argv)}
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then
    set -- "$@" /bin/sh {CONFIG_PATH}/program
fi
{start_broker('"$@"', replaced=False)}"""


def _program_script(spec: BurstSpec, settings: PodSettings) -> str:
    """Return the lead's initial program, for sh. It runs once all brokers are up."""
    assert spec.program is not None
    flux, runner = settings.flux, f"{CONFIG_PATH}/{_RUNNER}"
    if spec.program.kind == "interactive":
        command = ["tail", "-f", "/dev/null"]
    elif spec.program.kind == "service":
        command = list(settings.service)
    else:
        jobspec = f"{SECRET_PATH}/{_JOBSPEC}"
        command = [flux, "python", runner, flux, jobspec, RESULT_PATH]
    if not command:
        raise SpecRefused(
            "there is no service to run", "set service in the provider's table"
        )
    return f"set -eu\n: > {_ONLINE}\nexec {shlex.join(command)}\n"


def _secret(meta: Manifest, spec: BurstSpec, settings: PodSettings) -> Manifest:
    """Return the Secret: the certificate, and the jobspec, which may have secrets."""
    assert spec.program is not None
    made = certificate.create(meta["name"])
    content = {
        CERTIFICATE: certificate.format_certificate(made),
        _JOBSPEC: spec.program.jobspec,
    }
    size = sum(len(text.encode()) for text in content.values())
    if size > _SECRET_MOST:
        raise SpecRefused(
            f"the jobspec and a certificate are {size} bytes, and a Secret of"
            f" Kubernetes holds {_SECRET_MOST}",
            "a jobspec has the job's environment and files: submit the job with less of"
            " them",
        )
    return secret_of(meta, content, settings)


def _service(meta: Manifest) -> Manifest:
    """Return the Service that gives pods their DNS names.

    It includes pods that are not Ready, as the lead is Ready only once all others have
    found it.
    """
    port = {"name": "broker", "port": _PORT, "protocol": "TCP"}
    return headless_service(meta, meta["labels"], [port])


def _job(
    meta: Manifest, spec: BurstSpec, settings: PodSettings, seconds: int
) -> Manifest:
    made = job.render_job(meta, spec, settings, seconds)
    del made["spec"]["backoffLimit"]
    # A pod that fails is not replaced, and does not end the others: the instance itself
    # handles a lost node.
    made["spec"]["backoffLimitPerIndex"] = 0
    made["spec"]["ttlSecondsAfterFinished"] = _KEPT_S
    pod = made["spec"]["template"]["spec"]
    pod["restartPolicy"] = "Never"
    pod["subdomain"] = meta["name"]
    # Ready means that the instance is up. Only the lead's pod becomes Ready.
    # `pod` of the settings may have added other containers.
    broker = next(c for c in pod["containers"] if c["name"] == BROKER)
    broker["readinessProbe"] = {
        "exec": {"command": ["test", "-e", _ONLINE]},
        "periodSeconds": 1,
        "timeoutSeconds": 5,
    }
    return made
