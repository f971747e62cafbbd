# SPDX-License-Identifier: MIT
"""A connection to a broker, which sends and receives messages.

It is a thin layer over the documented C functions (flux_open(3), flux_send(3),
flux_recv(3), flux_pollfd(3), flux_respond(3)) that Flux's own cffi module exposes,
rather than over `flux.Flux`, for three reasons. A call that blocks there resets SIGINT
to its default while it waits, also after an error; a daemon needs its own handler.
`burst.flux.journal` needs the order of responses, which futures lose. And reading many
messages takes less time (benchmarks/intake.py).

A handle is used by one thread at a time; flux_t is not thread-safe.
"""

from __future__ import annotations

import errno
import os
import re
import select
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache
from typing import Any

import msgspec

from burst.errors import Denied, JobRefused, LeadError, LeadGone, Unreadable
from burst.flux.bindings import import_core

OPEN_DEADLINE_S = 10.0
"""How long a broker may take to greet a client, except by ssh."""
MOST_UNANSWERED = 16
"""How many connections to one broker may wait for its greeting at a time."""
SEND_DEADLINE_S = 10.0
"""How long a broker may refuse to take a message before it counts as gone."""


class ResponseMessage(msgspec.Struct, frozen=True, gc=False):
    """An answer to the request with this matchtag. `errnum` is 0 for success."""

    matchtag: int
    errnum: int
    payload: bytes
    """JSON, or the error's text, which may be empty."""


class RequestMessage(msgspec.Struct, frozen=True):
    """A request to a service that this handle registered."""

    topic: str
    payload: bytes
    userid: int
    owner: bool
    wants_response: bool
    message: Any
    """Flux's own message, to respond to."""


@cache
def _core() -> Any:
    return import_core()


def library_version() -> str:
    """Return the version of the Flux library that the bindings load."""
    core = _core()
    text: bytes = core.ffi.string(core.lib.flux_core_version_string())
    return text.decode()


