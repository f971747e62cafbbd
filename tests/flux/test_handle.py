# SPDX-License-Identifier: MIT
"""Messages that Flux's own clients do not send, and that any user can send."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from burst.errors import LeadGone
from burst.flux.bindings import import_core
from burst.flux.handle import (
    MOST_UNANSWERED,
    Handle,
    RequestMessage,
    ResponseMessage,
)
from burst.flux.loop import Loop
from burst.flux.rpc import RpcClient
from burst.flux.service import FluxService, call_service
from tests.contract.serving import HOLDER, answer
from tests.flux_instance import FluxInstance
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux

TOPIC, PAYLOAD = b"burst.echo", b"{}"
TAG = 77

Answered = tuple[int, str]
"""An answer's errnum, and a part of its payload."""


class Forger(Handle):
    """Sends messages whose frames are others than Flux's library would write."""

    def forge(self, old: bytes, new: bytes, *, no_response: bool = False) -> None:
        """Send a request with these bytes replaced."""
        ffi, lib = import_core().ffi, import_core().lib
        request = lib.flux_request_encode(TOPIC, PAYLOAD)
        lib.flux_msg_set_matchtag(request, TAG)
        if no_response:
            lib.flux_msg_set_noresponse(request)
        size = lib.flux_msg_encode_size(request)
        encoded = ffi.new("char[]", size)
        assert lib.flux_msg_encode(request, encoded, size) == 0
        written = bytes(ffi.buffer(encoded, size))
        lib.flux_msg_destroy(request)
        assert written.count(frame(old)) == 1
        changed = written.replace(frame(old), frame(new))
        forged = lib.flux_msg_decode(changed, len(changed))
        assert forged
        self._send(forged)
        lib.flux_msg_destroy(forged)

    def answer_without_end(self, request: RequestMessage) -> None:
        lib = import_core().lib
        response = lib.flux_response_derive(request.message, 0)
        lib.flux_msg_set_payload(response, PAYLOAD, len(PAYLOAD))
        self._send(response)
        lib.flux_msg_destroy(response)

    def next(self) -> RequestMessage | ResponseMessage:
        found: list[RequestMessage | ResponseMessage] = []

        def came() -> bool:
            message = self.receive()
            found.extend([message] if message is not None else [])
            return bool(found)

        wait_until(came, "a message")
        return found[0]


def frame(data: bytes) -> bytes:
    """Return a frame as flux_msg_encode(3) writes it."""
    size = len(data)
    head = bytes([size]) if size < 0xFF else b"\xff" + size.to_bytes(4, "big")
    return head + data


@pytest.fixture
def loop(instance: FluxInstance) -> Iterator[Loop]:
    """Give the loop of a service that answers."""
    loop = Loop(Handle(instance.uri), "loop-of-test")
    service = FluxService(loop, answer, HOLDER)
    with closing(Handle(instance.uri)) as handle:
        service.register(RpcClient(handle))
    yield loop
    service.close()
    loop.close()


def end(payload: bytes) -> bytes:
    return payload + b"\0"


@pytest.mark.parametrize(
    ("old", "new", "answered"),
    [
        (end(PAYLOAD), b"", (errno.EPROTO, "not a string")),
        (end(PAYLOAD), PAYLOAD, (errno.EPROTO, "not a string")),
        (end(PAYLOAD), end(b""), (0, '"payload":{}')),
        (end(PAYLOAD), end(b"{}\0x"), (0, '"payload":{}')),
        (end(PAYLOAD), end(b'{"\xff":1}'), (errno.EPROTO, "not an object")),
        (end(PAYLOAD), end(rb'{"\ud800":1}'), (errno.EPROTO, "not an object")),
        (end(PAYLOAD), end(b'{"a":NaN}'), (errno.EPROTO, "not an object")),
        (end(PAYLOAD), end(b'{"a":1e999}'), (errno.EPROTO, "not an object")),
        (
            end(PAYLOAD),
            end(b'{"a":' + b"[" * 99999 + b"]" * 99999 + b"}"),
            (errno.EPROTO, "not an object"),
        ),
        (TOPIC, b"burst.\xff\xfe\n", (errno.EINVAL, "internal error")),
        (TOPIC, b"burst.", (errno.EINVAL, "internal error")),
    ],
)
def test_no_message_ends_the_service(
    instance: FluxInstance, loop: Loop, old: bytes, new: bytes, answered: Answered
) -> None:
    errnum, text = answered
    with closing(Forger(instance.uri)) as handle:
        handle.forge(old, new, no_response=True)
        handle.forge(old, new)
        said = handle.next()
        assert isinstance(said, ResponseMessage)
        assert (said.matchtag, said.errnum) == (TAG, errnum)
        assert text in said.payload.decode()
        client = RpcClient(handle)
        assert call_service(client, "echo", {"a": 1}, HANG_S)["payload"] == {"a": 1}
    loop.check()


def test_an_answer_that_is_no_string_is_an_error(instance: FluxInstance) -> None:
    with closing(Forger(instance.uri)) as server, closing(Handle(instance.uri)) as asks:
        RpcClient(server).ask("service.add", {"service": "odd"})
        tag = asks.send("odd.x", {})
        request = server.next()
        assert isinstance(request, RequestMessage)
        server.answer_without_end(request)
        found: list[Any] = []

        def came() -> bool:
            found[:] = [asks.receive()]
            return found[0] is not None

        wait_until(came, "the answer")
    assert found == [ResponseMessage(tag, errno.EPROTO, b"")]


def test_a_broker_that_does_not_greet_is_told_and_given_up(tmp_path: Path) -> None:
    """As one that is stopped: the kernel accepts connections for it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "local"))
        listener.listen()
        with pytest.raises(LeadGone, match=r"no answer within 0\.1s") as gone:
            Handle(f"local://{tmp_path / 'local'}", open_deadline_s=0.1)
        assert "whether its broker is stopped" in gone.value.advice
        late, _ = listener.accept()
    with late:
        late.settimeout(HANG_S)
        late.send(b"\0")  # its greeting, by which Flux's library goes on
        assert late.recv(1) == b""


def test_threads_that_wait_for_a_broker_which_hangs_are_few(tmp_path: Path) -> None:
    uri = f"local://{tmp_path / 'local'}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "local"))
        listener.listen(MOST_UNANSWERED)
        for _ in range(MOST_UNANSWERED):
            with pytest.raises(LeadGone, match="no answer within"):
                Handle(uri, open_deadline_s=0.0)
        with pytest.raises(LeadGone, match="no answer to 16 earlier connections"):
            Handle(uri, open_deadline_s=0.0)
    names = lambda: {thread.name for thread in threading.enumerate()}  # noqa: E731
    wait_until(lambda: f"flux-open {uri}" not in names(), "the end of the threads")


def test_a_connection_by_ssh_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person may have to type a password."""
    monkeypatch.setenv("FLUX_SSH", "/bin/false")
    with pytest.raises(LeadGone) as gone:
        Handle("ssh://host/run/local", open_deadline_s=0.0)
    assert "no answer within" not in gone.value.what
