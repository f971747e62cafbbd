# SPDX-License-Identifier: MIT
"""A Flux instance in pods made by hand, for one job: a baseline without bursting."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from burst.kits.kube import Cluster
from burst.kits.kube.kinds import JOB, POD, Manifest
from tests.e2e.programs import ENVIRONMENT, host_paths, run
from tests.kubelab.cluster import Joined
from tests.kubelab.pods import pod_spec
from tests.nodes.mpilead import CORES, PODS

_LOOK_S = 0.1
_DEADLINE_S = 300.0
_BROKER_TOML = """\
[bootstrap]
curve_cert = "/secret/curve.cert"
default_port = 8050
default_bind = "tcp://eth0:%p"
default_connect = "tcp://%h.{name}.{namespace}.svc.cluster.local:%p"
hosts = [{{ host = "{hosts}" }}]
[resource]
noverify = true
path = "/config/R"
"""
# As in the Flux Operator's pods: a broker that cannot resolve the name of the first one
# would wait longer before it tries again.
_START = """\
until getent hosts {first}.{name}; do sleep 0.1; done > /dev/null
exec flux broker --config-path=/config/broker.toml sh -c "$JOB"
"""


class HandPods:
    """Makes new objects for each job: Job, Service, configuration and certificate."""

    def __init__(
        self, cluster: Cluster, given: Joined, namespace: str, shm: str
    ) -> None:
        self._cluster = cluster
        self._given = given
        self._namespace = namespace
        self._shm = shm

    def round(self, script: str) -> tuple[float, str]:
        """Run a script as the first broker's initial program.

        Return the time of the request for the first object, in seconds since the epoch,
        and the output of the script. Nothing is left afterwards.
        """
        name = f"hand-{secrets.token_hex(3)}"
        hosts = f"{name}-[0-{PODS - 1}]"
        objects = [*self._files(name, hosts), *self._pods(name, script)]
        began = time.time()
        made = [self._cluster.apply(each) for each in objects]
        self._wait(name)
        logs = ("logs", "-n", self._namespace, self._first(name))
        output = self._given.kubectl(*logs)
        for each in made:
            self._cluster.delete(each)
        self._wait_gone(name)
        return began, output

    def _wait(self, name: str) -> None:
        """Wait until all pods have succeeded."""
        ends = time.monotonic() + _DEADLINE_S
        while True:
            job = self._cluster.get(JOB, self._namespace, name) or {}
            status = job.get("status", {})
            if status.get("succeeded") == PODS:
                return
            if status.get("failed") or time.monotonic() > ends:
                logs = ("logs", "-n", self._namespace, "-l", f"job-name={name}")
                raise RuntimeError(f"{status}: {self._given.kubectl(*logs)}")
            time.sleep(_LOOK_S)

    def _wait_gone(self, name: str) -> None:
        ends = time.monotonic() + _DEADLINE_S
        while self._cluster.find(POD, self._namespace, {"job-name": name}):
            if time.monotonic() > ends:
                raise TimeoutError(f"the pods of {name} are still there")
            time.sleep(_LOOK_S)

    def _first(self, name: str) -> str:
        """Return the name of the first pod, which has a random suffix."""
        found = self._cluster.find(POD, self._namespace, {"job-name": name})
        pods = [pod["metadata"]["name"] for pod in found]
        return next(str(pod) for pod in pods if pod.startswith(f"{name}-0-"))

    def _meta(self, name: str) -> dict[str, str]:
        return {"name": name, "namespace": self._namespace}

    def _files(self, name: str, hosts: str) -> list[Manifest]:
        facts = {"name": name, "namespace": self._namespace, "hosts": hosts}
        ranks, cores = f"0-{PODS - 1}", f"0-{CORES - 1}"
        data = {
            "broker.toml": _BROKER_TOML.format(**facts),
            "R": run("flux", "R", "encode", "-r", ranks, "-c", cores, "-H", hosts),
        }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "curve.cert")
            subprocess.run(["flux", "keygen", str(file)], check=True)
            secret = {"curve.cert": file.read_text()}
        common = {"apiVersion": "v1", "metadata": self._meta(name)}
        service = {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"job-name": name},
        }
        return [
            {**common, "kind": "ConfigMap", "data": data},
            {**common, "kind": "Secret", "stringData": secret},
            {**common, "kind": "Service", "spec": service},
        ]

    def _pods(self, name: str, script: str) -> list[Manifest]:
        start = _START.format(first=f"{name}-0", name=name)
        volumes: dict[str, Any] = {
            "/config": {"configMap": {"name": name}},
            "/secret": {"secret": {"secretName": name, "defaultMode": 0o400}},
            "/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": self._shm}},
        }
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"job-name": name}},
        }
        spec = pod_spec(  # type: ignore[no-untyped-call]
            ["/bin/sh", "-ec", start],
            host_paths(flux=True),
            {**ENVIRONMENT, "JOB": script},
            volumes,
            subdomain=name,
            topologySpreadConstraints=[spread],
        )
        job = {
            "completions": PODS,
            "parallelism": PODS,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {"spec": spec},
        }
        meta = self._meta(name)
        return [
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": job}
        ]
