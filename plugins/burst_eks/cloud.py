# SPDX-License-Identifier: MIT
"""EKS, STS and Auto Scaling by Amazon's client. No other module imports it."""

from __future__ import annotations

import base64
import contextlib
import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.signers import RequestSigner

from burst.errors import NotFound, Refused, Transient
from burst.kits.shorten import shorten
from burst.provider import Phase
from burst_eks.failures import error_of, meaning_of
from burst_eks.groups import NodeGroup

# No retries of the client's own: the daemon decides when to repeat a call.
_CONFIG = Config(connect_timeout=10, read_timeout=20, retries={"total_max_attempts": 1})
# EKS takes a token for 15 minutes. The client renews credentials that end in less than
# 10 minutes, so these outlive a token that is used for so many seconds.
_TOKEN_S = 480.0
_URL_S = 60
"""Of the signed URL in a token: as `aws eks get-token` asks for; EKS ignores it."""
_NODE_PHASES = {
    "CREATING": Phase.PENDING,
    "ACTIVE": Phase.RUNNING,
    "UPDATING": Phase.RUNNING,
    # It lacks nodes, such as one that spot capacity lost; pods on the others run.
    "DEGRADED": Phase.RUNNING,
    "DELETING": Phase.ENDING,
    "DELETE_FAILED": Phase.FAILED,
    "CREATE_FAILED": Phase.FAILED,
}


class EksCluster(msgspec.Struct, frozen=True):
    """A cluster that can be used."""

    url: str
    ca: str
    """Certificate of its authority, PEM."""
    subnets: tuple[str, ...]


