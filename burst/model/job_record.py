# SPDX-License-Identifier: MIT
"""One line of the file in which the daemon records the events of jobs.

It is a JSON object: an event of RFC 21 with the job's id, as Flux's job manager sends
it in its journal. The event `submit` also has the jobspec, `alloc` also has R.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from burst.model.jobid import JobId
from burst.model.resource_set import ResourceSet


class RecordedEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event of a job."""

    id: JobId
    timestamp: float
    """Seconds since the epoch."""
    name: str
    context: Mapping[str, Any] = {}
    jobspec: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The jobspec without the environment."""
    R: ResourceSet | msgspec.UnsetType = msgspec.UNSET


RecordEvent = Callable[[RecordedEvent], None]
"""Takes an event to record. Called on another thread; must be quick."""
