# SPDX-License-Identifier: MIT
"""Plays a controller of a cluster, such as Kueue: leaves its events about objects."""

from __future__ import annotations

import time
from typing import Any

from tests.kubernetes.api import Api


class Controller:
    """In one namespace, under the name of a program."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self._api = api
        self._core = f"/api/v1/namespaces/{namespace}"
        self._namespace = namespace
        self._name = name

    def tell(self, pod: Any, reason: str, message: str, kind: str = "Normal") -> None:
        """Leave an event about a pod (or its `kind`), as client-go's recorder does."""
        meta = pod["metadata"]
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {
            "metadata": {"generateName": f"{meta['name']}."},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": pod.get("kind", "Pod"),
                "name": meta["name"],
                "namespace": self._namespace,
                "uid": meta["uid"],
            },
            "reason": reason,
            "message": message,
            "type": kind,
            "source": {"component": self._name},
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
        self._api.create(f"{self._core}/events", event)
