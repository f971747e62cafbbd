# SPDX-License-Identifier: MIT
"""Sends requests to the API server. Only this file imports the Kubernetes client.

The client reads kubeconfigs, runs their exec plugins, renews the tokens of service
accounts and uses proxies. Requests are plain JSON over its connection pool, since no
library has all that a burst needs. lightkube 1.0 deletes without a precondition on the
uid, applies without strict field validation, and cannot request an object's metadata
only, so it would read a Secret's content. The client's dynamic module has no field
validation either, and caches the cluster's kinds in a file in the temporary directory
that all users share.
"""

from __future__ import annotations

import contextlib
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes import client, config
from kubernetes.client import rest
from kubernetes.config import kube_config

from burst.errors import Refused, Transient
from burst.kits.kube.access import (
    LATE,
    NOT_RUN,
    UNREADABLE,
    Access,
    InCluster,
    Kubeconfig,
    limit_login,
)
from burst.kits.kube.api_stream import ApiStream
from burst.kits.shorten import shorten

_OK, _UNAUTHORIZED = 200, 401
# Code, agent, and a quoted text; one header may have several, separated by commas.
_WARNING = re.compile(r'\b\d{3} \S+ "((?:[^"\\]|\\.)*)"')
# What the client logs if an exec plugin ended with an error.
_EXITED = "process returned"
# How long credentials may fail before they count as wrong. The cause cannot be told
# earlier: a cloud's token service, or an authenticator behind the API server, may be
# down for a minute, and then the answer is the same as for a wrong token.
_CREDENTIALS_RETRIED_S = 120.0
# TLS that the other side ended, as an API server does that is starting or stopping; and
# a temporary file of the client that was removed, which is written again.
_PASSING = (
    *(ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError),
    FileNotFoundError,
)
# How OpenSSL's names for the alerts of the other side begin.
_ALERTS = "SSLV3_ALERT_", "TLSV1_", "TLSV13_"
# What the client raises for a wrong file; its parser also passes on the others.
_UNUSABLE = config.ConfigException, *UNREADABLE


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the API server. Its body may contain a secret."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: Any = None
    headers: Mapping[str, str] = {}
    timeout: float
    """Time limit in seconds for the connection, and for each part of the answer."""


class ApiResponse(msgspec.Struct, frozen=True):
    """An answer of the API server, with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def warnings_of(answer: ApiResponse) -> list[str]:
    """Return the texts of an answer's Warning header (RFC 7234, section 5.5)."""
    said = next((v for k, v in answer.headers.items() if k.lower() == "warning"), "")
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(said)]


def time_of(answer: ApiResponse) -> float | None:
    """Return the API server's time, in seconds since the epoch; None if it is unknown.

    It is the Date header (RFC 9110, section 6.6.1), in whole seconds.
    """
    text = next((v for k, v in answer.headers.items() if k.lower() == "date"), "")
    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


