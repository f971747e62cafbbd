# SPDX-License-Identifier: MIT
"""State of queues, from the job manager (its queue.c; `flux queue status`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burst.errors import BurstError, LeadGone, Unreadable
from burst.flux.rpc import RpcClient
from burst.model.lead import QueueView

_LIST = "job-manager.queue-list"
_STATUS = "job-manager.queue-status"


def read_queues(client: RpcClient) -> Mapping[str, QueueView]:
    """Return the state of all queues, or of the anonymous one if none has a name.

    Queues come and go by `flux config reload`, so they are asked for each time. A queue
    that goes between the two requests is left out. Raises Unreadable, LeadGone.
    """
    asked = client.ask(_LIST)["queues"] or [""]
    answers = client.ask_all((_STATUS, {"name": n} if n else {}) for n in asked)
    found = {}
    for name, answer in zip(asked, answers, strict=True):
        if isinstance(answer, LeadGone | Unreadable):
            raise answer
        if not isinstance(answer, BurstError):
            found[name] = _queue(answer)
    return found


def _queue(status: Mapping[str, Any]) -> QueueView:
    why = status.get("stop_reason") or status.get("disable_reason") or ""
    return QueueView(
        started=bool(status["start"]), enabled=bool(status["enable"]), reason=str(why)
    )
