# SPDX-License-Identifier: MIT
"""The TLS port of the daemon's host at which VMs fetch their followers' files.

A VM sends one line of JSON with its names and its token, and gets one JSON object:
`{"files": [[path, content in base64, user]], "restart": [unit]}` or `{"error": "..."}`.
While the files cannot be read, the VM gets no answer and its token stays valid.
"""

from __future__ import annotations

import logging
import math
import re
import socket
import socketserver
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import msgspec

from burst.decode import from_json
from burst.errors import BurstError, Transient
from burst.kits import followers
from burst.kits.rotation import running_certificate
from burst.kits.secret_file import read_munge_key
from burst.provider import BurstSpec
from burst_vm.handover import Handover, TokenRefused
from burst_vm.settings import VmSettings
from burst_vm.waiting_clients import MOST, WaitingClients

_LIMIT_S = 10.0
"""Time limit in seconds of each step: the handshake, the client's line, the answer."""
_MOST_BYTES = 4096
_LOGGED_AGAIN_S = 60.0
_MOST_LOGGED = 1000
_PLACE = re.compile(r"/[A-Za-z0-9._/-]{1,200}\Z")
_log = logging.getLogger("burst.vm")


class FetchRequest(msgspec.Struct, frozen=True):
    """What a VM sends."""

    burst: str
    host: str
    token: str
    home: str
    """The directory in which it puts the files."""


class FetchAnswer(msgspec.Struct, frozen=True):
    """What a VM gets whose token is accepted."""

    files: tuple[tuple[str, bytes, str], ...] = ()
    """Path, content and owner of each file; the follower's start script is last."""
    restart: tuple[str, ...] = ()


class FetchRefusal(msgspec.Struct, frozen=True):
    """What any other client gets."""

    error: str


class FollowerFiles:
    """Answers VMs, by the notes of a provider."""

    def __init__(
        self, settings: VmSettings, handover: Handover, clock: Callable[[], float]
    ) -> None:
        self._settings, self._handover, self._clock = settings, handover, clock
        self._logged: dict[tuple[str, str], float] = {}
        """When a refusal was logged last, by address and reason."""

    def answer(self, line: bytes, whence: str) -> FetchAnswer | FetchRefusal:
        """Return the answer to a client's line; `whence` is the client's address.

        Raises Refused and Transient while the files cannot be read.
        """
        try:
            asked = from_json(line, FetchRequest)
        except msgspec.MsgspecError:
            return self._refuse("it sent no request", whence)
        if not _PLACE.match(asked.home) or ".." in PurePosixPath(asked.home).parts:
            return self._refuse("its home is not a plain path", whence)
        burst, host, now = asked.burst, asked.host, self._clock()
        try:
            spec = self._handover.check(burst, host, asked.token, now)
            # Read the files first: a VM whose token was used without an answer never
            # joins.
            found = self.files(Path(asked.home), spec)
            self._handover.take(burst, host)
        except TokenRefused as error:
            about = f", for {host!r} of {burst!r}"
            about += error.advice and f": {error.advice}"
            # An advice is for a VM that is known, so it is logged for each of these.
            key = about if error.advice else ""
            return self._refuse(error.what, whence, about, key)
        return found

    def files(self, home: Path, spec: BurstSpec) -> FetchAnswer:
        """Return what a VM of a burst gets. Raises Refused if it could not join."""
        settings = self._settings
        # The certificate may have been replaced since the VM was requested.
        path = running_certificate(spec.lead)
        lead = msgspec.structs.replace(spec.lead, certificate=path)
        spec = msgspec.structs.replace(spec, lead=lead)
        texts = followers.Files(flux=settings.flux).contents(home, spec)
        files = [
            (str(home / name), text.encode(), settings.user)
            for name, text in texts.items()
        ]
        if not settings.munge_key:
            return FetchAnswer(tuple(files))
        key = read_munge_key(settings.munge_key)
        first = ("/etc/munge/munge.key", key, "munge")
        return FetchAnswer((first, *files), ("munge",))

    def _refuse(
        self, why: str, whence: str, about: str = "", key: str = ""
    ) -> FetchRefusal:
        """Return a refusal; log it, but not again and again for the same client.

        A refusal with another `key` is logged as well.
        """
        now, what = self._clock(), (whence, why + key)
        if not 0 <= now - self._logged.get(what, -math.inf) < _LOGGED_AGAIN_S:
            if len(self._logged) >= _MOST_LOGGED:
                self._logged.clear()
            self._logged[what] = now
            _log.warning("a client at %s gets no files: %s%s", whence, why, about)
        return FetchRefusal(why)


