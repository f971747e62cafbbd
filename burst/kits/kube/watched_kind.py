# SPDX-License-Identifier: MIT
"""Reports changes of the objects of one kind: lists them once, then watches them.

Source: the Kubernetes documentation, "Kubernetes API Concepts", efficient detection of
changes. The watch is dropped and the objects are listed again in these cases:

* the API server does not know the version any more (410 Gone), or sends another error;
* the stream has ended, and the last read of it is too long ago (`_GAP_S`);
* the stream is silent for longer than is possible (`_SILENT_S`): the API server ends
  each stream after `_STREAM_S`, and sends a bookmark before. So the connection is lost,
  or a proxy holds the data back, and no watch is tried for `_SUSPECT_S`.

So the reported state is never older than `_SILENT_S`; usually it is some milliseconds
old.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from burst.errors import ProviderError, Transient
from burst.kits.kube.api_stream import ApiStream
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import Selection, decode

_STREAM_S = 30
_SILENT_S = 40.0
_GAP_S = 15.0
# How long to list all objects each time after a watch could not be started, for example
# for lack of the right.
_AGAIN_S = 60.0
_SUSPECT_S = 600.0


class Versioned(Protocol):
    """A msgspec.Struct with the wanted fields of an object.

    A bookmark is decoded as one, too, and has no field but `resourceVersion`.
    """

    @property
    def version(self) -> str:
        """The `resourceVersion`."""
        ...


_T = TypeVar("_T", bound=Versioned)


class Changes(msgspec.Struct, Generic[_T]):
    """What changed since the last call, in order."""

    listed: list[_T] | None
    """All existing objects, if they had to be listed; else None."""
    later: list[tuple[bool, _T]]
    """For each change: whether the object still exists, and the object."""


class _Event(msgspec.Struct, Generic[_T]):
    type: str
    object: _T


class WatchedKind(Generic[_T]):
    """Watches the objects of one kind that have some labels. For one thread."""

    def __init__(
        self,
        cluster: Cluster,
        selected: Selection,
        form: type[_T],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._selected = selected
        self._form = form
        self._clock = clock
        self._stream: ApiStream | None = None
        self._version = ""
        """The version from which a watch can go on; empty if all must be listed."""
        self._read_at = 0.0
        """The last time at which all earlier changes were known."""
        self._heard_at = 0.0
        """When the stream last brought a line, or was started."""
        self._watch_at = 0.0
        """The time before which no watch is tried."""
        self._kept = False
        """Whether there was a call before. The first call only lists, as there may be
        no second one."""

    def changes(self) -> Changes[_T]:
        """Return what changed. Raises Transient, Refused, as a list does.

        After an error the next call lists all objects, so that no change is lost.
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
        # The list has worked, and has read the credentials again if that was necessary.
        elif not self._begin(now):
            self._watch_at = now + _AGAIN_S
        self._kept = True
        return Changes(listed, [])

    def _received(self, now: float) -> Iterator[tuple[bool, _T]]:
        """Yield what the stream has brought; drop the stream if it is not reliable."""
        if self._stream is None:
            return
        lines = self._stream.lines()
        if lines:
            self._heard_at = now
        for line in lines:
            try:
                event = decode(line, _Event[self._form])  # type: ignore[name-defined]
            except Transient:
                event = None
            # The object of an error is none of this kind, so it may not be decoded.
            if event is None or event.type == "ERROR":
                self._give_up()
                return
            if event.type != "BOOKMARK":
                yield event.type != "DELETED", event.object
            self._version = event.object.version
        if self._stream.ended:
            self._stream = None
        elif now - self._heard_at > _SILENT_S:
            self._give_up()
            self._watch_at = now + _SUSPECT_S
        else:
            self._read_at = now

    def _begin(self, now: float) -> bool:
        """Start a watch; return False if it failed, so that all must be listed."""
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
