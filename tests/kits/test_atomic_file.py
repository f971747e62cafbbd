# SPDX-License-Identifier: MIT
import os
import secrets
import stat
import threading
from pathlib import Path

import pytest

from burst.kits.atomic_file import write_atomically
from tests.support.full_disk import room_for
from tests.support.waiting import wait_until


def test_the_new_content_replaces_the_old(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "old")
    write_atomically(tmp_path / "a", b"new\xff")
    assert (tmp_path / "a").read_bytes() == b"new\xff"
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_mode_that_is_asked_for_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "a", "text", mode=0o644)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_file_like_another_has_its_owner_group_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    if not os.geteuid():
        os.chown(path, 7, 12)
    wanted = path.stat()
    before = os.umask(0o077)
    try:
        write_atomically(path, "new", like=wanted)
    finally:
        os.umask(before)
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (wanted.st_uid, wanted.st_gid)
    assert stat.S_IMODE(found.st_mode) == 0o640
    assert path.read_text() == "new"


def test_it_writes_to_no_file_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not through a link either that somebody made in a directory of many users."""
    monkeypatch.setattr(secrets, "token_hex", lambda _: "0")
    (tmp_path / "other").write_text("kept")
    (tmp_path / ".a.0").symlink_to("other")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a", "secret", private=True)
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("replace", [True, False])
def test_no_other_user_can_read_a_private_file(replace: bool, tmp_path: Path) -> None:
    seen: set[int] = set()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            for entry in os.scandir(tmp_path):
                try:
                    seen.add(stat.S_IMODE(entry.stat().st_mode))
                except FileNotFoundError:
                    continue

    before = os.umask(0)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(50):
            path = tmp_path / str(number)
            write_atomically(path, "secret", private=True, replace=replace)
        wait_until(lambda: seen, "a look at them")
    finally:
        ended.set()
        watcher.join()
        os.umask(before)
    assert seen == {0o600}


def test_without_replace_a_file_that_exists_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a", "new", replace=False)
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_an_error_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "a", "new")
    assert os.listdir(tmp_path) == ["a"]


def test_two_writers_never_mix_their_content(tmp_path: Path) -> None:
    path = tmp_path / "a"
    texts = {letter * 50_000 for letter in "xy"}
    path.write_text("x" * 50_000)

    def write(text: str) -> None:
        for _ in range(30):
            write_atomically(path, text)

    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_text() in texts
    for writer in writers:
        writer.join()
    assert os.listdir(tmp_path) == ["a"]


def test_a_disk_that_is_full_is_told_with_the_files_name(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File too large") as caught, room_for(8):
        write_atomically(tmp_path / "a", "x" * 100)
    assert caught.value.filename == str(tmp_path / "a")
    assert os.listdir(tmp_path) == []
