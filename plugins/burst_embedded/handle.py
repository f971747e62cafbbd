# SPDX-License-Identifier: MIT
"""A connection to the embedded lead, for the clients of `burst.flux`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import zmq
from zmq.utils.monitor import parse_monitor_message

from burst.errors import ConfigError, LeadGone
from burst.flux.handle import RequestMessage, ResponseMessage, submit_error
from burst.flux.rpc import RequestFailed, RpcClient
from burst.kits.broker import check_socket
from burst_embedded.boot import BrokerConfig
from burst_embedded.wire import GOODBYE, Message, calling_socket, decode

CONNECT_S = 30.0
"""Seconds until a client gives up on a lead that does not accept it, as ZeroMQ does. A
lead that does not exist is reported at once."""
TIMEOUT_S = 5.0
"""Seconds until a follower gives up on the lead and tries again; also the longest time
that `wait` takes."""
_GOODBYE_MS = 1000
"""Milliseconds for which ZeroMQ continues to send after `close`."""
SCHEME = "embedded://"
_UP = zmq.EVENT_HANDSHAKE_SUCCEEDED
_DOWN = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED


def connect_handle(uri: str) -> EmbeddedHandle:
    """Return a client's connection to the lead at `embedded://PATH`.

    Raises LeadGone if there is no lead, ConfigError if the URI has another form.
    """
    path = uri.removeprefix(SCHEME)
    if not uri.startswith(SCHEME) or not os.path.isabs(path):
        raise ConfigError(
            f"not the URI of an embedded lead: {uri!r}",
            "it is embedded:// and the path of the socket `control` in its --rundir",
        )
    check_socket(Path(path))
    return EmbeddedHandle(f"ipc://{path}")


class EmbeddedHandle:
    """A `burst.flux.connection.Connection`, which is not opened again once it is lost.

    With `boot` it is a follower's connection, which accepts only a lead with the same
    certificate. Raises LeadGone if there is no lead, ConfigError if the endpoint is
    not an address.
    """

    def __init__(self, endpoint: str, boot: BrokerConfig | None = None) -> None:
        self._endpoint = endpoint
        self._tag = 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = calling_socket(self._context, boot)
        self._monitor = self._socket.get_monitor_socket(_UP | _DOWN)
        self._poller = zmq.Poller()
        for source in (self._socket, self._monitor):
            self._poller.register(source, zmq.POLLIN)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.drop()
            raise ConfigError(
                f"{endpoint}: no address to connect to: {error.strerror}",
                "see connect and default_connect in flux-config-bootstrap(5)",
            ) from error
        limit = TIMEOUT_S if boot else CONNECT_S
        if not self._monitor.poll(int(limit * 1000)) or self._event() != _UP:
            self.drop()
            raise self._gone("is not there")

    def close(self) -> None:
        """Send a goodbye and disconnect. The lead ends our services and streams."""
        if not self._socket.closed and not self._monitor.poll(0):
            self._socket.setsockopt(zmq.LINGER, _GOODBYE_MS)
            self._send(Message(0, GOODBYE))
        self.drop()

    def drop(self) -> None:
        """Disconnect without a goodbye from a lead that is gone or ends the connection.

        ZeroMQ 4.3 may abort the process if it has something to send to a peer that
        disconnects at that moment.
        """
        if not self._socket.closed:
            self._socket.disable_monitor()
            self._monitor.close()
            self._socket.close()
            self._context.term()

    def watch(self, fd: int) -> None:
        """Have `wait` also return when this file descriptor becomes readable."""
        self._poller.register(fd, zmq.POLLIN)

    def send(
        self,
        topic: str,
        payload: Mapping[str, Any],
        *,
        streaming: bool = False,  # noqa: ARG002 - the lead knows what is a stream
    ) -> int:
        """Send a request; return its matchtag."""
        self._tag += 1
        self._send(Message(self._tag, topic, msgspec.json.encode(payload)))
        return self._tag

    def receive(self) -> ResponseMessage | RequestMessage | None:
        """Return the next message that has arrived, or None. Does not wait."""
        # Checked first: if the connection has ended, all earlier messages have arrived.
        lost = self._monitor.poll(0)
        while self._socket.poll(0):
            said = decode(self._socket.recv())
            if said.topic:
                return RequestMessage(
                    topic=said.topic,
                    payload=said.payload,
                    # Everyone who can reach an embedded lead is its owner.
                    userid=os.getuid(),
                    owner=True,
                    wants_response=bool(said.tag),
                    message=said,
                )
            if said.tag:
                return ResponseMessage(said.tag, said.errnum, said.payload)
        if lost:
            raise self._gone("has closed the connection")
        return None

    def wait(self, timeout_s: float) -> None:
        """Return when there may be something to receive, or after the timeout."""
        self._poller.poll(math.ceil(max(0.0, min(timeout_s, TIMEOUT_S)) * 1000))

    def submit_job(self, jobspec: bytes, urgency: int) -> Mapping[str, Any]:
        """Return the request for `submitted_job`, which sends it and waits."""
        return {"jobspec": msgspec.Raw(jobspec), "urgency": urgency}

    def submitted_job(self, future: Mapping[str, Any], timeout_s: float) -> int:
        """Return the id of the job. Raises LeadError, JobRefused, Unreadable."""
        try:
            answer = RpcClient(self).ask("job-ingest.submit", future, timeout_s)
        except RequestFailed as error:
            raise submit_error(error.errnum, str(error)) from error
        return int(answer["id"])

    def respond(self, request: RequestMessage, payload: Mapping[str, Any]) -> None:
        """Answer a request."""
        answer = msgspec.json.encode(payload)
        self._send(Message(request.message.tag, payload=answer))

    def refuse(self, request: RequestMessage, errnum: int, text: str) -> None:
        """Answer a request with an error; its sender gets the text."""
        self._send(Message(request.message.tag, "", text.encode(), errnum))

    def _send(self, message: Message) -> None:
        try:
            self._socket.send(message.encode(), zmq.NOBLOCK)
        except zmq.ZMQError:
            raise self._gone("has closed the connection") from None

    def _event(self) -> int:
        return int(parse_monitor_message(self._monitor.recv_multipart())["event"])

    def _gone(self, how: str) -> LeadGone:
        return LeadGone(
            f"the lead at {self._endpoint} {how}",
            "start it, or give the --uri of another",
        )
