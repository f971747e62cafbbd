# SPDX-License-Identifier: MIT
import errno
import fcntl
import os
import stat
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient
from burst.kits.private_dir import (
    PrivateDirectory,
    default_base,
    disk_errors,
    is_safe_name,
)

THREADS = 4


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("burst-0-3fa9c1", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a/b", False),
        ("a.b", False),
        ("-a", False),
        ("a\n", False),
        ("x" * 63, True),
        ("x" * 64, False),
    ],
)
def test_only_safe_names_become_directories(text: str, safe: bool) -> None:
    assert is_safe_name(text) == safe


@pytest.mark.parametrize(("owner", "name"), [("../x", "here"), ("o", "a.b"), ("", "a")])
def test_an_owner_that_is_no_name_is_refused(owner: str, name: str) -> None:
    with pytest.raises(Refused, match="cannot be part of a directory"):
        PrivateDirectory(Path("/nowhere"), owner, name)


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base"
    home = PrivateDirectory(base, "owner-1", "here")
    base.write_text("")
    with pytest.raises(Refused, match=r"cannot be made: .*set dir"):
        home.open()
    with pytest.raises(Refused, match=r"cannot be used: .*set dir"):
        home.check()
    # One that cannot be removed is an error.
    base.unlink()
    base.mkdir()
    home.path.write_text("not a directory")
    with pytest.raises(NotADirectoryError):
        home.close()


@pytest.mark.parametrize(
    ("base", "own", "wrong"),
    [
        (0o700, 0o700, ""),
        (0o755, 0o700, ""),
        (0o1777, 0o700, ""),
        (0o777, 0o700, "base: others may write"),
        (0o1777, 0o755, r"owner-1\.here: others may write"),
    ],
)
def test_a_place_where_others_could_write_is_refused(
    base: int, own: int, wrong: str, tmp_path: Path
) -> None:
    home = PrivateDirectory(tmp_path / "base", "owner-1", "here")
    home.open()
    home.path.chmod(own)
    home.path.parent.chmod(base)
    if not wrong:
        home.open()
        return
    for look in (home.open, home.check):
        with pytest.raises(Refused, match=wrong):
            look()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
@pytest.mark.parametrize("which", ["base", "home"])
def test_a_place_of_another_user_is_refused(which: str, tmp_path: Path) -> None:
    home = PrivateDirectory(tmp_path / "base", "owner-1", "here")
    home.open()
    os.chown(home.path if which == "home" else home.path.parent, 65534, -1)
    with pytest.raises(
        Refused, match=r"belongs to nobody.* a directory of this"
    ) as info:
        home.check()
    assert "remove" not in info.value.advice
    with pytest.raises(Refused, match="belongs to nobody"):
        PrivateDirectory.owners(home.path.parent)


