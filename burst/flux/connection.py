# SPDX-License-Identifier: MIT
"""What clients of this package need of a connection to a broker.

`burst.flux.handle.Handle` is one to Flux. A package whose broker answers the same
requests may have another, and use `burst.flux.base_lead` over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from burst.flux.handle import RequestMessage, ResponseMessage


class Connection(Protocol):
    """Sends and receives messages, from one thread at a time.

    Every method raises LeadGone once the broker is gone.
    """

    def close(self) -> None:
        """Disconnect. The broker then ends our services and streams."""
        ...

    def watch(self, fd: int) -> None:
        """Have `wait` return when this file descriptor becomes readable, too."""
        ...

    def send(
        self, topic: str, payload: Mapping[str, Any], *, streaming: bool = False
    ) -> int:
        """Send a request to rank 0's service, or the nearest; return its matchtag."""
        ...

    def receive(self) -> ResponseMessage | RequestMessage | None:
        """Return the next message that has arrived, or None. Does not wait."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when there may be something to receive, or after the timeout."""
        ...

    def submit_job(self, jobspec: bytes, urgency: int) -> Any:
        """Send a job; return what `submitted_job` takes. Raises LeadError."""
        ...

    def submitted_job(self, future: Any, timeout_s: float) -> int:
        """Return the id of a job that was sent.

        Raises LeadError, JobRefused if it is for good, and Unreadable.
        """
        ...

    def respond(self, request: RequestMessage, payload: Mapping[str, Any]) -> None:
        """Answer a request."""
        ...

    def refuse(self, request: RequestMessage, errnum: int, text: str) -> None:
        """Answer a request with an error; the text is what its sender reads."""
        ...
