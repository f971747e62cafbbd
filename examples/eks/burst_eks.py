# SPDX-License-Identifier: MIT
"""A provider for a cluster of Amazon EKS: docs/provider.md walks through it.

Followers are pods, so `burst.kits.pods` does all but one thing: finding the API
server and a token for it, which here the `aws` command is asked for. Node groups, their
sizes and their autoscaling are the site's.
"""

from __future__ import annotations

import base64
import datetime
import json
import time
from collections.abc import Callable
from typing import Any

from burst.kits.kube import Cluster, Endpoint
from burst.kits.pods import PodBursts, PodProvider, PodSettings
from burst.kits.program import ErrorPattern, run
from burst.provider import Refused

_TIMEOUT_S = 20.0
# A token is renewed so many seconds before it ends: EKS gives it for 15 minutes.
_EARLY_S = 60.0
# What a person has to mend; everything else may pass by itself.
_PATTERNS = (
    ErrorPattern("ResourceNotFoundException", Refused, "set cluster and region"),
    ErrorPattern("AccessDenied", Refused, "allow eks:DescribeCluster to this identity"),
    ErrorPattern("UnrecognizedClient", Refused, "renew the credentials of `aws`"),
    ErrorPattern("ExpiredToken", Refused, "renew the credentials of `aws`"),
    ErrorPattern(
        "Unable to locate cred", Refused, "give `aws` credentials, best by a role"
    ),
)


class EksSettings(PodSettings, frozen=True, kw_only=True):
    """`[providers.NAME]` with `type = "eks"`: the usual keys of pods, and where."""

    cluster: str
    region: str = ""
    """Default: what `aws` has as its own."""
    aws: str = "aws"
    """The program, by name or path; version 2."""


class EksProvider(PodProvider):
    """Followers as pods of one EKS cluster."""

    Settings = EksSettings

    def __init__(self, name: str, settings: EksSettings, owner: str) -> None:
        super().__init__(name, settings, owner)
        self._settings = settings
        self._made: PodBursts | None = None

    def bursts(self) -> PodBursts:
        """Connect at the first call: an error then is this provider's, not a crash."""
        if self._made is None:
            settings = self._settings
            found = ask_aws(settings, "describe-cluster", "--name", settings.cluster)
            authority = base64.b64decode(
                found["cluster"]["certificateAuthority"]["data"]
            )
            token = Token(lambda: get_token(settings))
            endpoint = Endpoint(found["cluster"]["endpoint"], authority.decode(), token)
            cluster = Cluster(endpoint, timeout=settings.timeout)
            self._made = PodBursts(cluster, settings, self.tags)
        return self._made


class Token:
    """A token that is good now; asks for another before it ends."""

    def __init__(
        self,
        renew: Callable[[], tuple[str, float]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._renew = renew
        self._clock = clock
        self._token, self._end = "", 0.0

    def __call__(self) -> str:
        """Return a token that is valid for a minute at least."""
        if self._clock() > self._end - _EARLY_S:
            self._token, self._end = self._renew()
        return self._token


def get_token(settings: EksSettings) -> tuple[str, float]:
    """Return a token and when it ends, in seconds since the epoch."""
    found = ask_aws(settings, "get-token", "--cluster-name", settings.cluster)
    end = datetime.datetime.fromisoformat(found["status"]["expirationTimestamp"])
    return found["status"]["token"], end.timestamp()


def ask_aws(settings: EksSettings, verb: str, *arguments: str) -> Any:
    """Return what `aws eks VERB` prints. Raises Refused, Transient."""
    region = ["--region", settings.region] if settings.region else []
    command = [settings.aws, "eks", verb, *arguments, *region, "--output", "json"]
    # On success a token is in what it prints, which no error of `run` tells.
    return json.loads(run(command, limit=_TIMEOUT_S, patterns=_PATTERNS))
