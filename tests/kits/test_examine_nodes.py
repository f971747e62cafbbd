# SPDX-License-Identifier: MIT
from pathlib import Path

import msgspec
import pytest

from burst.kits.examine_nodes import examine_lead, examine_shared_dir
from burst.kits.private_dir import PrivateDirectory
from burst.model.finding import Level
from burst.model.lead import GuestAccess
from tests.builders import identity


def test_a_lead_of_many_users_and_one_with_systemd_are_noted() -> None:
    lead = identity("lead-0,burst-0-[0-1]", owner="o")
    assert list(examine_lead(None)) == list(examine_lead(lead)) == []
    many = msgspec.structs.replace(
        lead, access=GuestAccess(allow_guest_user=True), systemd=True
    )
    users, systemd = examine_lead(many)
    assert users.level is systemd.level is Level.NOTE
    assert users.what.startswith("the lead serves all users")
    assert systemd.what.startswith("the lead has [systemd] enable")


@pytest.mark.parametrize(
    ("base", "what"),
    [
        ("/dev/null", "/dev/null/owner.site: cannot be used: Not a directory"),
        ("/proc/none", "/proc/none/owner.site: cannot be made, since /proc cannot be"),
    ],
)
def test_one_that_cannot_be_is_wrong(base: str, what: str) -> None:
    found = examine_shared_dir(PrivateDirectory(Path(base), "owner", "site"))
    assert found.level is Level.WRONG
    assert found.what.startswith(what)
    assert found.advice


def test_one_of_this_host_alone_is_noted_and_nothing_is_made(tmp_path: Path) -> None:
    home = PrivateDirectory(tmp_path / "a/b", "owner", "site")
    found = examine_shared_dir(home)
    assert found.level is Level.NOTE
    assert found.what.startswith(f"{home.path} is on a file system of this host (")
    assert list(tmp_path.iterdir()) == []


def test_one_that_others_may_write_is_wrong(tmp_path: Path) -> None:
    home = PrivateDirectory(tmp_path, "owner", "site")
    home.path.mkdir(mode=0o755)
    home.path.chmod(0o777)
    found = examine_shared_dir(home)
    assert found.level is Level.WRONG
    assert "others may write there" in found.what
