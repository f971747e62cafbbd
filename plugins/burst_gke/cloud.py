# SPDX-License-Identifier: MIT
"""Google Kubernetes Engine by Google's client. No other module imports it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import google.auth
from google.api_core.exceptions import AlreadyExists, GoogleAPICallError
from google.api_core.exceptions import NotFound as NoSuchThing
from google.auth.credentials import Credentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import Request
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.types import (
    Cluster,
    CreateClusterRequest,
    CreateNodePoolRequest,
    NodePool,
    Operation,
    StatusCondition,
)
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo

from burst.errors import NotFound, ProviderError, Refused, Transient
from burst.provider import Phase
from burst_gke.failures import LACKS, LASTING, LOG_IN, CloudFailure
from burst_gke.resources import GkeOperation, GkeResource

# Timeout of one call, in seconds; GKE usually answers within one.
_TIMEOUT_S = 20.0
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

# By the names of both Cluster.Status and NodePool.Status.
_PHASES = {
    "PROVISIONING": Phase.PENDING,
    "RUNNING": Phase.RUNNING,
    # It is being changed, such as by a new pool, but is usable.
    "RECONCILING": Phase.RUNNING,
    "STOPPING": Phase.ENDING,
    "ERROR": Phase.FAILED,
    "DEGRADED": Phase.FAILED,
    "RUNNING_WITH_ERROR": Phase.FAILED,
}
_IMPAIRED = ("DEGRADED", "RUNNING_WITH_ERROR")
_MESSAGES = {"cluster": CreateClusterRequest, "node_pool": CreateNodePoolRequest}

# Conditions that are no failure: resources are made in spite of them.
_NOTICES = (
    StatusCondition.Code.SET_BY_OPERATOR,
    StatusCondition.Code.CA_EXPIRING,
    StatusCondition.Code.NODE_SERVICE_ACCOUNT_MISSING_PERMISSIONS,
)


class ResourceExists(Transient):
    """A resource of that name exists. The caller reads it with the next call."""


class Cloud:
    """The clusters of one location of one project. All raise burst.errors only.

    Without `client` and `credentials` the first call uses those of this machine
    (Google's Application Default Credentials), until they are refused.
    """

    def __init__(
        self,
        parent: str,
        *,
        client: ClusterManagerClient | None = None,
        credentials: Credentials | None = None,
        timeout: float = _TIMEOUT_S,
    ) -> None:
        self.parent = parent
        self._given = credentials, client
        # Both at once: several threads call this.
        self._known = self._given
        self._timeout = timeout

    def clusters(self) -> list[GkeResource]:
        """Return all clusters, also those that we did not make."""
        return [_cluster(cluster) for cluster in self._list("clusters")]

    def cluster(self, name: str) -> GkeResource | None:
        """Return one cluster; None if there is none of that name.

        Unlike a list, the answer always shows the present state.
        """
        request = {"name": self._name(name)}
        try:
            return _cluster(
                self._call(f"to look at cluster {name}", "get_cluster", request)
            )
        except NotFound:
            return None

    def create(self, request: dict[str, Any]) -> None:
        """Begin to make a cluster or node pool. Raises ResourceExists."""
        what = "cluster" if "cluster" in request else "node_pool"
        doing = f"to make {what.replace('_', ' ')} {request[what]['name']}"
        try:
            _MESSAGES[what](request)
        except (TypeError, ValueError) as error:
            raise Refused(
                f"{doing}: {error}", "correct request in the provider's table"
            ) from error
        self._ask(doing, f"create_{what}", request)

    def delete_cluster(self, name: str) -> None:
        """Begin to delete a cluster. Raises NotFound."""
        request = {"name": self._name(name)}
        self._call(f"to delete cluster {name}", "delete_cluster", request)

    def delete_pool(self, cluster: str, name: str) -> None:
        """Begin to delete a node pool. Raises NotFound."""
        request = {"name": f"{self._name(cluster)}/nodePools/{name}"}
        self._call(f"to delete node pool {name}", "delete_node_pool", request)

    def set_autoscaling(self, cluster: str, pool: str, bounds: dict[str, Any]) -> None:
        """Begin to change how many nodes GKE's autoscaler may make. Raises NotFound."""
        name = f"{self._name(cluster)}/nodePools/{pool}"
        request = {"name": name, "autoscaling": bounds}
        doing = f"to change the bounds of node pool {pool}"
        self._call(doing, "set_node_pool_autoscaling", request)

    def operations(self, target: str) -> list[GkeOperation]:
        """Return the operations on a resource, the latest first.

        `target` is its path: `clusters/NAME` or `clusters/NAME/nodePools/NAME`.
        """
        found = self._list("operations")
        on = [op for op in found if op.target_link.endswith(f"/{target}")]
        on.sort(key=lambda op: op.start_time, reverse=True)
        return [_operation(operation) for operation in on]

    def token(self) -> str:
        """Return a valid bearer token. Raises Refused, Transient."""
        token = self._login()[0].token
        assert isinstance(token, str), "credentials that were refreshed have one"
        return token

    def _name(self, cluster: str) -> str:
        return f"{self.parent}/clusters/{cluster}"

    def _list(self, what: str) -> Sequence[Any]:
        """Return all `clusters` or `operations` of the location."""
        found = self._ask(f"to list {what}", f"list_{what}", {"parent": self.parent})
        if found.missing_zones:
            # A cluster that is missing would count as deleted.
            zones = ", ".join(found.missing_zones)
            raise Transient(f"Google Cloud could not list the {what} in {zones}")
        listed: Sequence[Any] = getattr(found, what)
        return listed

    def _ask(self, doing: str, method: str, request: dict[str, Any]) -> Any:
        """Make a call that does not name a resource of a burst.

        NotFound is then about a project or a network. It becomes Refused, as NotFound
        would say that nothing of a burst is left.
        """
        try:
            return self._call(doing, method, request)
        except NotFound as error:
            raise Refused(error.what, "correct the settings of the provider") from error

    def _login(self) -> tuple[Credentials, ClusterManagerClient]:
        """Return valid credentials, by default those of this machine."""
        known = self._known
        credentials, client = known
        try:
            if credentials is None:
                credentials, _ = google.auth.default(scopes=[_SCOPE])
            if not credentials.valid:
                credentials.refresh(Request())  # type: ignore[no-untyped-call]
            if client is None:
                client = ClusterManagerClient(credentials=credentials)
        except GoogleAuthError as error:
            what = f"no credentials for Google Cloud: {error}"
            lost = isinstance(error, TransportError)
            if lost or error.retryable or isinstance(error.__cause__, TransportError):
                raise Transient(what) from error
            # After a new login the next call reads what that has written. Another
            # thread may have read it already.
            if self._known is known:
                self._known = self._given
            raise Refused(what, LOG_IN) from error
        if self._known is known:
            self._known = credentials, client
        return credentials, client

    def _call(self, doing: str, method: str, request: dict[str, Any]) -> Any:
        _, client = self._login()
        call: Callable[..., Any] = getattr(client, method)
        try:
            # No retry: the daemon decides when to repeat a call.
            return call(request=request, retry=None, timeout=self._timeout)
        except GoogleAPICallError as error:
            raise _error(error, doing) from error


def _error(error: GoogleAPICallError, doing: str) -> ProviderError:
    code = error.grpc_status_code
    infos = [detail for detail in error.details or () if isinstance(detail, ErrorInfo)]
    fault = CloudFailure(
        code=code.name if code else "UNKNOWN",
        message=str(error.message or ""),
        retry_after=_retry_after(error),
        **_read(infos),
    )
    if isinstance(error, NoSuchThing):
        return NotFound(f"Google Cloud declined {doing}: {fault.message}")
    if isinstance(error, AlreadyExists):
        return ResourceExists(f"Google Cloud declined {doing}: {fault.message}")
    return fault.error(doing)


def _retry_after(error: GoogleAPICallError) -> float | None:
    for detail in error.details or ():
        if isinstance(detail, RetryInfo):
            return float(detail.retry_delay.ToTimedelta().total_seconds())
    return None


def _cluster(cluster: Cluster) -> GkeResource:
    pools = tuple(_pool(pool) for pool in cluster.node_pools)
    plane = cluster.control_plane_endpoints_config
    private = plane.ip_endpoints_config.private_endpoint
    return GkeResource(
        name=cluster.name,
        labels=dict(cluster.resource_labels),
        endpoint=cluster.endpoint,
        private_endpoint=private or cluster.private_cluster_config.private_endpoint,
        dns_endpoint=plane.dns_endpoint_config.endpoint,
        ca=base64.b64decode(cluster.master_auth.cluster_ca_certificate).decode(),
        pools=pools,
        has_nodes=any(pool.has_nodes for pool in pools),
        autopilot=cluster.autopilot.enabled,
        **_judge(cluster),
    )


def _pool(pool: NodePool) -> GkeResource:
    judged = _judge(pool)
    return GkeResource(
        name=pool.name,
        labels=dict(pool.config.resource_labels),
        most=pool.autoscaling.total_max_node_count,
        groups=tuple(
            url.partition("/projects/")[2] for url in pool.instance_group_urls
        ),
        has_nodes=pool.initial_node_count > 0 and judged["phase"] is not Phase.FAILED,
        **judged,
    )


def _judge(thing: Cluster | NodePool) -> dict[str, Any]:
    """Return phase, reason and failure of a resource, by its status and conditions."""
    phase = _PHASES.get(_name(thing.status), Phase.PENDING)
    fault = _fault_of(thing.conditions, thing.status_message)
    if phase is Phase.PENDING and fault.meaning in (*LACKS, *LASTING):
        # GKE itself would report the failure only after half an hour. What it makes
        # until then would cost, so it is deleted.
        phase = Phase.FAILED
    if phase is Phase.RUNNING:
        return {"phase": phase}
    said = f": {fault.message}" if fault.message else ""
    return {
        "phase": phase,
        "why": f"{thing.name} is {_name(thing.status)}{said}",
        "fault": fault,
        "impaired": _name(thing.status) in _IMPAIRED,
    }


def _fault_of(conditions: Sequence[StatusCondition], message: str) -> CloudFailure:
    """Return the failure by the conditions of a resource, or by its older field."""
    conditions = [c for c in conditions if c.code not in _NOTICES]
    said = dict.fromkeys(c.message for c in conditions if c.message)
    codes = dict.fromkeys(_name(c.code) for c in conditions if c.code)
    canonical = (_code_name(int(c.canonical_code)) for c in conditions)
    return CloudFailure(
        code=next((name for name in canonical if name != "UNKNOWN"), "UNKNOWN"),
        message="; ".join(said) or message,
        reasons=tuple(codes),
    )


def _name(value: IntEnum | int) -> str:
    """Return the name of an enumeration's value.

    A value that is newer than the client, which it reads as an int, has its number.
    """
    return value.name if isinstance(value, IntEnum) else str(value)


def _code_name(number: int) -> str:
    """Return the name of a google.rpc code; UNKNOWN for 0 and for other numbers."""
    known = Code.DESCRIPTOR.values_by_number
    return str(known[number].name) if number in known and number else "UNKNOWN"


def _operation(operation: Operation) -> GkeOperation:
    fault = None
    if operation.error.code:
        infos = []
        for detail in operation.error.details:
            info = ErrorInfo()
            if detail.Unpack(info):
                infos.append(info)
        fault = CloudFailure(
            code=_code_name(operation.error.code),
            message=operation.error.message,
            **_read(infos),
        )
    elif operation.status_message:
        # The older field for an error.
        fault = CloudFailure(code="UNKNOWN", message=operation.status_message)
    return GkeOperation(
        kind=_name(operation.operation_type).lower(),
        done=operation.status == Operation.Status.DONE,
        fault=fault,
    )


def _read(infos: Sequence[ErrorInfo]) -> dict[str, Any]:
    """Return reasons and metadata of a CloudFailure."""
    return {
        "reasons": tuple(info.reason for info in infos if info.reason),
        "metadata": {
            key: info.metadata[key] for info in infos for key in info.metadata
        },
    }
