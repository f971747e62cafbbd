# SPDX-License-Identifier: MIT
"""The requests to a Kubernetes API server that bursts need."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeVar

from burst.errors import ProviderError, Refused, Transient
from burst.kits.kube.access import Access
from burst.kits.kube.api_stream import ApiStream
from burst.kits.kube.connect import (
    ApiConnection,
    ApiRequest,
    ApiResponse,
    warnings_of,
)
from burst.kits.kube.faults import ApiCall, explain, is_absent, is_taken
from burst.kits.kube.kinds import (
    EVENT,
    KINDS,
    METADATA,
    NAMESPACE,
    POD,
    Kind,
    Manifest,
    Page,
    Selection,
    decode,
)

REQUEST_S = 30.0
"""Seconds that a request may take: an admission webhook may take 10 by default."""
# Of the end of a log, which a node sends at once, or not at all if it is away.
_TAIL_S = 5.0
FIELD_MANAGER = "burst"
Propagation = Literal["Foreground", "Background"]
_T = TypeVar("_T")

_APPLY = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
_MERGE = {"Content-Type": "application/merge-patch+json"}
_JSON = {"Content-Type": "application/json"}
_PAGE = 500
_MOST_PAGES = 100
_LONGEST_LOG = 16 * 1024 * 1024


class Cluster:
    """One cluster, with one pool of connections. Several threads may use it.

    Each request has a time limit and is sent once; the daemon repeats it. All methods
    raise Transient, Refused, and InsufficientCapacity if a ResourceQuota is used up.
    """

    def __init__(
        self,
        access: Access,
        *,
        timeout: float = REQUEST_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = ApiConnection(access, clock)
        self._timeout = timeout

    @property
    def access(self) -> Access:
        """How the cluster is reached."""
        return self._connection.access

    def close(self) -> None:
        """Close the connections. The next call reads the credentials again."""
        self._connection.close()

    def create(self, manifest: Manifest) -> Manifest | None:
        """Create the object and return it; return None if its name is taken.

        An existing object is not changed. It needs only the verb `create`. Unknown
        fields are an error.
        """
        kind = self.kind_of(manifest)
        meta = manifest["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        attempt = ApiCall(self.access, "create", kind, namespace, name)
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        answer = self._send(
            "POST", kind.path(namespace), query=query, body=manifest, headers=_JSON
        )
        if is_taken(answer):
            return None
        made = _decode(_checked(answer, attempt))
        return {**made, "apiVersion": kind.api, "kind": kind.name}

    def rehearse(self, manifest: Manifest) -> list[str]:
        """Send the object as a dry run, and return the API server's warnings.

        It needs the verb `create`. It is no error if the object exists.
        """
        return warnings_of(self._rehearse(manifest))

    def is_there(self, manifest: Manifest) -> bool:
        """Return whether an object of that kind and name exists, without reading it.

        It tries to create the object by a dry run, so it needs the verb `create`.
        """
        return is_taken(self._rehearse(manifest))

    def _rehearse(self, manifest: Manifest) -> ApiResponse:
        kind = self.kind_of(manifest)
        namespace, name = (
            manifest["metadata"]["namespace"],
            manifest["metadata"]["name"],
        )
        attempt = ApiCall(self.access, "create", kind, namespace, name)
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = self._send(
            "POST", kind.path(namespace), query=query, body=manifest, headers=_JSON
        )
        if not is_taken(answer):
            _checked(answer, attempt)
        return answer

    def merge(self, manifest: Manifest, change: Manifest) -> Manifest:
        """Change the object that has this uid by a merge patch (RFC 7386)."""
        kind = KINDS[manifest["kind"]]
        meta = manifest["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        attempt = ApiCall(self.access, "patch", kind, namespace, name)
        # The server refuses a wrong uid, so a later object of that name is not changed.
        body = {**change, "metadata": {**change["metadata"], "uid": meta["uid"]}}
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
        path = kind.path(namespace, name)
        answer = self._ask(attempt, path, query=query, body=body, headers=_MERGE)
        return _decode(answer)

    def apply(self, manifest: Manifest) -> Manifest:
        """Create or change the object by server-side apply, as field manager `burst`.

        The manifest must have a namespace if its kind is namespaced. Unknown fields are
        an error.
        """
        kind = self.kind_of(manifest)
        meta = manifest["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        attempt = ApiCall(self.access, "patch", kind, namespace, name)
        query = {
            "fieldManager": FIELD_MANAGER,
            "force": "true",
            "fieldValidation": "Strict",
        }
        path = kind.path(namespace, name)
        answer = self._ask(attempt, path, query=query, body=manifest, headers=_APPLY)
        return _decode(answer)

    def get(
        self, kind: Kind, namespace: str, name: str, *, metadata_only: bool = False
    ) -> Manifest | None:
        """Return the object; None if it does not exist.

        With `metadata_only` the API server sends only the metadata, so for instance not
        the content of a Secret.
        """
        attempt = ApiCall(self.access, "get", kind, namespace, name)
        accept = METADATA.format("PartialObjectMetadata")
        headers = {"Accept": accept} if metadata_only else {}
        answer = self._send("GET", kind.path(namespace, name), headers=headers)
        if is_absent(answer) or (answer.status == 404 and kind.plural == "namespaces"):
            return None
        found = _decode(_checked(answer, attempt))
        return {**found, "apiVersion": kind.api, "kind": kind.name}

    def find(
        self,
        kind: Kind,
        namespace: str,
        labels: Mapping[str, str] | None = None,
        *,
        fields: str = "",
        metadata_only: bool = False,
    ) -> list[Manifest]:
        """Return all objects with these labels, by consistent reads of all pages.

        A label whose value here is "" must be there, with any value. `fields` is a
        field selector; `metadata_only` is as for `get`.
        """
        found, _ = self.find_as(
            Manifest,
            Selection(kind, namespace, labels or {}, metadata_only=metadata_only),
            fields=fields,
        )
        return [{**item, "apiVersion": kind.api, "kind": kind.name} for item in found]

    def find_as(
        self, form: type[_T], selected: Selection, *, fields: str = ""
    ) -> tuple[list[_T], str]:
        """Return the objects decoded as `form`, and the resource version of the list.

        `form` is a msgspec.Struct; fields that it does not name are skipped.
        """
        kind, namespace = selected.kind, selected.namespace
        attempt = ApiCall(self.access, "list", kind, namespace)
        query = {"limit": str(_PAGE), **selected.query()}
        query |= {"fieldSelector": fields} if fields else {}
        headers = selected.headers("PartialObjectMetadataList")
        found: list[_T] = []
        for _ in range(_MOST_PAGES):
            answer = self._ask(
                attempt, kind.path(namespace), query=query, headers=headers
            )
            page = decode(answer.body, Page[form])  # type: ignore[valid-type]
            found += page.items or []
            if not page.metadata.more:
                return found, page.metadata.version
            query["continue"] = page.metadata.more
        raise Transient(f"cannot {attempt}: the list has too many pages")

    def watch(self, selected: Selection, version: str, seconds: int) -> ApiStream:
        """Stream the objects' changes since a resource version, as JSON lines.

        The API server ends the stream after `seconds`, and sends a bookmark before. It
        needs the verb `watch`. Raises Transient if the version is too old.
        """
        kind, namespace = selected.kind, selected.namespace
        attempt = ApiCall(self.access, "watch", kind, namespace)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            **selected.query(),
        }
        answer = self._connection.open_stream(
            ApiRequest(
                method="GET",
                path=kind.path(namespace),
                query=query,
                headers=selected.headers("PartialObjectMetadata"),
                timeout=self._timeout,
            )
        )
        if isinstance(answer, ApiStream):
            return answer
        raise explain(answer, attempt)

    def delete(
        self,
        manifest: Manifest,
        propagation: Propagation = "Foreground",
        *,
        grace: int | None = None,
    ) -> None:
        """Delete the object that has this uid; do nothing if it is gone.

        With `grace` 0 the object of a pod is deleted even if its kubelet has not ended
        the pod.
        """
        kind = KINDS[manifest["kind"]]
        meta = manifest["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        attempt = ApiCall(self.access, "delete", kind, namespace, name)
        body: Manifest = {
            "propagationPolicy": propagation,
            "preconditions": {"uid": meta["uid"]},
        }
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        path = kind.path(namespace, name)
        answer = self._send("DELETE", path, body=body, headers=_JSON)
        if not is_absent(answer):
            _checked(answer, attempt)

    def may(self, verb: str, kind: Kind, namespace: str, part: str = "") -> bool:
        """Return whether the credentials allow the verb (SelfSubjectAccessReview)."""
        attributes = {
            "verb": verb,
            "group": kind.group,
            "resource": kind.plural,
            "subresource": part,
            "namespace": namespace,
        }
        review = "SelfSubjectAccessReview"
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": review,
            "spec": {"resourceAttributes": attributes},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        attempt = ApiCall(self.access, f"create {review}")
        answer = self._ask(attempt, path, method="POST", body=body, headers=_JSON)
        return bool(_decode(answer).get("status", {}).get("allowed"))

    def lacks_namespace(self, name: str) -> bool:
        """Tell whether a namespace is known not to exist."""
        try:
            return self.get(NAMESPACE, "", name) is None
        except ProviderError:
            return False  # the right to read namespaces is missing

    def serves(self, kind: Kind) -> bool:
        """Return whether the cluster has this kind in this version."""
        return any(known["name"] == kind.plural for known in self._kinds(kind.api))

    def has_group(self, group: str) -> bool:
        """Return whether the cluster has an API group, in any version."""
        listed = _decode(self._ask(ApiCall(self.access, "get /apis"), "/apis"))
        return any(known["name"] == group for known in listed["groups"])

    def kind_of(self, manifest: Manifest) -> Kind:
        """Return an object's kind. Raises Refused if the cluster does not have it."""
        api, name = str(manifest["apiVersion"]), str(manifest["kind"])
        if name in KINDS and KINDS[name].api == api:
            return KINDS[name]
        for known in self._kinds(api):
            if known["kind"] == name and "/" not in known["name"]:
                return Kind(api, name, known["name"], namespaced=known["namespaced"])
        raise Refused(
            f"the cluster has no kind {name} of {api}",
            "install its CRD, or use a cluster whose Kubernetes has it",
        )

    def tail(self, namespace: str, pod: str, container: str, *, lines: int = 64) -> str:
        """Return the end of the log of a pod's container; empty if there is none."""
        query = {"tailLines": str(lines), "limitBytes": "16384"}
        query["container"] = container
        return self._log(namespace, pod, query, min(self._timeout, _TAIL_S))

    def log(self, namespace: str, pod: str, container: str) -> str:
        """Return the log of a container as its node has it, at most the first 16 MiB.

        By default a node keeps 10 MiB. The log is empty if there is none.
        """
        query = {"limitBytes": str(_LONGEST_LOG), "container": container}
        return self._log(namespace, pod, query, self._timeout)

    def _log(
        self, namespace: str, pod: str, query: dict[str, str], timeout: float
    ) -> str:
        attempt = ApiCall(self.access, "get", POD, namespace, pod, "log")
        path = POD.path(namespace, pod, "log")
        answer = self._send("GET", path, query=query, timeout=timeout)
        # 400: the container has not started, or its log was removed.
        if is_absent(answer) or answer.status == 400:
            return ""
        return _checked(answer, attempt).body.decode(errors="replace")

    def events(self, namespace: str, kind: Kind, *, reason: str = "") -> list[Manifest]:
        """Return the Warning events about a kind of objects, or those with `reason`."""
        chosen = f"reason={reason}" if reason else "type=Warning"
        fields = f"{chosen},involvedObject.kind={kind.name}"
        return self.find(EVENT, namespace, fields=fields)

    def normal_events(
        self, namespace: str, kind: Kind, *, but: Collection[str]
    ) -> list[Manifest]:
        """Return the Normal events about a kind of objects, except reasons `but`."""
        others = [f"reason!={reason}" for reason in but]
        fields = ("type=Normal", f"involvedObject.kind={kind.name}", *others)
        return self.find(EVENT, namespace, fields=",".join(fields))

    def version(self) -> str:
        """Return the API server's version, such as `v1.34.4`."""
        answer = self._ask(ApiCall(self.access, "get /version"), "/version")
        return str(_decode(answer).get("gitVersion", "unknown"))

    def _kinds(self, api: str) -> list[Manifest]:
        """Return the kinds that the cluster lists for an API version."""
        answer = self._send("GET", f"/apis/{api}" if "/" in api else f"/api/{api}")
        if answer.status == 404:
            return []
        checked = _checked(answer, ApiCall(self.access, f"discover {api}"))
        return list(_decode(checked)["resources"])

    def _ask(
        self,
        attempt: ApiCall,
        path: str,
        *,
        method: str = "",
        **more: Any,
    ) -> ApiResponse:
        """Send the request; raise an error unless the answer is a success."""
        verb = method or {"patch": "PATCH"}.get(attempt.verb, "GET")
        return _checked(self._send(verb, path, **more), attempt)

    def _send(self, method: str, path: str, **more: Any) -> ApiResponse:
        fields = {"timeout": self._timeout, **more}
        return self._connection.send(ApiRequest(method=method, path=path, **fields))


def _checked(answer: ApiResponse, attempt: ApiCall) -> ApiResponse:
    if not 200 <= answer.status < 300:
        raise explain(answer, attempt)
    return answer


def _decode(answer: ApiResponse) -> Manifest:
    return decode(answer.body, Manifest)
