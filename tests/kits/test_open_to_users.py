# SPDX-License-Identifier: MIT
import os
import stat
from pathlib import Path

import pytest

from burst.kits.open_to_users import first_closed, let_pass


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
