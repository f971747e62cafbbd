# SPDX-License-Identifier: MIT
"""Records in Flux's KVS, next to the jobs they serve: the directory `burst`.

`flux kvs dir -R burst` lists them. Each write is one transaction, committed with
FLUX_KVS_SYNC: without it a commit is lost when the lead is killed. A power failure may
still undo the last commits, as Flux's content-sqlite does not wait for the disk, unless
`[content-sqlite] synchronous` is FULL (0.66 or later). The `/` of a key is part of its
name in the KVS, so that one key may be a prefix of another. `flux dump` writes it as a
directory, which it is after `flux restore`: such a record is read as well, and replaced
when it is next written.

Records are spread over 256 directories by a hash of the key. A commit rewrites each
directory that it changes: with 10,000 held jobs in one directory it took 80 ms, spread
over 256 it takes 2 ms.
"""

from __future__ import annotations

import base64
import errno
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from burst.errors import BurstError, StoreError
from burst.flux.handle import Handle
from burst.flux.rpc import RequestFailed, RpcClient
from burst.lead import MAX_VALUE_BYTES

DIRECTORY = "burst"
_KEY = re.compile(r"[A-Za-z0-9_/-]+\Z")
NAMESPACE = "primary"
# Flags of flux_kvs_lookup(3) and flux_kvs_commit(3).
_READDIR = 1
_TREEOBJ = 16
_APPEND = 32
_SYNC = 4
# Types of a treeobj (RFC 11).
_DIRECTORIES = ("dir", "dirref")