class _PluginFailedError(Exception):
    """An exec plugin ended without credentials."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.what)
        self.refusal = refusal


class ApiConnection:
    """Sends requests. If the API server rejects the credentials, reads them once more.

    It reads credentials and connects at the first request, so a provider can be made
    before its cluster exists. Several threads may use it. Credentials that fail raise
    Transient for two minutes. It never changes to another API server, as bursts would
    seem to be gone: a kubeconfig that names another one later is refused.
    """

    def __init__(
        self, access: Access, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.access = access
        self._clock = clock
        self._failing_since: float | None = None
        self._opened: tuple[Any, urllib3.PoolManager] | None = None
        self._server: tuple[str, str | None, str | None] | None = None
        """The address, TLS name and proxy of the first credentials that were read."""
        self._opening = threading.Lock()
        """Held while credentials are read or renewed, so that one thread does it."""

    def send(self, request: ApiRequest) -> ApiResponse:
        """Send the request and return the answer, with any status.

        Status 401 is returned only if it has lasted for two minutes, else it raises
        Transient. Also raises Transient without an answer, Refused without credentials.
        """
        try:
            answer = self._request(request)
            if answer.status == _UNAUTHORIZED:
                # The file may have new credentials, an exec plugin a new token.
                self.close()
                answer = self._request(request)
        except _PluginFailedError as error:
            refusal = error.refusal
            if self._may_pass():
                raise Transient(refusal.what, refusal.advice) from None
            raise refusal from None
        if answer.status != _UNAUTHORIZED:
            self._failing_since = None
        elif self._may_pass():
            raise Transient(
                f"the API server does not accept the credentials of {self.access} now",
                "check that kubectl works with them; after two minutes they count as"
                " wrong",
            )
        return ApiResponse(answer.status, dict(answer.headers), answer.data)

    def _may_pass(self) -> bool:
        """Note a failure of the credentials; return whether it may be temporary."""
        if self._failing_since is None:
            self._failing_since = self._clock()
        return self._clock() - self._failing_since < _CREDENTIALS_RETRIED_S

    def open_stream(self, request: ApiRequest) -> ApiStream | ApiResponse:
        """Send the request; return its answer as a stream, or whole if it is not 200.

        Raises as `send`. Credentials are not read again; the next `send` does that.
        """
        try:
            answer = self._request(request, preload_content=False)
            if answer.status == _OK:
                return ApiStream(answer)
            return ApiResponse(answer.status, dict(answer.headers), answer.data)
        except _PluginFailedError as error:
            raise Transient(error.refusal.what, error.refusal.advice) from None
        except urllib3.exceptions.HTTPError as error:
            raise _unreachable(self.access, str(self.access), error) from None

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._opening:
            if self._opened:
                self._opened[1].clear()
                self._opened = None

    def _request(
        self, request: ApiRequest, *, preload_content: bool = True
    ) -> urllib3.BaseHTTPResponse:
        with self._opening:
            if self._opened is None:
                settings = _load(self.access)
                self._check_server(settings)
                self._opened = settings, self._pool(settings)
            settings, pool = self._opened
            authorization = _authorization(settings)
        query = f"?{urlencode(request.query)}" if request.query else ""
        encoded = None if request.body is None else msgspec.json.encode(request.body)
        try:
            return pool.request(
                request.method,
                f"{settings.host}{request.path}{query}",
                body=encoded,
                headers={**request.headers, **authorization},
                timeout=urllib3.Timeout(request.timeout),
                retries=False,
                redirect=False,
                preload_content=preload_content,
            )
        except urllib3.exceptions.HTTPError as error:
            if _is_of_files(error):
                # The file may have a new authority or certificate, and the client's
                # temporary files with the old ones may have been removed.
                self.close()
            raise _unreachable(self.access, settings.host, error) from None

    def _pool(self, settings: Any) -> urllib3.PoolManager:
        try:
            found: urllib3.PoolManager = rest.RESTClientObject(settings).pool_manager
        except ImportError:
            raise Refused(
                f"{self.access}: its proxy speaks SOCKS, which needs PySocks",
                "install PySocks where the daemon is installed, and restart it",
            ) from None
        return found

    def _check_server(self, settings: Any) -> None:
        """Raise Refused if another API server was asked before."""
        server = settings.host, settings.tls_server_name, settings.proxy
        self._server = self._server or server
        if server == self._server:
            return
        host, before = server[0], self._server[0]
        # A proxy is not shown: its address may contain a password.
        same = f"{host} with another proxy or TLS name"
        other = f"{host}, not {before}" if host != before else same
        raise Refused(
            f"{self.access} now names another API server: {other}",
            "let it name the former one; if the new one is meant, restart the daemon",
        )


def _load(access: Access) -> Any:
    """Return the client's settings with the credentials."""
    settings = client.Configuration()
    with _hear_errors() as heard:
        try:
            _fill(settings, access)
        except _UNUSABLE as error:
            raise Refused(
                f"{access}: cannot be used: {shorten(error)}",
                "name a kubeconfig that works with kubectl",
            ) from None
    tokenless = not (settings.api_key or settings.cert_file)
    if tokenless and settings.host.startswith("https:"):
        # The client only logs that an exec plugin failed, and goes on without
        # credentials.
        why = f": {shorten(heard[-1])}" if heard else ""
        if LATE in why:
            raise Transient(
                f"{access}: its exec plugin gave no credentials in time{why}",
                "check whether `kubectl get pods` waits too, for a network or a login",
            )
        refusal = Refused(
            f"{access}: gives no credentials{why}",
            "check that `kubectl get pods` works as this user, with this file and in"
            " this environment",
        )
        if _EXITED in why and NOT_RUN not in why:
            raise _PluginFailedError(refusal)
        raise refusal
    return settings


