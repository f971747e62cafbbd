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
    time_of,
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
_STRICT = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
"""Unknown fields are an error."""
Propagation = Literal["Foreground", "Background"]
_T = TypeVar("_T")


_APPLY = {"Content-Type": "application/apply-patch+yaml"}  # JSON is YAML
_MERGE = {"Content-Type": "application/merge-patch+json"}
_JSON = {"Content-Type": "application/json"}
_PAGE = 500
_MOST_PAGES = 100
_LONGEST_LOG = 16 * 1024 * 1024
# What is measured is not exact. No limit is so short that this matters to it.
_DIFFERS_S = 10.0


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
        self._offset = time.time() - _steady()
        """The API server's time less that of a clock that nobody sets."""

    @property
    def ahead(self) -> float:
        """Seconds by which the API server's clock is ahead of this host's.

        It is as the answers have told, also if this host's clock was set since. A
        difference below `_DIFFERS_S` counts as none.
        """
        ahead = _steady() + self._offset - time.time()
        return ahead if abs(ahead) >= _DIFFERS_S else 0.0

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
        call = self._about("create", kind, manifest)
        answer = self._send(call, query=_STRICT, body=manifest)
        if is_taken(answer):
            return None
        return {**_checked(answer, call), "apiVersion": kind.api, "kind": kind.name}

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
        call = self._about("create", self.kind_of(manifest), manifest)
        query = {"dryRun": "All", "fieldValidation": "Strict"}
        answer = self._send(call, query=query, body=manifest)
        if not is_taken(answer):
            _checked(answer, call)
        return answer

    def merge(self, manifest: Manifest, change: Manifest) -> Manifest:
        """Change the object that has this uid by a merge patch (RFC 7386)."""
        call = self._about("patch", KINDS[manifest["kind"]], manifest)
        # The server refuses a wrong uid, so a later object of that name is not changed.
        uid = {"uid": manifest["metadata"]["uid"]}
        body = {**change, "metadata": {**change["metadata"], **uid}}
        return self._ask(call, query=_STRICT, body=body, headers=_MERGE)

    def apply(self, manifest: Manifest) -> Manifest:
        """Create or change the object by server-side apply, as field manager `burst`.

        The manifest must have a namespace if its kind is namespaced. Unknown fields are
        an error.
        """
        call = self._about("patch", self.kind_of(manifest), manifest)
        query = {**_STRICT, "force": "true"}
        return self._ask(call, query=query, body=manifest, headers=_APPLY)

    def get(
        self, kind: Kind, namespace: str, name: str, *, metadata_only: bool = False
    ) -> Manifest | None:
        """Return the object; None if it does not exist.

        With `metadata_only` the API server sends only the metadata, so for instance not
        the content of a Secret.
        """
        call = ApiCall(self.access, "get", kind, namespace, name)
        accept = METADATA.format("PartialObjectMetadata")
        answer = self._send(call, headers={"Accept": accept} if metadata_only else {})
        if is_absent(answer) or (answer.status == 404 and kind.plural == "namespaces"):
            return None
        return {**_checked(answer, call), "apiVersion": kind.api, "kind": kind.name}

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
        call = ApiCall(self.access, "list", selected.kind, selected.namespace)
        query = {"limit": str(_PAGE), **selected.query()}
        query |= {"fieldSelector": fields} if fields else {}
        headers = selected.headers("PartialObjectMetadataList")
        found: list[_T] = []
        for _ in range(_MOST_PAGES):
            answer = self._send(call, query=query, headers=headers)
            body = _successful(answer, call).body
            page = decode(body, Page[form])  # type: ignore[valid-type]
            found += page.items or []
            if not page.metadata.more:
                return found, page.metadata.version
            query["continue"] = page.metadata.more
        raise Transient(f"cannot {call}: the list has too many pages")

    def watch(self, selected: Selection, version: str, seconds: int) -> ApiStream:
        """Stream the objects' changes since a resource version, as JSON lines.

        The API server ends the stream after `seconds`, and sends a bookmark before. It
        needs the verb `watch`. Raises Transient if the version is too old.
        """
        call = ApiCall(self.access, "watch", selected.kind, selected.namespace)
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            **selected.query(),
        }
        headers = selected.headers("PartialObjectMetadata")
        request = self._request(call, query=query, headers=headers)
        answer = self._connection.open_stream(request)
        if isinstance(answer, ApiStream):
            return answer
        raise explain(answer, call)

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
        call = self._about("delete", KINDS[manifest["kind"]], manifest)
        body: Manifest = {
            "propagationPolicy": propagation,
            "preconditions": {"uid": manifest["metadata"]["uid"]},
        }
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        answer = self._send(call, body=body)
        if not is_absent(answer):
            _checked(answer, call)

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
        call = ApiCall(self.access, f"create {review}")
        answer = self._ask(call, method="POST", path=path, body=body)
        return bool(answer.get("status", {}).get("allowed"))

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
        listed = self._ask(ApiCall(self.access, "get /apis"), path="/apis")
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
        call = ApiCall(self.access, "get", POD, namespace, pod, "log")
        answer = self._send(call, query=query, timeout=timeout)
        # 400: the container has not started, or its log was removed.
        if is_absent(answer) or answer.status == 400:
            return ""
        return _successful(answer, call).body.decode(errors="replace")

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
        told = self._ask(ApiCall(self.access, "get /version"), path="/version")
        return str(told.get("gitVersion", "unknown"))

    def _kinds(self, api: str) -> list[Manifest]:
        """Return the kinds that the cluster lists for an API version."""
        call = ApiCall(self.access, f"discover {api}")
        path = f"/apis/{api}" if "/" in api else f"/api/{api}"
        answer = self._send(call, path=path)
        return [] if answer.status == 404 else list(_checked(answer, call)["resources"])

    def _about(self, verb: str, kind: Kind, manifest: Manifest) -> ApiCall:
        """Return the call that does this to an object."""
        meta = manifest["metadata"]
        return ApiCall(self.access, verb, kind, meta.get("namespace", ""), meta["name"])

    def _ask(self, call: ApiCall, **more: Any) -> Manifest:
        """Return the object in the answer; raise an error if it is not a success."""
        return _checked(self._send(call, **more), call)

    def _send(self, call: ApiCall, **more: Any) -> ApiResponse:
        sent = _steady()
        answer = self._connection.send(self._request(call, **more))
        there = time_of(answer)
        if there is not None:
            # The answer tells whole seconds, of some time since it was asked for.
            least, most = there - _steady(), there + 1 - sent
            self._offset = min(max(self._offset, least), most)
        return answer

    def _request(self, call: ApiCall, **more: Any) -> ApiRequest:
        """Return the request of a call; a body is JSON unless `headers` say more."""
        usual = {
            "method": call.method,
            "headers": _JSON if "body" in more else {},
            "timeout": self._timeout,
        }
        if call.kind is not None:
            usual["path"] = call.path
        return ApiRequest(**{**usual, **more})


def _steady() -> float:
    """Return the seconds since this host's start, with those of a suspension."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _successful(answer: ApiResponse, call: ApiCall) -> ApiResponse:
    if not 200 <= answer.status < 300:
        raise explain(answer, call)
    return answer


def _checked(answer: ApiResponse, call: ApiCall) -> Manifest:
    """Return the object in the answer; raise an error unless it is a success."""
    return decode(_successful(answer, call).body, Manifest)