def read_line(connection: socket.socket, limit: float) -> bytes:
    """Return the line that a client sends, cut at the longest that is read.

    Raises TimeoutError if it is not complete after `limit` seconds, even if bytes keep
    arriving: each client takes one of few places.
    """
    ends = time.monotonic() + limit
    line = b""
    while b"\n" not in line and len(line) < _MOST_BYTES:
        connection.settimeout(max(ends - time.monotonic(), 0.001))
        piece = connection.recv(_MOST_BYTES - len(line))
        if not piece:
            break
        line += piece
    return line.partition(b"\n")[0]


class _Server(socketserver.ThreadingTCPServer):
    """A server with the files, the TLS context, and the clients that wait."""

    allow_reuse_address = True
    request_queue_size = MOST
    daemon_threads = True
    block_on_close = False

    def __init__(self, where: tuple[str, int]) -> None:
        if ":" in where[0]:
            self.address_family = socket.AF_INET6
        self.waiting = WaitingClients()
        super().__init__(where, _Client)

    def give(self, files: FollowerFiles, tls: ssl.SSLContext) -> None:
        """Answer with these files and this TLS context from now on."""
        self.files, self.tls = files, tls

    def handle_error(self, request: object, client_address: object) -> None:
        """Log what went wrong with one client; others go on."""
        del request
        _log.warning("a client at %s got no answer", client_address, exc_info=True)


class _Client(socketserver.BaseRequestHandler):
    """One connection, in a thread of its own."""

    server: _Server

    def handle(self) -> None:
        """Answer the one line that the client sends."""
        try:
            self._handle()
        except OSError as error:  # it left, took too long, or speaks no TLS
            _log.debug("a client at %s: %s", self.client_address[0], error)

    def _handle(self) -> None:
        self.request.settimeout(_LIMIT_S)
        tls, whence = self.server.tls, self.client_address[0]
        with tls.wrap_socket(
            self.request, server_side=True, do_handshake_on_connect=False
        ) as connection:
            self.server.waiting.enter(connection, whence)
            try:
                connection.do_handshake()
                line = read_line(connection, _LIMIT_S)
            finally:
                is_served = self.server.waiting.leave(connection)
            if not is_served:
                return
            try:
                answer = self.server.files.answer(line, whence)
            except BurstError as error:
                _log.warning("a VM gets no files yet, and asks again: %s", error)
                return
            connection.settimeout(_LIMIT_S)
            connection.sendall(msgspec.json.encode(answer))


class _Open:
    """A port that is open as long as something refers to this object."""

    def __init__(self, server: _Server) -> None:
        self.server = server
        threading.Thread(
            target=server.serve_forever, args=(0.1,), name="burst-vm", daemon=True
        ).start()
        weakref.finalize(self, _stop, server)


_OPEN: weakref.WeakValueDictionary[tuple[str, int, Path], _Open]
_OPEN = weakref.WeakValueDictionary()
"""By address, port and notes: a provider that replaces another, as after a reload,
finds the other's port open, and takes it over."""


class Listener:
    """The port of a provider, open from `open` to `close`."""

    def __init__(
        self, settings: VmSettings, handover: Handover, clock: Callable[[], float]
    ) -> None:
        self._where = (settings.bind, settings.port)
        self._handover = handover
        self.files = FollowerFiles(settings, handover, clock)
        self._open: _Open | None = None
        self._fingerprint = ""

    def open(self) -> None:
        """Listen, unless the port is open already. Raises Transient."""
        # If the key's file is gone, for example as /tmp was cleared, a new key is made.
        fingerprint = self._handover.fingerprint()
        if self._open and fingerprint == self._fingerprint:
            return
        key = (*self._where, self._handover.pem)
        try:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self._handover.pem)
            found = _OPEN.get(key)
            server = found.server if found else _Server(self._where)
        except OSError as error:
            raise Transient(
                f"VMs cannot fetch their files at {self._where[0]}:{self._where[1]}:"
                f" {error.strerror or error}",
                "set bind and port to what is free on this host",
            ) from error
        server.give(self.files, tls)
        _OPEN[key] = self._open = found or _Open(server)
        self._fingerprint = fingerprint

    def close(self) -> None:
        """Stop listening."""
        self._open = None


def _stop(server: _Server) -> None:
    server.shutdown()
    server.server_close()