def _fill(settings: Any, access: Access) -> None:
    if isinstance(access, InCluster):
        config.load_incluster_config(client_configuration=settings)
    elif isinstance(access, Kubeconfig):
        path = access.path or kube_config.KUBE_CONFIG_DEFAULT_LOCATION
        merged = kube_config.KubeConfigMerger(path).config
        if merged is None:
            raise config.ConfigException("the file does not exist, or is empty")
        for user in merged.value["users"]:
            limit_login(user.value["user"] or {}, access.login)
        kube_config.KubeConfigLoader(
            config_dict=merged,
            active_context=access.context or None,
            config_base_path=None,  # paths in a file are relative to it
        ).load_and_set(settings)
    else:

        def refresh(settings: Any) -> None:
            settings.api_key["BearerToken"] = f"Bearer {access.token()}"

        settings.host = access.url.rstrip("/")
        settings.ca_cert_data = access.authority
        settings.refresh_api_key_hook = refresh
        refresh(settings)


def _authorization(settings: Any) -> dict[str, str]:
    found = settings.auth_settings().get("BearerToken")
    return {"Authorization": found["value"].strip()} if found else {}


def _reason(error: Exception) -> Exception:
    found: Exception = getattr(error, "reason", None) or error
    return found


def _is_of_files(error: Exception) -> bool:
    """Return whether an authority, a certificate or a key may be the cause."""
    reason = _reason(error)
    # Of a client's certificate that is missing, urllib3 says that the connection ended.
    missing = any(isinstance(each, FileNotFoundError) for each in reason.args)
    return missing or isinstance(reason, urllib3.exceptions.SSLError)


def _unreachable(access: Access, host: str, error: Exception) -> Transient | Refused:
    reason = _reason(error)
    of_tls = isinstance(reason, urllib3.exceptions.SSLError)
    if of_tls and not _may_work_later(reason):
        return Refused(
            f"{host} is not the API server that {access} names: {shorten(reason)}",
            "get the cluster's current kubeconfig, which has its certificate authority",
        )
    late = isinstance(reason, urllib3.exceptions.TimeoutError)
    absent = isinstance(reason, urllib3.exceptions.NewConnectionError)
    words = "does not answer in time" if late and not absent else "cannot be reached"
    # The text before the first colon names an object of the library.
    text = "" if of_tls else str(reason).partition(": ")[2]
    return Transient(
        f"the API server at {host} {words}: {shorten(text or reason)}",
        "check that the cluster runs and that this host can connect to it",
    )


def _may_work_later(error: Exception) -> bool:
    """Return whether TLS failed in a way that may pass.

    A certificate of another authority, no TLS at all, or a client's key that cannot be
    used do not pass.
    """
    cause = error.args[0] if error.args else None
    if isinstance(cause, _PASSING):
        return True
    return isinstance(cause, ssl.SSLError) and (cause.reason or "").startswith(_ALERTS)


@contextlib.contextmanager
def _hear_errors() -> Iterator[list[str]]:
    """Collect the errors that are logged at the root logger.

    Its handler also keeps the logging module from setting up one of its own.
    """
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    ear = Ear(logging.ERROR)
    logging.getLogger().addHandler(ear)
    try:
        yield heard
    finally:
        logging.getLogger().removeHandler(ear)
