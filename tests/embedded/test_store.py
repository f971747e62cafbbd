# SPDX-License-Identifier: MIT
"""The lead's store. `StoreContract` says what every store must do."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from burst_embedded.boot import read_broker_config, read_resources
from burst_embedded.lead import LeadBroker
from burst_embedded.store import STORE, FileStore

from burst.errors import LeadError, StoreError
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
