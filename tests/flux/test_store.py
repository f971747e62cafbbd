# SPDX-License-Identifier: MIT
"""What the KVS refuses, and proposals that meet; the rest is in the contract."""

from __future__ import annotations

import base64
import errno
import zlib
from typing import Any

import pytest

from burst.errors import Denied, StoreError, Unreadable
from burst.flux.rpc import RpcClient
from burst.flux.store import FluxStore
from tests.flux.fake_handle import FakeHandle, Fault


class Kvs:
    """The one directory of the KVS that matters, without history."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.flags: list[int] = []

    def put(self, key: str, text: str) -> None:
        self.put_at(f"{zlib.crc32(key.encode()) & 255:02x}.{key}", text)

    def put_at(self, key: str, text: str) -> None:
        data = base64.b64encode(text.encode()).decode()
        self.entries[key] = {"ver": 1, "type": "val", "data": data}

    def text(self, key: str) -> str:
        return base64.b64decode(self.entries[key]["data"]).decode()

    def lookup(self, asked: Any) -> dict[str, Any] | Fault:
        if "rootdir" not in asked:
            if not self.entries:
                return Fault(errno.ENOENT)
            return {"val": {"ver": 1, "type": "dirref", "data": ["sha1-x"]}}
        if asked["flags"] == 1:
            below = "" if asked["key"] == "." else f"{asked['key']}."
            names = [k.removeprefix(below) for k in self.entries if k.startswith(below)]
            refs = {}
            for name in names:
                first, dot, _ = name.partition(".")
                refs[first] = {"ver": 1, "type": "dirref" if dot else "valref"}
            return {"val": {"ver": 1, "type": "dir", "data": refs}}
        return {"val": self.entries[asked["key"]]}

    def commit(self, asked: Any) -> dict[str, Any]:
        self.flags.append(asked["flags"])
        for operation in asked["ops"]:
            key = operation["key"].removeprefix("burst.")
            if operation["dirent"] is None:
                self.entries.pop(key, None)
                continue
            text = base64.b64decode(operation["dirent"]["data"]).decode()
            before = (
                self.text(key) if operation["flags"] and key in self.entries else ""
            )
            self.put_at(key, before + text)
        return {}


@pytest.fixture
def kvs() -> Kvs:
    return Kvs()


@pytest.fixture
def broker(kvs: Kvs) -> FakeHandle:
    return FakeHandle({"kvs.lookup": kvs.lookup, "kvs.commit": kvs.commit})


@pytest.fixture
def store(broker: FakeHandle) -> FluxStore:
    return FluxStore(RpcClient(broker.as_handle()))


def test_a_proposal_made_at_the_same_time_wins_if_it_was_first(
    kvs: Kvs, broker: FakeHandle, store: FluxStore
) -> None:
    def after_another(asked: Any) -> dict[str, Any]:
        kvs.put("meta/owner", "theirs\n")
        return kvs.commit(asked)

    broker.services["kvs.commit"] = after_another
    assert store.agree("meta/owner", "ours") == "theirs"
    assert store.agree("meta/owner", "ours") == "theirs"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(errno.ENOSPC, "disk full"), StoreError),
        (Fault(errno.ENOSYS), Unreadable),
        (Fault(errno.EPERM), Denied),
    ],
)
def test_what_the_kvs_refuses_is_said(broker, store, fault, error):
    broker.services.update(
        {"kvs.lookup": lambda _: fault, "kvs.commit": lambda _: fault}
    )
    with pytest.raises(error):
        store.load()
    with pytest.raises(error):
        store.write({"a": "1"})


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault(errno.EIO), StoreError), (Fault(errno.ENOSYS), Unreadable)],
)
def test_one_record_that_cannot_be_had_is_no_empty_store(
    kvs: Kvs, broker: FakeHandle, store: FluxStore, fault: Fault, error: Any
) -> None:
    kvs.put("a", "1")
    broker.services["kvs.lookup"] = lambda asked: (
        fault if asked["key"].endswith(".a") else kvs.lookup(asked)
    )
    with pytest.raises(error):
        store.load()


def test_a_record_that_is_no_text_is_said(kvs: Kvs, store: FluxStore) -> None:
    kvs.put("a", "1")
    (key,) = kvs.entries
    kvs.entries[key] = {"ver": 1, "type": "dirref", "data": []}
    with pytest.raises(StoreError, match=r"burst\...\.a in the KVS.* dirref"):
        store.load()


def test_what_is_not_ours_in_the_directory_is_said(
    kvs: Kvs, broker: FakeHandle, store: FluxStore
) -> None:
    kvs.put_at("stray", "1")
    broker.services["kvs.lookup"] = lambda asked: (
        {"val": kvs.entries["stray"]} if asked["key"] == "stray" else kvs.lookup(asked)
    )
    with pytest.raises(StoreError, match=r"burst\.stray in the KVS is not a record"):
        store.load()


def test_a_record_that_flux_restored_as_a_directory_is_read_and_replaced(
    kvs: Kvs, store: FluxStore
) -> None:
    kvs.put_at(f"{zlib.crc32(b'job/b/1') & 255:02x}.job.b.1", "old")
    kvs.put_at(f"{zlib.crc32(b'job/b/2') & 255:02x}.job.b.2", "stays")
    assert store.load() == {"job/b/1": "old", "job/b/2": "stays"}
    store.write({"job/b/1": "new"})
    assert store.load() == {"job/b/1": "new", "job/b/2": "stays"}
    assert not [key for key in kvs.entries if key.endswith("job.b.1")]
    store.write({"job/b/1": None, "job/b/2": None})
    assert store.load() == {}


def test_of_a_record_in_both_places_the_one_in_its_own_is_newer(
    kvs: Kvs, store: FluxStore
) -> None:
    kvs.put_at(f"{zlib.crc32(b'job/b/1') & 255:02x}.job.b.1", "old")
    kvs.put("job/b/1", "new")
    assert store.load() == {"job/b/1": "new"}
