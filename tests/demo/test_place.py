# SPDX-License-Identifier: MIT
import tempfile

import pytest

from burst.config import load
from burst.demo.place import count_below, make_place
from burst.embedded.boot import read_broker_config, read_nodes
from tests.demo.scratch import short_directory


@pytest.fixture
def place(monkeypatch):
    with short_directory() as directory:
        monkeypatch.setattr(tempfile, "tempdir", str(directory))
        yield make_place()


def test_the_directory_is_where_temporary_files_are_and_open_to_nobody_else(place):
    assert str(place.directory.parent) == tempfile.gettempdir()
    assert place.directory.stat().st_mode & 0o077 == 0


def test_a_directory_with_a_long_name_leaves_no_room_for_sockets(monkeypatch, tmp_path):
    long = tmp_path / ("x" * 50)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    place = make_place()
    place.remove()

    assert str(place.directory).startswith("/tmp/burst-demo-")


def test_the_lead_has_two_nodes_and_two_rank_slots(place):
    files = place.write_lead()
    boot = read_broker_config(files.config, "lead-0")

    names = [node.host for node in read_nodes(files.config, boot.hosts)]
    assert names[:2] == ["lead-0", "lead-1"]
    assert names[2:] == [f"burst-{slot}-{n}" for slot in (0, 1) for n in range(4)]
    assert place.write_lead() == files


def test_the_settings_are_such_as_a_user_could_write(place):
    place.write_settings("embedded:///x/control", "hold")

    settings = load(place.settings)

    assert settings.lead.uri == "embedded:///x/control"
    assert settings.daemon.on_stop == "reap"
    assert settings.providers["local"].options["dir"] == str(place.followers)


def test_everything_is_counted_and_removed(place):
    assert count_below(place.directory) == 0
    (place.directory / "a" / "b").mkdir(parents=True)
    (place.directory / "a" / "c").touch()

    assert count_below(place.directory) == 3
    place.remove()
    assert count_below(place.directory) == 0
