# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from burst_local.burst_dirs import ProviderDirectory
from burst_local.processes import ProcessIdentity

from burst.model.lead import GuestAccess
from burst.provider import BurstSpec
from burst.testing import example_lead, example_spec


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return example_spec(example_lead(tmp_path), 0, "local")


@pytest.fixture
def home(tmp_path: Path) -> ProviderDirectory:
    home = ProviderDirectory(tmp_path / "base", "owner-1", "here")
    home.open()
    return home


@pytest.mark.parametrize(
    ("guests", "umask", "of_directories"), [(False, 0, 0), (True, 0o077, 0o011)]
)
def test_others_read_no_file_and_guests_pass_through_to_the_sockets(
    home: ProviderDirectory,
    spec: BurstSpec,
    guests: bool,
    umask: int,
    of_directories: int,
) -> None:
    access = GuestAccess(allow_guest_user=guests)
    lead = msgspec.structs.replace(spec.lead, access=access)
    spec = msgspec.structs.replace(spec, lead=lead)
    before = os.umask(umask)
    try:
        place = home.burst(spec.burst_id)
        place.make(spec, "[bootstrap]\n")
        place.note_ending(1.0)
        next(place.followers()).record(ProcessIdentity(1, 2, "b"))
    finally:
        os.umask(before)
    assert guests or home.path.stat().st_mode & 0o077 == 0
    for path in [place.path, *place.path.rglob("*")]:
        others = path.stat().st_mode & 0o077
        assert others == (of_directories if path.is_dir() else 0), path


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"burst_id": 1}'])
def test_a_damaged_record_is_no_record(
    damage: str, home: ProviderDirectory, spec: BurstSpec
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
    said: bytes, told: str, home: ProviderDirectory, spec: BurstSpec
) -> None:
    home.burst(spec.burst_id).make(spec, "")
    follower = home.burst(spec.burst_id).follower(spec.hosts[0])
    assert follower.last_words() == ""
    follower.log.write_bytes(said)
    assert follower.last_words() == told
