# SPDX-License-Identifier: MIT
"""The fields of objects that are kept in memory, to derive the status of bursts.

An API server sends some 4 KiB for a pod, and as Python objects a pod takes 15 KiB.
These fields take less than 1 KiB as JSON. Each field that other modules read
(`burst_objects.py`, `describe.py`, `pod_status.py`, `containers.py`, `reclaim.py`,
`isolated_status.py`, `stuck_pods.py`) has to be declared here.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from burst.kits.pods import names


class _Kept(msgspec.Struct, omit_defaults=True, rename="camel"):
    """Base of the kept objects: absent fields stay absent, other fields are skipped."""


class _Labels(
    _Kept,
    rename={"burst": names.ID, "index": names.INDEX},
):
    burst: str = ""
    index: str = ""


class _Annotations(
    _Kept,
    rename={
        "spec": names.SPEC,
        "program": names.PROGRAM,
        "hosts": names.HOSTS,
        "leaving": names.LEAVING,
        "started": names.STARTED,
        "spot": names.SPOT,
        "index": names.INDEX,
    },
):
    spec: str = ""
    program: str = ""
    hosts: str = ""
    leaving: str = ""
    started: str | None = None
    spot: str | None = None
    index: str = ""


class _Metadata(_Kept):
    name: str = ""  # a bookmark has none
    uid: str = ""
    labels: _Labels | None = None
    annotations: _Annotations | None = None
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None


class _Resources(_Kept):
    limits: dict[str, Any] | None = None


class _Container(_Kept):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: _Resources | None = None


class _Running(_Kept):
    started_at: str | None = None


class _Waiting(_Kept):
    reason: str = ""
    message: str = ""


class _Terminated(_Kept):
    exit_code: int | UnsetType = UNSET
    reason: str = ""
    message: str = ""


class _State(_Kept):
    running: _Running | None = None
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(_Kept):
    name: str = ""
    image: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: _State | None = None
    last_state: _State | None = None


class _Condition(_Kept):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class _Spec(_Kept):
    suspend: bool | None = None
    node_name: str = ""
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _Status(_Kept):
    phase: str = ""
    nominated_node_name: str = ""
    reason: str = ""
    message: str = ""
    completed_indexes: str = ""
    failed_indexes: str = ""
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class KeptObject(_Kept):
    """A Job, a pod, or the metadata of any other object."""

    metadata: _Metadata
    spec: _Spec | None = None
    status: _Status | None = None

    @property
    def version(self) -> str:
        """The resource version."""
        return self.metadata.resource_version

    @property
    def burst(self) -> str:
        """The id of its burst; empty if its labels name none."""
        return self.metadata.labels.burst if self.metadata.labels else ""

    @property
    def place(self) -> tuple[str, str]:
        """The hosts of a pod's Job, and the pod's index in them; each empty if unknown.

        The pod that replaces it has the same place.
        """
        labels, noted = self.metadata.labels, self.metadata.annotations
        index = (labels and labels.index) or (noted and noted.index) or ""
        return noted.hosts if noted else "", index