class FluxStore:
    """Maps keys to text. The KVS keeps a treeobj (RFC 11) of each."""

    def __init__(
        self, client: RpcClient, restored: Mapping[str, str] | None = None
    ) -> None:
        """`restored` is what an earlier FluxStore has found."""
        self._client = client
        self.restored: dict[str, str] = dict(restored or {})
        """By key: paths of records that were found in directories of `flux restore`."""

    def load(self) -> dict[str, str]:
        """Return everything as one commit left it. Raises StoreError, Unreadable."""
        try:
            # A reference to the directory's content, which never changes: all that
            # follows is read from that one version.
            root = self._lookup(DIRECTORY, _TREEOBJ)
        except FileNotFoundError:
            return {}
        at = {"rootdir": root}
        paths = self._list(at)
        texts = self._look_up_all(paths.values(), 0, at)
        return {
            key: _text(path, text)
            for (key, path), text in zip(paths.items(), texts, strict=True)
        }

    def _list(self, at: Mapping[str, Any]) -> dict[str, str]:
        """Return the path of each key's record."""
        found: dict[str, str] = {}
        self.restored = {}
        directories = list(self._lookup(".", _READDIR, at)["data"])
        while directories:
            listings = self._look_up_all(directories, _READDIR, at)
            below = []
            for directory, listing in zip(directories, listings, strict=True):
                for name, entry in _entries(directory, listing).items():
                    path = f"{directory}.{name}"
                    if entry["type"] in _DIRECTORIES:
                        below.append(path)
                        continue
                    key = path.partition(".")[2].replace(".", "/")
                    if "." in directory:
                        self.restored[key] = path
                    found.setdefault(key, path)  # the one in its own place is newer
            directories = below
        return found

    def write(self, changes: Mapping[str, str | None]) -> None:
        """Write all of the changes or none; they survive a crash of the lead.

        Raises StoreError, Unreadable.
        """
        for key, value in changes.items():
            check_record(key, value)
        if not changes:
            return
        restored = changes.keys() & self.restored.keys()
        replaced = [f"{DIRECTORY}.{self.restored[key]}" for key in restored]
        written = [_operation(key, value, 0) for key, value in changes.items()]
        self._commit([*(kvs_operation(path, None) for path in replaced), *written])
        for key in restored:
            del self.restored[key]

    def agree(self, key: str, proposal: str) -> str:
        """Return the first proposal ever made for this key, ours if there is none.

        The KVS appends atomically: several clients that propose at once all read the
        same first line.
        """
        kept = self.load().get(key)
        if kept is None:
            check_record(key, proposal)
            self._commit([_operation(key, f"{proposal}\n", _APPEND)])
            kept = self.load()[key]
        return kept.splitlines()[0]

    def _commit(self, operations: list[dict[str, Any]]) -> None:
        request = {"namespace": NAMESPACE, "flags": _SYNC, "ops": operations}
        try:
            self._client.ask("kvs.commit", request)
        except RequestFailed as error:
            raise _store_error(DIRECTORY, error) from error

    def _look_up_all(
        self, keys: Iterable[str], flags: int, at: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        keys = list(keys)
        answers = self._client.ask_all(
            ("kvs.lookup", {"key": key, "flags": flags, **at}) for key in keys
        )
        found = []
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, RequestFailed):
                raise _store_error(f"{DIRECTORY}.{key}", answer)
            if isinstance(answer, BurstError):
                raise answer
            found.append(answer["val"])
        return found

    def _lookup(
        self, key: str, flags: int, at: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        where = at or {"namespace": NAMESPACE}
        request = {"key": key, "flags": flags, **where}
        try:
            answer = self._client.ask("kvs.lookup", request)
        except RequestFailed as error:
            if error.errnum == errno.ENOENT:
                raise FileNotFoundError(key) from error
            raise _store_error(key, error) from error
        found: dict[str, Any] = answer["val"]
        return found


class SharedStore:
    """A FluxStore over a new connection for each call. Use from any thread."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._restored: Mapping[str, str] = {}

    def load(self) -> dict[str, str]:
        """See `FluxStore`."""
        with closing(Handle(self._uri)) as handle:
            store = FluxStore(RpcClient(handle))
            found = store.load()
        self._restored = store.restored
        return found

    def write(self, changes: Mapping[str, str | None]) -> None:
        """See `FluxStore`."""
        with closing(Handle(self._uri)) as handle:
            store = FluxStore(RpcClient(handle), self._restored)
            store.write(changes)
        self._restored = store.restored


def check_record(key: str, value: str | None) -> None:
    """Raise StoreError for a key or a value that every store refuses."""
    if not _KEY.match(key):
        raise StoreError(f"not a key: {key!r}", "use letters, digits, -, _ and /")
    if value is not None and len(value.encode()) > MAX_VALUE_BYTES:
        raise StoreError(f"{key}: the value is larger than {MAX_VALUE_BYTES} bytes")


def _operation(key: str, value: str | None, flags: int) -> dict[str, Any]:
    spread = zlib.crc32(key.encode()) & 0xFF
    data = None if value is None else value.encode()
    return kvs_operation(f"{DIRECTORY}.{spread:02x}.{key}", data, flags)


def kvs_operation(key: str, data: bytes | None, flags: int = 0) -> dict[str, Any]:
    """Return the part of `kvs.commit` that writes a value; None deletes it."""
    dirent = None
    if data is not None:
        text = base64.b64encode(data).decode()
        dirent = {"ver": 1, "type": "val", "data": text}
    return {"key": key, "flags": flags, "dirent": dirent}


def _entries(directory: str, listing: Mapping[str, Any]) -> Mapping[str, Any]:
    if listing["type"] != "dir":
        raise _stray(directory, listing)
    entries: Mapping[str, Any] = listing["data"]
    return entries


def _stray(key: str, treeobj: Mapping[str, Any]) -> StoreError:
    return StoreError(
        f"{DIRECTORY}.{key} in the KVS is not a record but a {treeobj['type']}",
        "move it elsewhere: that directory is the daemon's",
    )


def _text(key: str, treeobj: Mapping[str, Any]) -> str:
    if treeobj["type"] != "val":
        raise _stray(key, treeobj)
    # A value that is not UTF-8 was not written by us; decoding the record reports it.
    return base64.b64decode(treeobj["data"]).decode(errors="replace")


def _store_error(key: str, error: RequestFailed) -> StoreError:
    return StoreError(
        f"the KVS at {key}: {error.what}",
        "the lead needs its modules kvs and content-sqlite, and free space on its disk",
    )
