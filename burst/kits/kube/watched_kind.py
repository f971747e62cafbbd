# SPDX-License-Identifier: MIT
"""What changed of the objects of one kind: listed once, and then watched.

Source: the Kubernetes documentation, "Kubernetes API Concepts", efficient detection of
changes. A watch that cannot be trusted is given up, and the objects are listed:

* the API server does not know the version any more (410 Gone), or says another error;
* a stream has ended, and when it was read last is too long ago (`_GAP_S`);
* a stream is silent for longer than it can be (`_SILENT_S`): the API server ends each
  after `_STREAM_S`, and sends a bookmark before. Then the way to it is lost, or a proxy
  keeps what it should pass on, so that no watch is tried for `_SUSPECT_S`.

So what is told is never older than `_SILENT_S`, and as a rule some milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from burst.errors import ProviderError, Transient
from burst.kits.kube.api_stream import ApiStream
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.selection import Selection, decode

_STREAM_S = 30
_SILENT_S = 40.0
_GAP_S = 15.0
# After a watch that could not be begun, such as without the right to. Until then all is
# listed each time.
_AGAIN_S = 60.0
_SUSPECT_S = 600.0

_T = TypeVar("_T")


class Changes(msgspec.Struct, Generic[_T]):
    """What changed since the last time; in order."""

    listed: list[_T] | None
    """All objects that there are, where they had to be listed; else None."""
    later: list[tuple[bool, _T]]
    """Whether the object exists, and the object."""


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct):
    version: str = msgspec.field(default="", name="resourceVersion")


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class WatchedKind(Generic[_T]):
    """Objects of one kind with some labels. For one thread."""

    def __init__(
        self,
        cluster: Cluster,
        selected: Selection,
        form: type[_T],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`form` is a msgspec.Struct with the fields that are wanted."""
        self._cluster = cluster
        self._selected = selected
        self._form = form
        self._clock = clock
        self._stream: ApiStream | None = None
        self._version = ""
        """From which a watch can go on; empty if all must be listed."""
        self._read_at = 0.0
        """When all that had happened until then was known."""
        self._heard_at = 0.0
        self._watch_at = 0.0
        """Before that no watch is tried."""
        self._kept = False
        """Whether it was read before: one that is made for a single call only lists."""

    def changes(self) -> Changes[_T]:
        """Return what changed. Raises Transient, Refused, as a list does.

        After an error all is listed by the next call, so that no change is lost.
        """
        now = self._clock()
        later = list(self._received(now))
        if self._stream is None and self._version:
            if now - self._read_at > _GAP_S:
                self._version = ""
            else:
                self._begin(now)
        if self._stream is not None:
            return Changes(None, later)
        listed, self._version = self._cluster.find_as(self._form, self._selected)
        self._read_at = now
        if not self._kept or now < self._watch_at:
            self._version = ""
        # The list worked, with credentials that were read anew if need be.
        elif not self._begin(now):
            self._watch_at = now + _AGAIN_S
        self._kept = True
        return Changes(listed, [])

    def close(self) -> None:
        """Close the connection. The next call lists, as the first one did."""
        self._give_up()
        self._kept = False

    def _received(self, now: float) -> Iterator[tuple[bool, _T]]:
        """Yield what the stream brought; note whether it can be trusted further."""
        if self._stream is None:
            return
        lines = self._stream.lines()
        if lines:
            self._heard_at = now
        for line in lines:
            try:
                event = decode(line, _Event)
                if event.type == "ERROR":
                    self._give_up()
                    return
                meta = decode(bytes(event.object), _Versioned).metadata
                if event.type != "BOOKMARK":
                    item = decode(bytes(event.object), self._form)
                    yield event.type != "DELETED", item
            except Transient:
                self._give_up()
                return
            self._version = meta.version
        if self._stream.ended:
            self._stream = None
        elif now - self._heard_at > _SILENT_S:
            self._give_up()
            self._watch_at = now + _SUSPECT_S
        else:
            self._read_at = now

    def _begin(self, now: float) -> bool:
        """Begin to watch; return False if all must be listed, now or next time."""
        self._heard_at = now
        if not self._version:
            return False
        try:
            self._stream = self._cluster.watch(self._selected, self._version, _STREAM_S)
        except ProviderError:
            self._version = ""
            return False
        return True

    def _give_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._version = ""