class Handle:
    """One connection. Every method raises LeadGone once the broker is gone."""

    def __init__(self, uri: str, open_deadline_s: float = OPEN_DEADLINE_S) -> None:
        """Connect to the broker at the URI; empty means FLUX_URI or the default.

        Raises LeadGone if there is none or it hangs, Denied if it refuses.
        """
        core = _core()
        self._ffi, self._lib = core.ffi, core.lib
        self._h = self._open(uri, open_deadline_s)
        self._match = self._ffi.new(
            "struct flux_match *", {"typemask": self._lib.FLUX_MSGTYPE_ANY}
        )
        self._poll = select.poll()
        self._poll.register(self._lib.flux_pollfd(self._h), select.POLLIN)
        self._matchtag = 0
        self._int = self._ffi.new("int *")
        self._uint32 = self._ffi.new("uint32_t *")
        self._chars = self._ffi.new("char **")

    def _open(self, uri: str, deadline_s: float) -> Any:
        """Return Flux's handle, which belongs to this thread from now on.

        A broker that is stopped or hangs keeps flux_open(3) waiting for its greeting,
        and so the thread that calls it. A connection that comes later is closed. By
        ssh there is no deadline, as it may ask a person for a password.
        """
        opened: Future[Any] = Future()
        target = uri.encode() if uri else self._ffi.NULL
        by_ssh = (uri or os.environ.get("FLUX_URI", "")).startswith("ssh://")
        limit = None if by_ssh else deadline_s

        def work() -> None:
            error = self._ffi.new("flux_error_t *")
            handle = self._lib.flux_open_ex(target, 0, error)
            errnum = self._ffi.errno
            wanted = opened.set_running_or_notify_cancel()
            if wanted and handle:
                opened.set_result(handle)
            elif wanted:
                text = self._text(error.text)
                opened.set_exception(_open_failed(uri, errnum, text))
            elif handle:
                self._lib.flux_close(handle)

        name = f"flux-open {uri}"
        if sum(each.name == name for each in threading.enumerate()) >= MOST_UNANSWERED:
            text = f"no answer to {MOST_UNANSWERED} earlier connections"
            raise _open_failed(uri, errno.ETIMEDOUT, text)
        threading.Thread(target=work, name=name, daemon=True).start()
        try:
            return opened.result(limit)
        except TimeoutError:
            if not opened.cancel():
                return opened.result()  # it came just now
            text = f"no answer within {deadline_s:g}s"
            raise _open_failed(uri, errno.ETIMEDOUT, text) from None

    def close(self) -> None:
        """Disconnect. The broker then ends our services and streams."""
        if self._h:
            self._lib.flux_close(self._h)
            self._h = None

    def watch(self, fd: int) -> None:
        """Have `wait` return when this file descriptor becomes readable, too."""
        self._poll.register(fd, select.POLLIN)

    def send(
        self, topic: str, payload: Mapping[str, Any], *, streaming: bool = False
    ) -> int:
        """Send a request to rank 0's service, or the nearest; return its matchtag."""
        text = msgspec.json.encode(payload)
        message = self._lib.flux_request_encode(topic.encode(), text)
        if not message:
            raise LeadError(f"{topic}: cannot be encoded: {self._reason()}")
        try:
            # Our matchtags are not reused within 2**32 requests, so a response that
            # comes after its deadline is not taken for that of another request.
            self._matchtag = self._matchtag % 0xFFFFFFFF + 1
            self._lib.flux_msg_set_matchtag(message, self._matchtag)
            if streaming:
                self._lib.flux_msg_set_streaming(message)
            self._send(message)
        finally:
            self._lib.flux_msg_destroy(message)
        return self._matchtag

    def receive(self) -> ResponseMessage | RequestMessage | None:
        """Return the next message that has arrived, or None. Does not wait."""
        message = self._lib.flux_recv(
            self._h, self._match[0], self._lib.FLUX_O_NONBLOCK
        )
        if not message:
            if self._ffi.errno in (errno.EAGAIN, errno.EWOULDBLOCK):
                return None
            raise self._gone()
        self._lib.flux_msg_get_type(message, self._int)
        if self._int[0] == self._lib.FLUX_MSGTYPE_RESPONSE:
            return self._response(message)
        if self._int[0] == self._lib.FLUX_MSGTYPE_REQUEST:
            return self._request(message)
        self._lib.flux_msg_decref(message)  # events; we subscribe to none
        return None

    def wait(self, timeout_s: float) -> None:
        """Return when there may be something to receive, or after the timeout."""
        events = self._checked(self._lib.flux_pollevents(self._h))
        if events & self._lib.FLUX_POLLIN:
            return
        if events & self._lib.FLUX_POLLERR:
            raise self._gone()
        self._poll.poll(max(0.0, timeout_s) * 1000)

    def submit_job(self, jobspec: bytes, urgency: int) -> Any:
        """Send a job to job-ingest, signed as flux_job_submit(3) does it.

        Returns Flux's future, for `submitted_job`. Do not call `receive` on a handle
        that submits. Raises LeadError if the job cannot be signed.
        """
        future = self._lib.flux_job_submit(self._h, jobspec, urgency, 0)
        if not future:
            raise LeadError(f"the job cannot be submitted: {self._reason()}")
        return self._ffi.gc(future, self._lib.flux_future_destroy)

    def submitted_job(self, future: Any, timeout_s: float) -> int:
        """Return the id of a job that was sent.

        Raises LeadError with what job-ingest said, JobRefused if it is for good, and
        Unreadable if it did not answer within the timeout.
        """
        if self._lib.flux_future_wait_for(future, timeout_s) < 0:
            if self._ffi.errno == errno.ETIMEDOUT:
                raise Unreadable(f"job-ingest: no answer within {timeout_s:g}s")
            raise self._gone()
        job = self._ffi.new("flux_jobid_t *")
        if self._lib.flux_job_submit_get_id(future, job) < 0:
            errnum = self._ffi.errno
            text = self._text(self._lib.flux_future_error_string(future))
            raise submit_error(errnum, text)
        return int(job[0])

    def respond(self, request: RequestMessage, payload: Mapping[str, Any]) -> None:
        """Answer a request."""
        self._answer(request, 0, msgspec.json.encode(payload))

    def refuse(self, request: RequestMessage, errnum: int, text: str) -> None:
        """Answer a request with an error; the text is what its sender reads."""
        self._answer(request, errnum, text.encode(errors="replace"))

    def _answer(self, request: RequestMessage, errnum: int, text: bytes) -> None:
        message = self._lib.flux_response_derive(request.message, errnum)
        if not message:
            raise LeadError(f"{request.topic}: no response: {self._reason()}")
        try:
            self._lib.flux_msg_set_string(message, text)
            self._send(message)
        finally:
            self._lib.flux_msg_destroy(message)

    def _send(self, message: Any) -> None:
        """Send without blocking in C, where no deadline would be kept."""
        deadline = time.monotonic() + SEND_DEADLINE_S
        while self._lib.flux_send(self._h, message, self._lib.FLUX_O_NONBLOCK) < 0:
            if self._ffi.errno not in (errno.EAGAIN, errno.EWOULDBLOCK):
                raise self._gone()
            if time.monotonic() > deadline:
                raise LeadGone("the broker does not accept messages any more")
            # pollfd is edge-triggered: it signals once that the socket has room again.
            self._poll.poll(10)
            self._checked(self._lib.flux_pollevents(self._h))

    def _response(self, message: Any) -> ResponseMessage:
        lib = self._lib
        lib.flux_msg_get_matchtag(message, self._uint32)
        lib.flux_msg_get_errnum(message, self._int)
        errnum, payload = self._int[0], self._payload(message)
        lib.flux_msg_decref(message)
        if payload is None:
            return ResponseMessage(self._uint32[0], errnum or errno.EPROTO, b"")
        return ResponseMessage(self._uint32[0], errnum, payload)

    def _request(self, message: Any) -> RequestMessage | None:
        lib, ffi = self._lib, self._ffi
        # The broker delivers a request by its topic, so it has one.
        lib.flux_msg_get_topic(message, self._chars)
        topic = self._text(self._chars[0])
        lib.flux_msg_get_userid(message, self._uint32)
        userid = self._uint32[0]
        lib.flux_msg_get_rolemask(message, self._uint32)
        payload = self._payload(message)
        request = RequestMessage(
            topic=topic,
            payload=payload or b"",
            userid=userid,
            owner=bool(self._uint32[0] & lib.FLUX_ROLE_OWNER),
            wants_response=not lib.flux_msg_is_noresponse(message),
            message=ffi.gc(message, lib.flux_msg_decref),
        )
        if payload is not None:
            return request
        if request.wants_response:
            self.refuse(request, errno.EPROTO, "the payload is not a string")
        return None

    def _payload(self, message: Any) -> bytes | None:
        """Return the payload, empty if there is none; None if it is no C string.

        Any user may send a payload of no bytes, or one without an end.
        """
        if self._lib.flux_msg_get_string(message, self._chars) < 0:
            return None
        if not self._chars[0]:
            return b""
        payload: bytes = self._ffi.string(self._chars[0])
        return payload

    def _checked(self, result: int) -> int:
        if result < 0:
            raise self._gone()
        return result

    def _gone(self) -> LeadGone:
        # Calls return different errno values once the broker is gone (EPIPE,
        # ECONNRESET, EIO, even a stale one); all mean LeadGone.
        return LeadGone(f"the connection to the broker is lost: {self._reason()}")

    def _reason(self) -> str:
        return os.strerror(self._ffi.errno)

    def _text(self, chars: Any) -> str:
        text: bytes = self._ffi.string(chars)
        return text.decode(errors="replace")


