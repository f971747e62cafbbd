# SPDX-License-Identifier: MIT
"""The store as a file. `StoreContract` says what every store must do."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from burst_embedded.file_store import FileStore

from burst.errors import StoreError
from burst.lead import MAX_VALUE_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "burst.sqlite"


@pytest.fixture
def store(path: Path) -> FileStore:
    return FileStore(path)


def test_what_was_written_is_there_for_the_next_one(
    store: FileStore, path: Path
) -> None:
    assert store.load() == {}
    store.write({"burst/a": "1", "burst/b": "2"})
    store.write({"burst/a": "ƒ", "burst/b": None, "none": None})
    assert store.load() == FileStore(path).load() == {"burst/a": "ƒ"}


def test_nobody_else_can_read_it(store: FileStore, path: Path) -> None:
    store.write({"a": "1"})
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    FileStore(path)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "changes",
    [
        {"good": "1", "a.b": "2"},
        {"good": "1", "": "2"},
        {"good": "1", "a\n": None},
        {"good": "1", "big": "x" * (MAX_VALUE_BYTES + 1)},
        {"good": "1", "big": "ƒ" * (MAX_VALUE_BYTES // 2 + 1)},
        {"good": "1", "odd": "\ud800"},
    ],
)
def test_one_wrong_pair_keeps_nothing(
    store: FileStore, changes: dict[str, str | None]
) -> None:
    with pytest.raises(StoreError):
        store.write(changes)
    assert store.load() == {}


def test_the_largest_value_fits(store: FileStore) -> None:
    store.write({"big": "x" * MAX_VALUE_BYTES})
    assert len(store.load()["big"]) == MAX_VALUE_BYTES


def test_a_path_with_odd_characters_is_that_path(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory#b%20 c"
    FileStore(path).write({"a": "1"})
    assert path.is_file()
    assert FileStore(path).load() == {"a": "1"}


def test_any_thread_may_use_it(store: FileStore) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: store.write({f"k{n}": str(n)}), range(40)))
    assert len(store.load()) == 40


@pytest.mark.parametrize("place", ["file/burst.sqlite", "none/burst.sqlite", "."])
def test_where_nothing_can_be_written_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be written.*--statedir"):
        FileStore(tmp_path / place)


def test_a_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.write_text("something else altogether\n" * 100)
    with pytest.raises(StoreError, match=r"not a database.*move it away"):
        FileStore(path)
    assert path.read_text().startswith("something else")


def test_a_file_of_a_newer_version_is_refused_and_kept(
    store: FileStore, path: Path
) -> None:
    store.write({"a": "1"})
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
    with pytest.raises(StoreError, match="version 2, this program knows 1"):
        FileStore(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT * FROM kept").fetchall() == [("a", "1")]


def test_a_file_that_went_away_is_not_made_anew(store: FileStore, path: Path) -> None:
    store.write({"a": "1"})
    path.unlink()
    with pytest.raises(StoreError, match="cannot be used"):
        store.write({"b": "2"})
    with pytest.raises(StoreError, match="cannot be used"):
        store.load()
    assert not path.exists()


def test_a_damaged_file_is_said_to_be(store: FileStore, path: Path) -> None:
    store.write({f"k{n}": "x" * 1000 for n in range(50)})
    content = bytearray(path.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"malformed.*backup"):
        store.load()


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
def test_a_disk_that_takes_no_more_loses_nothing(store: FileStore) -> None:
    store.write({"a": "1"})
    with pytest.raises(StoreError, match="cannot be used"):
        store.write({"a": "2", "b": "x" * MAX_VALUE_BYTES})
    assert store.load() == {"a": "1"}
    store.write({"a": "3"})
    assert store.load() == {"a": "3"}


WRITER = """
import sys
from pathlib import Path
from burst_embedded.file_store import FileStore
store = FileStore(Path(sys.argv[1]))
n = 0
while True:
    store.write({"a": str(n), "b": str(n)})
    print(n, flush=True)
    n += 1
"""


def test_a_writer_that_is_killed_leaves_whole_writes(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        told = 0
        for _ in range(20):
            told = int(writer.stdout.readline())
        writer.kill()
    kept = FileStore(path).load()
    assert kept["a"] == kept["b"]
    assert int(kept["a"]) >= told
