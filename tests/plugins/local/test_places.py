# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
from pathlib import Path

import pytest
from burst_local.places import Home, is_name
from burst_local.processes import Birth

from burst.errors import Refused
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return example_spec(example_lead(tmp_path), 0, "local")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "base", "owner-1", "here")
    home.open()
    return home


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
    assert is_name(text) == safe


@pytest.mark.parametrize(("owner", "name"), [("../x", "here"), ("o", "a.b"), ("", "a")])
def test_an_owner_that_is_no_name_is_refused(owner: str, name: str) -> None:
    with pytest.raises(Refused, match="cannot be part of a directory"):
        Home(Path("/nowhere"), owner, name)


def test_all_directories_and_files_are_private(home: Home, spec: BurstSpec) -> None:
    before = os.umask(0)
    try:
        place = home.burst(spec.burst_id)
        place.make(spec, "[bootstrap]\n")
        place.begin_ending(1.0)
        next(place.followers()).record(Birth(1, 2, "b"))
    finally:
        os.umask(before)
    for path in [home.path, *home.path.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_what_is_made_is_found(home: Home, spec: BurstSpec) -> None:
    place = home.burst(spec.burst_id)
    assert not place.exists()
    assert list(place.followers()) == []
    place.make(spec, "[bootstrap]\n")
    (found,) = Home(home.path.parent, "owner-1", "here").bursts()
    assert (found.id, found.spec()) == (spec.burst_id, spec)
    assert found.config.read_text() == "[bootstrap]\n"
    assert [follower.host for follower in found.followers()] == list(spec.hosts)
    assert found.ending_since() is None
    found.begin_ending(12.5)
    assert found.ending_since() == 12.5


def test_a_birth_is_remembered_until_it_is_forgotten(
    home: Home, spec: BurstSpec
) -> None:
    home.burst(spec.burst_id).make(spec, "")
    follower = home.burst(spec.burst_id).follower(spec.hosts[0])
    assert follower.birth() is None
    follower.record(Birth(7, 8, "boot"))
    assert follower.birth() == Birth(7, 8, "boot")
    follower.unrecord()
    follower.unrecord()
    assert follower.birth() is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"burst_id": 1}'])
def test_a_damaged_record_is_no_record(
    damage: str, home: Home, spec: BurstSpec
) -> None:
    place = home.burst(spec.burst_id)
    place.make(spec, "")
    (place.path / "spec.json").write_text(damage)
    assert place.spec() is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"", ""),
        (b"one\n", "one"),
        (b"".join(b"%d \n" % n for n in range(10)), "2 / 3 / 4 / 5 / 6 / 7 / 8 / 9"),
        (b"<3>overlay.err[4]: no <3>\n", "overlay.err[4]: no <3>"),
        (b"\xff\x1b[31mred\n", "\ufffd [31mred"),
        (b"x" * 5000, "x" * 2048),
    ],
)
def test_the_end_of_a_log_is_one_line(
    said: bytes, told: str, home: Home, spec: BurstSpec
) -> None:
    home.burst(spec.burst_id).make(spec, "")
    follower = home.burst(spec.burst_id).follower(spec.hosts[0])
    assert follower.last_words() == ""
    follower.log.write_bytes(said)
    assert follower.last_words() == told


def test_the_home_goes_with_its_last_burst(home: Home, spec: BurstSpec) -> None:
    home.burst(spec.burst_id).make(spec, "")
    home.close()
    assert home.path.exists()
    home.burst(spec.burst_id).remove()
    home.close()
    home.close()
    assert not home.path.exists()
    assert home.bursts() == []
    home.check()


def test_a_home_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "owner-1.here").write_text("not a directory")
    with pytest.raises(NotADirectoryError):
        Home(tmp_path / "base", "owner-1", "here").close()


def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "base").write_text("")
    home = Home(tmp_path / "base", "owner-1", "here")
    with pytest.raises(Refused, match=r"cannot be made: .*set dir"):
        home.open()
    with pytest.raises(Refused, match=r"cannot be used: .*set dir"):
        home.check()


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
    home = Home(tmp_path / "base", "owner-1", "here")
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
    home = Home(tmp_path / "base", "owner-1", "here")
    home.open()
    os.chown(home.path if which == "home" else home.path.parent, 65534, -1)
    with pytest.raises(Refused, match="of your own"):
        home.check()


def test_a_symbolic_link_is_no_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "base", "owner-1", "here")
    (tmp_path / "base").mkdir(0o700)
    (tmp_path / "elsewhere").mkdir(0o700)
    home.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="others may write"):
        home.open()
