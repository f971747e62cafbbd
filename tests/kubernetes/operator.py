# SPDX-License-Identifier: MIT
"""Plays the Flux Operator as far as a client sees it: Job, ConfigMap and Service."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any

from tests.kubernetes.api import Api

_GROUP = "/apis/flux-framework.org/v1alpha2"
_TRIED_AGAIN = (403, 404, 409, 429, 500, 503, 504)
"""In a namespace that is being deleted nothing can be made; another may be faster; an
API server may be busy."""


class PlayedOperator:
    """Makes what belongs to each MiniCluster of a namespace, anew too if it is gone.

    As the real one it makes a controller the owner of each child, names them for the
    MiniCluster, and goes on while that is being deleted. It writes no broker.
    """

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._mine = f"{_GROUP}/namespaces/{namespace}/miniclusters"
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failures: list[Exception] = []

    def __enter__(self) -> PlayedOperator:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        while not self._end.wait(0.05):
            try:
                for found in self._api.items(self._mine):
                    self._reconcile(found)
            except (OSError, http.client.HTTPException):
                pass  # the next round may go through
            except Exception as error:  # noqa: BLE001  it is raised at the end
                self._failures.append(error)

    def _reconcile(self, found: Any) -> None:
        name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
        core = f"/api/v1/namespaces/{namespace}"
        jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        meta = {"ownerReferences": [_owner(found)]}
        entry = f"{name}-entrypoint"
        if self._api.get(f"{core}/configmaps/{entry}") is None:
            flux = found["spec"]["flux"]
            data = {
                "wait-0": found["spec"]["containers"][0]["commands"]["pre"],
                flux["container"]["name"]: flux["brokerConfig"],
                "curve.cert": flux["curveCert"],
            }
            config = {"metadata": {**meta, "name": entry}, "data": data}
            self._send("POST", f"{core}/configmaps", config)
        if self._api.get(f"{core}/services/{name}") is None:
            spec = {"clusterIP": "None", "selector": {"job-name": name}}
            service = {"metadata": {**meta, "name": name}, "spec": spec}
            self._send("POST", f"{core}/services", service)
        job = self._api.get(f"{jobs}/{name}")
        size = found["spec"]["size"]
        if job is not None and job["spec"]["parallelism"] != size:
            change = {"parallelism": size, "completions": size}
            self._send("PATCH", f"{jobs}/{name}", {"spec": change})
        if job is None:
            labels = found["spec"]["jobLabels"]
            job = {"metadata": {**meta, "name": name, "labels": labels}}
            self._send("POST", jobs, {**job, "spec": _job_spec(found)})

    def _send(self, method: str, path: str, manifest: Any) -> None:
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{kind}"}
        status, _, body = self._api.send(
            method, path, json.dumps(manifest).encode(), headers
        )
        assert status in (200, 201, *_TRIED_AGAIN), body


def _owner(found: Any) -> dict[str, Any]:
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _job_spec(found: Any) -> dict[str, Any]:
    pod, size = found["spec"]["pod"], found["spec"]["size"]
    image = found["spec"]["containers"][0]["image"]
    return {
        "completions": size,
        "parallelism": size,
        "completionMode": "Indexed",
        "activeDeadlineSeconds": found["spec"]["deadlineSeconds"],
        "template": {
            "metadata": {"labels": pod["labels"], "annotations": pod["annotations"]},
            "spec": {
                "restartPolicy": "OnFailure",
                "nodeSelector": pod.get("nodeSelector", {}),
                "containers": [{"name": "broker", "image": image}],
            },
        },
    }
