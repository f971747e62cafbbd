# SPDX-License-Identifier: MIT
"""The file of subordinate user ids is read anew when it changes."""

from burst.runtime.subuid_file import SubuidFile


def test_it_is_as_the_file_is(tmp_path):
    path = tmp_path / "subuid"
    read = SubuidFile(path)
    assert read.current().owner(100000) == ""
    path.write_text("ann:100000:10\n")
    found = read.current()
    assert found.owner(100000) == "ann"
    assert read.current() is found, "it is not read again"
    # As useradd(8) does: a new file in the place of the old.
    (tmp_path / "new").write_text("ann:100000:10\nbob:100010:10\n")
    (tmp_path / "new").replace(path)
    assert read.current().owner(100010) == "bob"
    path.unlink()
    assert read.current().owner(100010) == ""


def test_what_cannot_be_read_is_as_it_was_and_is_said_once(tmp_path, caplog):
    path = tmp_path / "subuid"
    path.write_text("ann:100000:10\n")
    read = SubuidFile(path)
    read.current()
    path.unlink()
    path.mkdir()
    for _ in range(3):
        assert read.current().owner(100000) == "ann"
    (said,) = caplog.messages
    assert said.startswith(
        "cannot read subordinate user ids, so they stay as they were: "
    )
    path.rmdir()
    path.write_text("bob:100000:10\n")
    assert read.current().owner(100000) == "bob"


def test_one_that_cannot_be_read_at_first_is_said_to_be_unknown(tmp_path, caplog):
    assert SubuidFile(tmp_path).current().owner(100000) == ""
    (said,) = caplog.messages
    assert said.startswith("cannot read subordinate user ids, so they count as users: ")
    # A line that is no text hides no other.
    path = tmp_path / "subuid"
    path.write_bytes(b"\xff\xfe:1:1\nann:100000:10\n")
    assert SubuidFile(path).current().owner(100000) == "ann"