def test_what_is_no_directory_of_this_user_is_no_owners(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a user's own file")
    (tmp_path / "ann.far").mkdir()
    (tmp_path / "ann.far").chmod(0o777)
    assert PrivateDirectory.owners(tmp_path) == []
    assert PrivateDirectory.owners(tmp_path / "none") == []


def test_a_refused_base_is_told_also_if_it_is_empty(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(Refused, match="others may write") as info:
        PrivateDirectory.owners(tmp_path, has_key=False)
    assert "dir" not in info.value.advice


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users")
def test_in_a_directory_of_all_users_only_root_looks_for_others() -> None:
    # The directory of pytest may not be entered by others.
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        base.chmod(0o1777)
        (base / "ann.far").mkdir(mode=0o700)
        os.chown(base / "ann.far", 1, -1)
        with pytest.raises(Refused, match="belongs to"):
            PrivateDirectory.owners(base)
        os.seteuid(65534)
        try:
            assert PrivateDirectory.owners(base) == []
        finally:
            os.seteuid(0)


def test_a_symbolic_link_is_no_home(tmp_path: Path) -> None:
    home = PrivateDirectory(tmp_path / "base", "owner-1", "here")
    (tmp_path / "base").mkdir(0o700)
    (tmp_path / "elsewhere").mkdir(0o700)
    home.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="others may write"):
        home.open()


@pytest.mark.parametrize("leads_to", ["elsewhere", "nowhere"])
def test_a_symbolic_link_in_place_of_the_base_is_refused(
    leads_to: str, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "base").symlink_to(tmp_path / leads_to)
    home = PrivateDirectory(tmp_path / "base", "owner-1", "here")
    for look in (home.open, home.check):
        with pytest.raises(Refused, match=r"cannot be made|is a symbolic link"):
            look()
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize(
    ("number", "writing", "kind"),
    [
        (errno.ENOSPC, True, InsufficientCapacity),
        (errno.EDQUOT, True, InsufficientCapacity),
        (errno.EFBIG, True, InsufficientCapacity),
        (errno.ENOSPC, False, Transient),
        (errno.EIO, True, Transient),
    ],
)
def test_what_a_disk_says_is_an_error_that_the_daemon_knows(
    number: int, writing: bool, kind: type[ProviderError], tmp_path: Path
) -> None:
    with (
        pytest.raises(kind, match=os.strerror(number)),
        disk_errors(tmp_path, writing=writing),
    ):
        raise OSError(number, os.strerror(number))


def test_by_default_each_user_has_one_of_his_own() -> None:
    assert default_base() == Path(f"/tmp/burst-{os.geteuid()}")


def test_only_names_like_ours_are_listed(tmp_path: Path) -> None:
    home = PrivateDirectory(tmp_path, "owner-1", "here")
    assert home.names() == []
    home.open()
    for name in ("b", ".b", "a", "a.toml"):
        (home.path / name).touch()
    assert home.names() == ["a", "b"]


def test_users_may_pass_through_where_that_is_asked_for(tmp_path: Path) -> None:
    base = tmp_path / "base"
    home = PrivateDirectory(base, "owner-1", "here")
    home.open()
    assert [stat.S_IMODE(p.stat().st_mode) for p in (base, home.path)] == [0o700] * 2
    home.open(passable=True)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (base, home.path)] == [0o711] * 2
    home.check()
    home.open()
    home.path.chmod(0o751)
    with pytest.raises(Refused, match="others may write"):
        home.check()


def test_a_unit_of_systemd_that_may_not_write_there_is_told() -> None:
    # As `open` has it; only root can mount a directory read-only.
    error = OSError(errno.EROFS, os.strerror(errno.EROFS))
    home = PrivateDirectory(Path("/shared/bursts"), "owner", "far")
    found = home._unusable("made", error)
    assert isinstance(found, Refused)
    assert "ReadWritePaths=/shared/bursts" in found.advice


def test_it_is_locked_while_it_is_in_use(tmp_path: Path) -> None:
    """systemd-tmpfiles leaves out a locked directory (tmpfiles.d(5))."""
    home = PrivateDirectory(tmp_path / "base", "owner", "name")
    home.open()
    assert not may_be_cleaned(home.path)
    second = PrivateDirectory(tmp_path / "base", "owner", "name")
    second.check()
    del home
    assert may_be_cleaned(second.path)
    second.check()
    assert not may_be_cleaned(second.path)
    second.close()
    second.open()
    assert not may_be_cleaned(second.path)


def test_threads_that_lock_it_at_once_leave_it_locked(tmp_path: Path) -> None:
    for number in range(200):
        home = PrivateDirectory(tmp_path, "owner", f"name{number}")
        home.path.mkdir(mode=0o700)
        start = threading.Barrier(THREADS)

        def check(
            home: PrivateDirectory = home, start: threading.Barrier = start
        ) -> None:
            start.wait()
            home.check()

        with ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(check) for _ in range(THREADS)]:
                done.result()
        assert descriptors(home.path) == 1
        assert not may_be_cleaned(home.path)


def descriptors(path: Path) -> int:
    """Return how many descriptors of this process are of a directory."""
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.realpath(link) == os.path.realpath(path) for link in links)


def may_be_cleaned(path: Path) -> bool:
    place = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(place)
    return True
