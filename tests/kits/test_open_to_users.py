# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

import pytest

from burst.kits.open_to_users import first_changeable, first_closed, let_pass


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's file takes root")
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


def test_the_first_part_of_a_path_that_others_can_change_is_found(
    tmp_path: Path,
) -> None:
    me = os.geteuid()
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file, link = inner / "file", tmp_path / "link"
    file.touch()
    link.symlink_to(file)
    for path, mode in ((inner, 0o755), (inner.parent, 0o755), (file, 0o644)):
        path.chmod(mode)
    root = tmp_path / "a"
    assert first_changeable(file, me, root) == ""
    assert first_changeable(link, me, root) == ""
    assert first_changeable(inner / "none", me, root) == ""
    # Who owns it decides: a user with that id is root's or the user's own.
    assert first_changeable(file, 61000, root) == ("" if me == 0 else str(root))
    for path, mode in ((file, 0o646), (inner, 0o757)):
        path.chmod(mode)
        assert first_changeable(link, me, root) == str(path)
    inner.chmod(0o1777)
    assert first_changeable(file, me, root) == str(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="another group's file takes root")
def test_the_group_of_the_user_himself_does_not_count(tmp_path: Path) -> None:
    daemon = pwd.getpwnam("daemon")
    file = tmp_path / "file"
    file.touch()
    for group, mode, found in (
        (daemon.pw_gid, 0o664, ""),
        (0, 0o664, ""),
        (61000, 0o644, ""),
        (61000, 0o664, str(file)),
    ):
        os.chown(file, daemon.pw_uid, group)
        file.chmod(mode)
        assert first_changeable(file, daemon.pw_uid, file) == found
    os.chown(file, 61001, 0)
    file.chmod(0o600)
    assert first_changeable(file, daemon.pw_uid, file) == str(file)
