# SPDX-License-Identifier: MIT
"""The ClusterManager service on loopback: real gRPC, real messages, our own GKE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1 import types as t
from google.cloud.container_v1.services.cluster_manager.transports import (
    ClusterManagerGrpcTransport,
)
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from tests.plugins.gke.gke import PROJECT, Denied, Gke
from tests.support.waiting import HANG_S

_SERVICE = "google.container.v1.ClusterManager"
_METHODS: dict[str, tuple[str, Any, Any]] = {
    "ListClusters": ("list_clusters", t.ListClustersRequest, t.ListClustersResponse),
    "GetCluster": ("get_cluster", t.GetClusterRequest, t.Cluster),
    "ListOperations": (
        "list_operations",
        t.ListOperationsRequest,
        t.ListOperationsResponse,
    ),
    "CreateCluster": ("create_cluster", t.CreateClusterRequest, t.Operation),
    "CreateNodePool": ("create_node_pool", t.CreateNodePoolRequest, t.Operation),
    "SetNodePoolAutoscaling": (
        "set_node_pool_autoscaling",
        t.SetNodePoolAutoscalingRequest,
        t.Operation,
    ),
    "DeleteCluster": ("delete_cluster", t.DeleteClusterRequest, t.Operation),
    "DeleteNodePool": ("delete_node_pool", t.DeleteNodePoolRequest, t.Operation),
}


class Token(AnonymousCredentials):
    """Anonymous to gRPC, with a token for Kubernetes."""

    def __init__(self, token: str = "token-1") -> None:
        super().__init__()
        self.token = token


class Service:
    """What a server answers for, which each test may change."""

    def __init__(self, gke: Gke) -> None:
        self.gke = gke

    def release(self) -> None:
        """Have calls that hang answered."""
        for event in self.gke.hangs.values():
            event.set()


@contextmanager
def serve(service: Service) -> Iterator[str]:
    """Yield the address of a server."""
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {name: _handler(service, *method) for name, method in _METHODS.items()}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE, handlers),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        service.release()
        server.stop(0).wait(HANG_S)


@contextmanager
def connect(address: str) -> Iterator[ClusterManagerClient]:
    """Yield Google's client, of a server without TLS."""
    with grpc.insecure_channel(address) as channel:
        yield ClusterManagerClient(
            transport=ClusterManagerGrpcTransport(channel=channel)
        )


def _handler(service: Service, method: str, request: Any, response: Any) -> Any:
    def answer(message: Any, context: grpc.ServicerContext) -> Any:
        gke = service.gke
        if method in gke.hangs:
            gke.hangs[method].wait(HANG_S)
        with gke.lock:
            gke.calls[method] += 1
            try:
                found = _answer(gke, method, message)
            except Denied as error:
                _abort(context, error)
            if gke.drops.get(method, 0) > 0:
                gke.drops[method] -= 1
                _abort(context, Denied("UNAVAILABLE", "Socket closed"))
        return found

    return grpc.unary_unary_rpc_method_handler(
        answer,
        request_deserializer=request.deserialize,
        response_serializer=response.serialize,
    )


def _answer(gke: Gke, method: str, message: Any) -> Any:
    denials = gke.denials.get(method)
    if denials:
        raise denials.pop(0)
    where = getattr(message, "parent", "") or getattr(message, "name", "")
    if not where.startswith(f"projects/{PROJECT}/"):
        verb = method.partition("_")[0]
        raise Denied(
            "PERMISSION_DENIED",
            f'Required "container.clusters.{verb}" permission(s) for "{where}".',
        )
    call: Callable[[Any], Any] = getattr(gke, method)
    return call(message)


def _abort(context: grpc.ServicerContext, error: Denied) -> None:
    told: list[Message] = []
    if error.retry_after is not None:
        delay = Duration()
        delay.FromMilliseconds(int(1000 * error.retry_after))
        told.append(RetryInfo(retry_delay=delay))
    if error.info:
        reason, metadata = error.info
        told.append(ErrorInfo(reason=reason, domain="x", metadata=metadata))
    details = [AnyMessage() for _ in told]
    for detail, each in zip(details, told, strict=True):
        detail.Pack(each)
    if not details:
        context.abort(error.code, str(error))
    status = Status(code=error.code.value[0], message=str(error), details=details)
    context.abort_with_status(rpc_status.to_status(status))