def _open_failed(uri: str, errnum: int, text: str) -> Denied | LeadGone:
    name = uri or os.environ.get("FLUX_URI", "") or "the system instance"
    what = f"cannot connect to {name}: {text or os.strerror(errnum)}"
    if errnum in (errno.EPERM, errno.EACCES):
        return Denied(what, "only the instance owner and its users may connect")
    if errnum == errno.ETIMEDOUT:
        return LeadGone(
            what, "see whether its broker is stopped (ps), or its host overloaded"
        )
    if not (uri or os.environ.get("FLUX_URI")):
        return LeadGone(
            f"FLUX_URI is not set in this shell, and {what}",
            "set it as `burst lead init` said (its file env, or export), or name the"
            " lead with --uri or lead.uri; for the system instance, start its broker",
        )
    return LeadGone(what, "start the broker, or name another with --uri or FLUX_URI")


# What the checks of a job itself answer: limits and queues of the job manager EINVAL,
# the validator and the frobnicator EPERM, and where the feasibility of a job is
# checked, Fluxion ENODEV and the schedulers of flux-core EOVERFLOW.
_OF_THE_JOB = {errno.EINVAL, errno.EPERM, errno.ENODEV, errno.EOVERFLOW}
# Such checks, too, but they pass: `flux queue disable`, and a full share of
# flux-accounting.
_PASSES = re.compile("is disabled|max active jobs")


def submit_error(errnum: int, text: str) -> LeadError:
    """Return the error for a job that was refused: JobRefused if it is for good."""
    for_good = errnum in _OF_THE_JOB and not _PASSES.search(text)
    kind = JobRefused if for_good else LeadError
    return kind(f"the lead does not accept the job: {text}")
