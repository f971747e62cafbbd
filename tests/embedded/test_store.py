# SPDX-License-Identifier: MIT
"""The lead's store. `StoreContract` says what every store must do."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from burst_embedded.boot import read_broker_config, read_resources
from burst_embedded.lead import LeadBroker
from burst_embedded.store import STORE, FileStore

from burst.errors import LeadError, StoreError
from burst.lead import MAX_VALUE_BYTES
from tests.contract.instance import HOSTS
from tests.embedded_instance import short_directory, write_files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / STORE


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path)


def test_nobody_else_can_read_it(store: FileStore, path: Path) -> None:
    store.write({"a": "1"})
    path.chmod(0o644)
    store.write({"a": "2"})
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_largest_value_fits(store: FileStore) -> None:
    store.write({"big": "x" * MAX_VALUE_BYTES})
    assert len(store.load()["big"]) == MAX_VALUE_BYTES


@pytest.mark.parametrize("place", ["file", "none"])
def test_where_nothing_can_be_written_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be"):
        FileStore(tmp_path / place).write({"a": "1"})


@pytest.mark.parametrize("text", ["something else", "[]", '{"a": 1}', ""])
def test_a_file_that_is_something_else_is_refused_and_kept(
    path: Path, text: str
) -> None:
    path.write_text(text)
    with pytest.raises(StoreError, match=r"cannot be read.*move it away"):
        FileStore(path.parent)
    assert path.read_text() == text


def test_a_write_does_not_wait_for_the_disk(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("it waited for the disk"))
    store.write({"a": "1"})


def test_a_lead_reads_it_once_no_other_lead_can_write_to_it(path: Path) -> None:
    path.write_text("what another lead is about to replace")
    with short_directory() as directory, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        config = write_files(directory, other.getsockname()[1])
        boot = read_broker_config(config, HOSTS[0])
        resources = read_resources(config, boot.hosts)
        with pytest.raises(LeadError, match=r"cannot listen on.*ss -ltnp"):
            LeadBroker(boot, resources, directory, path.parent)


@pytest.fixture
def no_file_grows() -> Iterator[None]:
    """Have every write that makes a file larger fail, as on a full disk."""
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("no_file_grows")
def test_a_disk_that_takes_no_more_loses_nothing(
    store: FileStore, tmp_path: Path
) -> None:
    store.write({"a": "1"})
    with pytest.raises(StoreError, match="cannot be written"):
        store.write({"a": "2", "b": "x" * MAX_VALUE_BYTES})
    assert store.load() == FileStore(tmp_path).load() == {"a": "1"}
    store.write({"a": "3"})
    assert store.load() == {"a": "3"}


WRITER = """
import sys
from pathlib import Path
from burst_embedded.store import FileStore
store = FileStore(Path(sys.argv[1]))
n = 0
while True:
    store.write({"a": str(n), "b": str(n)})
    print(n, flush=True)
    n += 1
"""


def test_a_writer_that_is_killed_leaves_whole_writes(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = 0
        for _ in range(20):
            told = int(writer.stdout.readline())
        writer.kill()
    kept = FileStore(tmp_path).load()
    assert kept["a"] == kept["b"]
    assert int(kept["a"]) >= told