class Cloud:
    """One region of one account. All methods raise errors of `burst.errors` only.

    `make_session` returns a session of boto3, whose credentials are then used.
    """

    def __init__(
        self,
        region: str,
        profile: str = "",
        *,
        make_session: Callable[..., Any] = boto3.Session,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._region, self._profile = region, profile
        self._make_session, self._clock = make_session, clock
        self._session: Any = None
        self._clients: dict[str, Any] = {}
        self._tokens: dict[str, tuple[str, float]] = {}

    def identity(self) -> str:
        """Return the ARN as which AWS knows the credentials."""
        return str(
            self._call("sts", "to tell who this is", "get_caller_identity")["Arn"]
        )

    def cluster(self, name: str) -> EksCluster:
        """Return a cluster that takes node groups. Raises Refused where there is none.

        Never NotFound, which would say that nothing of a burst is left.
        """
        doing = f"to look at cluster {name}"
        try:
            found = self._call("eks", doing, "describe_cluster", name=name)["cluster"]
        except NotFound as error:
            raise Refused(error.what, "set region, cluster and profile") from error
        if found["status"] in ("CREATING", "PENDING"):
            raise Transient(f"cluster {name} is {found['status']}")
        if found["status"] not in ("ACTIVE", "UPDATING"):
            raise Refused(f"cluster {name} is {found['status']}", "set another cluster")
        return EksCluster(
            found["endpoint"],
            base64.b64decode(found["certificateAuthority"]["data"]).decode(),
            tuple(found["resourcesVpcConfig"]["subnetIds"]),
        )

    def groups(self, cluster: str, prefix: str) -> list[NodeGroup]:
        """Return the node groups of a cluster whose names begin so."""
        names = [n for n in self._names(cluster) if n.startswith(prefix)]
        found = (self.group(cluster, name) for name in names)
        return [group for group in found if group]

    def group(self, cluster: str, name: str) -> NodeGroup | None:
        """Return one node group; None if EKS has none of that name."""
        asked = {"clusterName": cluster, "nodegroupName": name}
        doing = f"to look at node group {name}"
        try:
            found = self._call("eks", doing, "describe_nodegroup", **asked)
        except NotFound:
            return None
        return _group(found["nodegroup"])

    def create(self, request: Mapping[str, Any]) -> None:
        """Begin to make a node group; one of that name that exists is let be."""
        doing = f"to make node group {request['nodegroupName']}"
        try:
            self._call("eks", doing, "create_nodegroup", **request)
        except NotFound as error:
            raise Refused(error.what, "set region, cluster and profile") from error

    def delete(self, cluster: str, name: str) -> None:
        """Begin to delete a node group, or let one be that is gone."""
        asked = {"clusterName": cluster, "nodegroupName": name}
        try:
            self._call(
                "eks", f"to delete node group {name}", "delete_nodegroup", **asked
            )
        except NotFound:
            return

    def end_at(self, scaling_group: str, when: float) -> None:
        """Have an Auto Scaling group end its instances then, whoever lives."""
        self._call(
            "autoscaling",
            f"to end the instances of {scaling_group} with their lease",
            "put_scheduled_update_group_action",
            AutoScalingGroupName=scaling_group,
            ScheduledActionName="burst-lease-end",
            StartTime=datetime.datetime.fromtimestamp(when, datetime.UTC),
            MinSize=0,
            MaxSize=0,
            DesiredCapacity=0,
        )

    def token(self, cluster: str) -> str:
        """Return a bearer token for a cluster's API server, good for some minutes.

        A signed request that tells who we are, which the API server sends to STS.
        """
        token, made = self._tokens.get(cluster, ("", 0.0))
        if not 0 <= self._clock() - made < _TOKEN_S:
            with _errors(f"to sign a token for cluster {cluster}"):
                token, made = self._sign(cluster), self._clock()
            self._tokens[cluster] = token, made
        return token

    def _sign(self, cluster: str) -> str:
        sts = self._client("sts")
        signer = RequestSigner(
            sts.meta.service_model.service_id,
            self._region,
            "sts",
            "v4",
            self._session.get_credentials(),
            self._session.events,
        )
        query = "Action=GetCallerIdentity&Version=2011-06-15"
        request = {
            "method": "GET",
            "url": f"{sts.meta.endpoint_url.rstrip('/')}/?{query}",
            "body": {},
            "headers": {"x-k8s-aws-id": cluster},
            "context": {},
        }
        signed = signer.generate_presigned_url(
            request, operation_name="", region_name=self._region, expires_in=_URL_S
        )
        encoded = base64.urlsafe_b64encode(signed.encode()).decode()
        return f"k8s-aws-v1.{encoded.rstrip('=')}"

    def _names(self, cluster: str) -> Iterator[str]:
        asked = {"clusterName": cluster}
        while True:
            try:
                page = self._call(
                    "eks", "to list node groups", "list_nodegroups", **asked
                )
            except NotFound as error:
                raise Refused(error.what, "set region, cluster and profile") from error
            yield from page["nodegroups"]
            if not page.get("nextToken"):
                return
            asked["nextToken"] = page["nextToken"]

    def _client(self, service: str) -> Any:
        if self._session is None:
            self._session = self._make_session(
                profile_name=self._profile or None, region_name=self._region
            )
        if service not in self._clients:
            self._clients[service] = self._session.client(
                service, region_name=self._region, config=_CONFIG
            )
        return self._clients[service]

    def _call(self, service: str, doing: str, method: str, **asked: Any) -> Any:
        with _errors(doing):
            return getattr(self._client(service), method)(**asked)


@contextlib.contextmanager
def _errors(doing: str) -> Iterator[None]:
    """Raise errors of `burst.errors` for those of the client."""
    try:
        yield
    except ClientError as error:
        said = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        code = said.get("Code", "")
        what = f"AWS declined {doing}: {code}: {said.get('Message', '')}"
        raise error_of(code, status, what) from error
    except BotoCoreError as error:
        # There was no answer; or no request, as of missing credentials. Texts may have
        # the URL of a request, but no signature, which is in its headers.
        what = f"AWS could not be asked {doing}: {shorten(error)}"
        raise error_of(type(error).__name__, 0, what) from error


def _group(found: Mapping[str, Any]) -> NodeGroup:
    issues = found.get("health", {}).get("issues", ())
    said = [f"{i.get('code', 'Unknown')}: {i.get('message', '')}" for i in issues]
    meanings = [meaning_of(i.get("code", ""), i.get("message", "")) for i in issues]
    # What would not pass by itself decides.
    grave = next((m for m in meanings if m.error is not Transient), None)
    phase = _NODE_PHASES.get(found["status"], Phase.PENDING)
    if phase is Phase.PENDING and grave:
        # EKS itself would report the failure only after half an hour.
        phase = Phase.FAILED
    name, made = found["nodegroupName"], found.get("resources", {})
    why = "; ".join([f"node group {name} is {found['status']}", *said])
    return NodeGroup(
        name=name,
        tags=found.get("tags", {}),
        phase=phase,
        why=why if said or phase is not Phase.RUNNING else "",
        meaning=grave,
        scaling_groups=tuple(g["name"] for g in made.get("autoScalingGroups", ())),
    )
