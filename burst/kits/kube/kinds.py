# SPDX-License-Identifier: MIT
"""Kinds of Kubernetes objects, their paths at the API server, and what to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from burst.decode import from_json
from burst.errors import Transient

Manifest = dict[str, Any]
"""A Kubernetes object, as decoded from its JSON."""
METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
"""The Accept header that requests metadata only."""

_T = TypeVar("_T")


class Kind(msgspec.Struct, frozen=True):
    """A kind of Kubernetes objects."""

    api: str
    """`v1`, or `GROUP/VERSION`."""
    name: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.api.rpartition("/")[0]

    @property
    def resource(self) -> str:
        """The resource as `kubectl auth can-i` and the server name it: `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str, name: str = "", part: str = "") -> str:
        """Return the path of one object, of its subresource `part`, or of all objects.

        `namespace` is empty for kinds that are not namespaced, such as nodes.
        """
        root = "apis" if self.group else "api"
        words = [root, *self.api.split("/")]
        words += ["namespaces", quote(namespace, safe="")] if namespace else []
        words += [self.plural, *([quote(name, safe="")] if name else [])]
        return "/" + "/".join([*words, *([part] if part else [])])


CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")
SERVICE = Kind("v1", "Service", "services")
POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
EVENT = Kind("v1", "Event", "events")
JOB = Kind("batch/v1", "Job", "jobs")
MINICLUSTER = Kind("flux-framework.org/v1alpha2", "MiniCluster", "miniclusters")

KINDS = {
    kind.name: kind
    for kind in (
        *(CONFIG_MAP, SECRET, SERVICE, POD, EVENT, JOB),
        *(MINICLUSTER, NAMESPACE),
    )
}


def name_of(manifest: Manifest) -> str:
    """Return the object's name."""
    return str(manifest["metadata"]["name"])


def labels_of(manifest: Manifest) -> dict[str, str]:
    """Return the object's labels."""
    return dict(manifest["metadata"].get("labels") or {})


def annotations_of(manifest: Manifest) -> dict[str, str]:
    """Return the object's annotations."""
    return dict(manifest["metadata"].get("annotations") or {})


def is_ending(manifest: Manifest) -> bool:
    """Return whether the object is being deleted."""
    return "deletionTimestamp" in manifest["metadata"]


class Selection(msgspec.Struct, frozen=True):
    """The objects of a kind in a namespace that have these labels.

    A label whose value here is "" must be there, with any value.
    """

    kind: Kind
    namespace: str
    labels: Mapping[str, str]
    metadata_only: bool = False
    """Whether the API server sends metadata only, so for instance no Secret's
    content."""

    def query(self) -> dict[str, str]:
        """Return the label selector as query parameters."""
        words = (f"{k}={v}" if v else k for k, v in self.labels.items())
        chosen = ",".join(words)
        return {"labelSelector": chosen} if chosen else {}

    def headers(self, metadata: str) -> dict[str, str]:
        """Return the request's headers; `metadata` is the kind to ask for instead."""
        return {"Accept": METADATA.format(metadata)} if self.metadata_only else {}


class _ListMeta(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, Generic[_T]):
    """One page of a list."""

    items: list[_T] | None = None
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


def decode(text: bytes, form: type[_T]) -> _T:
    """Decode an answer of the API server as this type. Raises Transient."""
    try:
        return from_json(text, form)
    except msgspec.MsgspecError as error:
        raise Transient(
            f"the API server's answer is not a JSON object as expected: {error}"
        ) from error
