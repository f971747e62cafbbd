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
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from burst.errors import Transient
from burst.kits.shorten import shorten
from burst.provider import Phase
from burst_eks.failures import NoLogin, NoSuchThing, error_of, meaning_of
from burst_eks.groups import NodeGroup
from burst_eks.settings import EksSettings

# No retries of the client's own: the daemon decides when to repeat a call.
_CONFIG = Config(connect_timeout=10, read_timeout=20, retries={"total_max_attempts": 1})
# EKS accepts a token for 15 minutes. The client renews credentials that end in less
# than 10 minutes, so they outlive a token that is used for this many seconds.
_TOKEN_S = 480.0
# Expiry of the signed URL in a token, as in `aws eks get-token`; EKS ignores it.
_URL_S = 60
_WHO = "?Action=GetCallerIdentity&Version=2011-06-15"
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


class _Login:
    """A session of boto3, its clients, and the last token that it signed."""

    def __init__(self, session: Any, region: str) -> None:
        self.session, self._region = session, region
        self._clients: dict[str, Any] = {}
        self.token, self.signed = "", 0.0

    def client(self, service: str) -> Any:
        """Return the client of a service."""
        if service not in self._clients:
            self._clients[service] = self.session.client(
                service, region_name=self._region, config=_CONFIG
            )
        return self._clients[service]


class EksCloud:
    """One cluster of one account. All methods raise errors of `burst.errors` only.

    `make_session` returns a session of boto3, whose credentials are then used until
    AWS refuses them. Several threads may call it.
    """

    def __init__(
        self,
        settings: EksSettings,
        *,
        make_session: Callable[..., Any] = boto3.Session,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._make_session, self._clock = make_session, clock
        self._known: _Login | None = None

    def identity(self) -> str:
        """Return the ARN of the identity that the credentials belong to."""
        found = self._call(
            "sts", "to say which identity this is", "get_caller_identity"
        )
        return str(found["Arn"])

    def cluster(self) -> tuple[str, str]:
        """Return the URL of the cluster's API server, and its authority as PEM.

        Raises Refused if there is no such cluster, Transient if it does not run.
        """
        name = self._settings.cluster
        doing = f"to look at cluster {name}"
        found = self._call("eks", doing, "describe_cluster", name=name)["cluster"]
        if found["status"] not in ("ACTIVE", "UPDATING"):
            raise Transient(f"cluster {name} is {found['status']}", "or set another")
        authority = base64.b64decode(found["certificateAuthority"]["data"])
        return found["endpoint"], authority.decode()

    def groups(self, prefix: str) -> list[NodeGroup]:
        """Return the node groups of the cluster whose names have the prefix."""
        with self._asking("to list node groups") as login:
            pages = login.client("eks").get_paginator("list_nodegroups")
            listed = pages.paginate(clusterName=self._settings.cluster)
            names = listed.build_full_result()["nodegroups"]
        found = map(self.group, (name for name in names if name.startswith(prefix)))
        return [group for group in found if group]

    def group(self, name: str) -> NodeGroup | None:
        """Return one node group; None if EKS has none of that name."""
        with contextlib.suppress(NoSuchThing):
            return _group(self._ask("look at", name, "describe")["nodegroup"])
        return None

    def create(self, request: Mapping[str, Any]) -> None:
        """Begin to make a node group. Raises Transient if the name is taken."""
        doing = f"to make node group {request['nodegroupName']}"
        self._call("eks", doing, "create_nodegroup", **request)

    def delete(self, name: str) -> None:
        """Begin to delete a node group; do nothing if it is gone."""
        with contextlib.suppress(NoSuchThing):
            self._ask("delete", name, "delete")

    def end_at(self, scaling_group: str, when: float) -> None:
        """Have an Auto Scaling group end its instances then, even without a daemon."""
        self._call(
            "autoscaling",
            f"to end the instances of {scaling_group} with their lease",
            "put_scheduled_update_group_action",
            AutoScalingGroupName=scaling_group,
            ScheduledActionName="burst-lease-end",
            StartTime=datetime.datetime.fromtimestamp(when, datetime.UTC),
            **dict.fromkeys(("MinSize", "MaxSize", "DesiredCapacity"), 0),
        )

    def token(self) -> str:
        """Return a bearer token for the API server, valid for some minutes.

        It is a signed request, which the API server sends to STS to learn who we are.
        """
        login = self._known
        if login is None or not 0 <= self._clock() - login.signed < _TOKEN_S:
            doing = f"to sign a token for cluster {self._settings.cluster}"
            with self._asking(doing) as login:
                login.token, login.signed = self._sign(login), self._clock()
        return login.token

    def _sign(self, login: _Login) -> str:
        url = f"{login.client('sts').meta.endpoint_url.rstrip('/')}/{_WHO}"
        # A signature over this header is valid for this cluster only.
        only = {"x-k8s-aws-id": self._settings.cluster}
        request = AWSRequest("GET", url, headers=only)
        found = login.session.get_credentials()
        # All parts at once, because the credentials may be renewed meanwhile.
        credentials = found.get_frozen_credentials() if found else None
        region = self._settings.region
        SigV4QueryAuth(credentials, "sts", region, expires=_URL_S).add_auth(request)
        encoded = base64.urlsafe_b64encode(request.url.encode()).decode()
        return f"k8s-aws-v1.{encoded.rstrip('=')}"

    def _ask(self, doing: str, name: str, verb: str) -> Any:
        asked = {"clusterName": self._settings.cluster, "nodegroupName": name}
        doing = f"to {doing} node group {name}"
        return self._call("eks", doing, f"{verb}_nodegroup", **asked)

    def _call(self, service: str, doing: str, method: str, **asked: Any) -> Any:
        with self._asking(doing) as login:
            return getattr(login.client(service), method)(**asked)

    @contextlib.contextmanager
    def _asking(self, doing: str) -> Iterator[_Login]:
        """Raise errors of `burst.errors`; forget a login that AWS refuses."""
        login = self._known
        try:
            with _errors(doing):
                if login is None:
                    profile = self._settings.profile or None
                    session = self._make_session(profile_name=profile)
                    login = self._known = _Login(session, self._settings.region)
                yield login
        except NoLogin:
            # A session keeps what it has read. A new one reads renewed credentials;
            # another thread may have made it already.
            if self._known is login:
                self._known = None
            raise


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
        # There was no answer; or no request, as without credentials. The text may have
        # the URL of a request, but not its signature, which is in a header.
        what = f"AWS could not be asked {doing}: {shorten(error)}"
        raise error_of(type(error).__name__, 0, what) from error


def _group(found: Mapping[str, Any]) -> NodeGroup:
    issues = found.get("health", {}).get("issues", ())
    said = [f"{i.get('code', 'Unknown')}: {i.get('message', '')}" for i in issues]
    meanings = [meaning_of(i.get("code", ""), i.get("message", "")) for i in issues]
    codes = {i.get("code") for i, m in zip(issues, meanings, strict=True) if m.lasts}
    # An issue that would not pass by itself decides.
    grave = next((m for m in meanings if m.lasts), None)
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
        has_nodes=codes <= {"NodeCreationFailure"},  # they started and did not register
        scaling_groups=tuple(g["name"] for g in made.get("autoScalingGroups", ())),
    )
