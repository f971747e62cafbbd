# SPDX-License-Identifier: MIT
import os
import pwd
import stat
from pathlib import Path

import pytest

from burst.kits.path_rights import first_changeable, first_closed, let_pass

ME = os.geteuid()
AS_ROOT = pytest.mark.skipif(ME != 0, reason="another user's file takes root")
STRANGER = 61000


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    found = tmp_path / "a" / "b"
    found.mkdir(parents=True)
    (found / "file").touch()
    for path, mode in ((found, 0o755), (found.parent, 0o755), (found / "file", 0o644)):
        path.chmod(mode)
    return found


def look(path: Path, tmp_path: Path, owner: int = ME) -> str:
    return first_changeable(path, owner, tmp_path).removeprefix(f"{tmp_path}/")


def test_modes_and_owners_of_a_path_are_looked_at(inner: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    file = inner / "file"
    assert look(file, tmp_path) == ""
    assert look(inner / "none" / "none", tmp_path) == ""
    # Who is not root, nor that user, is another.
    theirs = look(file, tmp_path, STRANGER)
    assert theirs == ("" if ME == 0 else str(tmp_path))
    file.chmod(0o646)
    assert look(file, tmp_path) == "a/b/file"
    inner.chmod(0o757)
    assert look(file, tmp_path) == "a/b"
    inner.chmod(0o1777)
    assert look(file, tmp_path) == "a/b/file"


def test_each_link_and_all_that_it_leads_through_is_looked_at(
    inner: Path, tmp_path: Path
) -> None:
    open_ = tmp_path / "open"
    open_.mkdir()
    (open_ / "middle").symlink_to("../a/b")
    (tmp_path / "link").symlink_to(open_ / "middle" / ".." / "b" / "file")
    assert look(tmp_path / "link", tmp_path) == ""
    open_.chmod(0o777)
    assert look(tmp_path / "link", tmp_path) == "open"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="Too many levels"):
        look(tmp_path / "loop", tmp_path)


@AS_ROOT
def test_a_link_of_another_user_is_his_to_change(inner: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(inner)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    assert look(link / "file", tmp_path) == "link"


@AS_ROOT
def test_a_group_counts_by_its_members(inner: Path, tmp_path: Path) -> None:
    daemon, file = pwd.getpwnam("daemon"), inner / "file"
    shared = pwd.getpwnam("bin").pw_gid
    for group, mode, found in (
        (daemon.pw_gid, 0o664, ""),
        (0, 0o664, ""),
        (shared, 0o644, ""),
        (shared, 0o664, "a/b/file"),
        (STRANGER, 0o664, "a/b/file"),
    ):
        os.chown(file, daemon.pw_uid, group)
        file.chmod(mode)
        assert look(file, tmp_path, daemon.pw_uid) == found, (group, mode)
    os.chown(file, STRANGER, 0)
    file.chmod(0o600)
    assert look(file, tmp_path, daemon.pw_uid) == "a/b/file"


@AS_ROOT
def test_the_mode_of_another_users_directory_stays(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(0o700)
    os.chown(theirs, 61000, 61000)
    let_pass(theirs)
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o700


def test_the_first_part_of_a_path_that_others_cannot_pass_is_found(
    tmp_path: Path,
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file, link = inner / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    for path, mode in ((inner, 0o755), (inner.parent, 0o755), (file, 0o644)):
        path.chmod(mode)
    assert first_closed(file, tmp_path / "a") == ""
    file.chmod(0o640)
    assert first_closed(file, tmp_path / "a") == str(file)
    inner.parent.chmod(0o700)
    assert first_closed(link, tmp_path / "a") == str(inner.parent)
    assert first_closed(inner / "none", inner) == str(inner / "none")
