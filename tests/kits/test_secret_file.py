# SPDX-License-Identifier: MIT
import os
import subprocess
import sys
from pathlib import Path

import pytest

from burst.errors import ConfigError
from burst.kits.secret_file import read_secret

GOOD = "a" * 32


def read(path: Path) -> bytes:
    return read_secret(str(path), "http.token_file")


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o604, 0o620, 0o602, 0o666])
def test_a_file_that_only_we_can_read_is_taken(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text(f"{GOOD}\n")
    path.chmod(mode)
    if mode in (0o600, 0o400):
        assert read(path) == GOOD.encode()
        return
    with pytest.raises(ConfigError, match=r"others may read it.*chmod 600"):
        read(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="want of root, who may give files away")
def test_a_file_of_another_user_is_refused_and_a_mounted_secret_is_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "token"
    path.write_text(GOOD)
    path.chmod(0o400)
    os.chown(path, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        read(path)
    os.chown(path, 0, os.getegid())
    path.chmod(0o440)
    assert read(path) == GOOD.encode()


@pytest.mark.parametrize("text", ["", "short", "a" * 2000, "a" * 20 + " b", "ä" * 20])
def test_what_is_no_token_is_refused_without_being_told(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="no token of 16 to 1024") as raised:
        read(path)
    assert not text or text not in str(raised.value)


def test_a_file_that_is_not_there_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"No such file.*openssl rand"):
        read(tmp_path / "none")
    with pytest.raises(ConfigError, match="Is a directory"):
        read(tmp_path)


def test_a_file_that_we_may_not_read_is_told_with_how_to_give_it_to_us(
    tmp_path: Path,
) -> None:
    path = tmp_path / "token"
    path.write_text(GOOD)
    path.chmod(0o000)
    # root may read any file, and so becomes another user first.
    script = (
        "import os, sys; from burst.kits.secret_file import read_secret;"
        " os.geteuid() or os.seteuid(12345);"
        " read_secret(sys.argv[1], 'http.token_file')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Permission denied; chmod 600, and chown to the daemon's user" in done.stderr
    assert "openssl" not in done.stderr
