# SPDX-License-Identifier: MIT
"""Pods that only sleep: a baseline for the speed of the kubelets in a run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from burst.kits.kube import Cluster
from burst.kits.kube.kinds import POD, Manifest
from tests.kubelab.build import PAUSE_IMAGE

NODES = 2
_DEADLINE_S = 60.0
_LOOK_S = 0.01


class Plain:
    """Makes Jobs of pods that only sleep, to time the kubelets alone."""

    def __init__(self, cluster: Cluster, namespace: str, *, mounts: bool) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._mounts = mounts

    def round(self) -> float:
        """Run one Job; return its seconds. Nothing is left afterwards."""
        name = f"plain-{secrets.token_hex(3)}"
        objects = _mounted(self._namespace, name) if self._mounts else []
        objects.append(_job(self._namespace, name, mounts=self._mounts))
        begun = time.monotonic()
        made = [self._cluster.apply(each) for each in objects]
        self._wait(lambda: self._running(name) == NODES)
        taken = time.monotonic() - begun
        for each in made:
            self._cluster.delete(each)
        self._wait(lambda: not self._pods(name))
        return taken

    def _running(self, name: str) -> int:
        return sum(p["status"].get("phase") == "Running" for p in self._pods(name))

    def _pods(self, name: str) -> list[Manifest]:
        return self._cluster.find(POD, self._namespace, {"job-name": name})

    def _wait(self, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + _DEADLINE_S
        while not holds():
            if time.monotonic() > ends:
                raise TimeoutError("plain pods neither came nor went")
            time.sleep(_LOOK_S)


def _job(namespace: str, name: str, *, mounts: bool) -> Manifest:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"job-name": name}},
    }
    main: Manifest = {"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}
    pod: Manifest = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "topologySpreadConstraints": [spread],
    }
    if mounts:
        pod["volumes"] = [
            {"name": "config", "configMap": {"name": name}},
            {"name": "secret", "secret": {"secretName": name}},
            {"name": "run", "emptyDir": {"medium": "Memory"}},
        ]
        paths = [
            {"name": each["name"], "mountPath": f"/mounted/{each['name']}"}
            for each in pod["volumes"]
        ]
        main = {**main, "volumeMounts": paths}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completions": NODES,
            "parallelism": NODES,
            "completionMode": "Indexed",
            "template": {"spec": {**pod, "containers": [main]}},
        },
    }


def _mounted(namespace: str, name: str) -> list[Manifest]:
    meta = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": meta, field: {"key": "value"}}
        for kind, field in (("ConfigMap", "data"), ("Secret", "stringData"))
    ]
