# SPDX-License-Identifier: MIT
"""The service `burst`: the lock of the one daemon a lead has, and its API.

Other programs of the owner may have a service of another name in the same way.

Any client of the owner may register a service with its broker. A name can be registered
once, and is free again when the client's connection ends. Requests arrive on the loop's
thread and are answered on other threads, so that a slow one does not delay the rest.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec

from burst import log
from burst.errors import (
    START_A_DAEMON,
    BurstError,
    CallsTooOften,
    Denied,
    LeadError,
    LeadGone,
    NoDaemon,
    ServiceTaken,
    Unreadable,
)
from burst.flux.handle import RequestMessage
from burst.flux.loop import Loop, internal_error
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from burst.lead import RequestGate, RequestHandler, ServiceRequest, admit_all
from burst.request_threads import RequestThreads, check_length, read_payload

NAME = "burst"
REGISTER_DEADLINE_S = 10.0
"""How long the broker may take to register the name; it takes a tenth of a ms."""
HOLDER_DEADLINE_S = 30.0
"""How long a daemon may take to say who it is."""

_HOLDER = "holder"
_HANGS = (
    "the daemon hangs, and its log may say why; where its unit is installed: systemctl"
    " restart burst; if it goes on without that, it still does what it was asked for:"
    " burst status shows the bursts that were made"
)
_ADD = "service.add"


class FluxService:
    """Answers requests to `burst.METHOD` by a handler, until its loop is closed."""

    def __init__(
        self,
        loop: Loop,
        handler: RequestHandler,
        holder: Mapping[str, Any],
        admit: RequestGate = admit_all,
        name: str = NAME,
    ) -> None:
        self._loop = loop
        self._name = name
        self._handler = handler
        self._holder = dict(holder)
        self._admit = admit
        self._workers = RequestThreads(f"{name}-service")
        # These are for the loop's thread alone.
        self._unanswered: dict[int, RequestMessage] = {}
        """Requests that wait or are worked on, by `id`."""
        self._closed = False

    def register(
        self, client: RpcClient, deadline_s: float = REGISTER_DEADLINE_S
    ) -> None:
        """Register the name. Raises ServiceTaken, Denied, Unreadable.

        `client` asks the process that has the name for its `holder`. While the name is
        taken but no process answers, this tries again, for `deadline_s` seconds.
        """
        self._loop.on_request = self._take
        deadline = time.monotonic() + deadline_s
        while True:
            try:
                self._loop.wait_for(self._begin, REGISTER_DEADLINE_S, _ADD)
            except RequestFailed as error:
                if error.errnum != errno.EEXIST:
                    raise
            else:
                return
            taken = _taken(client, self._name)
            if taken is not None or time.monotonic() > deadline:
                raise taken or ServiceTaken(
                    f"the service name {self._name} cannot be registered"
                )

    def close(self) -> None:
        """Take no more requests, and refuse those that are not answered.

        Work under way goes on, and is not waited for. Close the loop after this.
        """
        self._workers.close()
        self._loop.post(self._refuse_all)

    def _refuse_all(self) -> None:
        # Flux does not answer what this process leaves unanswered as it disconnects.
        self._closed = True
        while self._unanswered:
            self._refuse(self._unanswered.popitem()[1])

    def _refuse(self, request: RequestMessage) -> None:
        self._loop.handle.refuse(request, errno.ENOSYS, f"{self._name} is stopping")

    def _begin(self, done: Future[None]) -> None:
        def answer(said: dict[str, Any] | BurstError) -> None:
            if isinstance(said, BurstError):
                done.set_exception(said)
            else:
                done.set_result(None)

        self._loop.ask(_ADD, {"service": self._name}, answer)

    def _take(self, request: RequestMessage) -> None:
        if not request.wants_response:
            return  # a client that asked something has disconnected
        if self._closed:
            self._refuse(request)
            return
        method = request.topic.removeprefix(f"{self._name}.")
        userid, owner, handle = request.userid, request.owner, self._loop.handle
        try:
            self._admit(method, userid, owner)
            if method == _HOLDER:
                public = {k: self._holder[k] for k in self._holder if k != "config"}
                handle.respond(request, self._holder if owner else public)
                return
            check_length(request.payload)
            self._workers.submit(method, userid, owner, lambda: self._work(request))
            self._unanswered[id(request)] = request
        except CallsTooOften as error:
            handle.refuse(request, errno.EAGAIN, str(error))
        except Denied as error:
            handle.refuse(request, errno.EPERM, str(error))
        except BurstError as error:
            handle.refuse(request, errno.EPROTO, str(error))

    def _work(self, request: RequestMessage) -> None:
        answer = self._answer(request)

        def send() -> None:
            if self._unanswered.pop(id(request), None) is not None:
                answer()

        # Only the loop's thread may use the handle.
        self._loop.post(send)

    def _answer(self, request: RequestMessage) -> Callable[[], None]:
        handle = self._loop.handle
        method = request.topic.removeprefix(f"{self._name}.")
        try:
            payload = read_payload(request.payload)
        except BurstError as error:
            malformed = str(error)
            return lambda: handle.refuse(request, errno.EPROTO, malformed)
        try:
            asked = ServiceRequest(method, payload, request.userid, request.owner)
            answer = self._handler(asked)
            msgspec.json.encode(answer)
        except Denied as error:
            what = str(error)
            return lambda: handle.refuse(request, errno.EPERM, what)
        except BurstError as error:
            what = str(error)
            return lambda: handle.refuse(request, errno.EINVAL, what)
        except Exception as error:  # noqa: BLE001 - the caller waits for an answer
            log.failure("answering %s", request.topic)
            what = internal_error(error, request)
            return lambda: handle.refuse(request, errno.EINVAL, what)
        return lambda: handle.respond(request, answer)


def call_service(
    client: RpcClient,
    method: str,
    payload: Mapping[str, Any],
    timeout_s: float,
    name: str = NAME,
) -> dict[str, Any]:
    """Call the service.

    Raises NoDaemon, Denied, BurstError with the daemon's text, LeadGone, and Unreadable
    if no answer comes in time.
    """
    topic = f"{name}.{method}"
    try:
        ((_, response),) = client.exchange([(topic, payload)], timeout_s)
    except LeadGone:
        raise
    except Unreadable as error:
        raise Unreadable(error.what, _HANGS if name == NAME else "") from error
    said = response.payload.decode(errors="replace")
    match response.errnum:
        case 0:
            answer: dict[str, Any] = msgspec.json.decode(response.payload)
            return answer
        case errno.ENOSYS if name != NAME:
            raise NoDaemon(f"nothing serves {name} at this lead")
        case errno.ENOSYS:
            raise NoDaemon(
                "no daemon serves this lead",
                f"start one: {START_A_DAEMON}; or ask the instance's owner",
            )
        case errno.EPERM:
            raise Denied(said)
        case errno.EAGAIN:
            raise CallsTooOften(said)
        case _:
            raise BurstError(said)


def _taken(client: RpcClient, name: str) -> ServiceTaken | None:
    """Return the error that names the process that serves; None if it just ended."""
    another = "another daemon serves this lead"
    advice = "stop that one first: one daemon serves a lead"
    if name != NAME:
        another = f"another process serves {name} at this lead"
        advice = "stop that one first"
    try:
        holder = client.ask(f"{name}.{_HOLDER}", {}, HOLDER_DEADLINE_S)
    except ServiceMissing:
        return None
    except LeadGone:
        raise
    except LeadError as error:
        return ServiceTaken(f"{another} ({error.what})", advice)
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(holder.get("since", 0)))
    return ServiceTaken(
        f"{another}: pid {holder.get('pid')} on {holder.get('host')}, since {since}",
        advice,
    )
