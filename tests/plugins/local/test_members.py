# SPDX-License-Identifier: MIT
"""Which processes belong to a follower that has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from burst_local.burst_dirs import FollowerDirectory, ProviderDirectory
from burst_local.members import find_members
from burst_local.processes import Process, ProcessIdentity

BORN = ProcessIdentity(812, 5000, "this-boot")
Find = Callable[[ProcessIdentity], list[int]]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Find what is left of a follower, if that process runs in session 812."""
    home = ProviderDirectory(tmp_path, "owner", "local")
    home.open()
    burst = home.burst("burst-0-abc")
    follower = FollowerDirectory(burst.path / "burst-0-0")
    follower.path.mkdir(parents=True)
    follower.record(BORN)

    def found(identity: ProcessIdentity) -> list[int]:
        process = Process(
            identity=identity,
            parent=1,
            group=812,
            session=812,
            # It is a guest's job if this is not root, else one with that FLUX_URI.
            user=0,
            environ={"FLUX_URI": f"local://{follower.path}/local"},
        )
        tags = {"BURST_OWNER": "owner", "BURST_PROVIDER": "local"}
        members = find_members({process.pid: process}, tags, home)
        followers = members.get("burst-0-abc", {}).values()
        return [process.pid for each in followers for process in each.all]

    return found


def test_a_process_in_the_session_of_a_follower_that_has_ended_is_its(
    find: Find,
) -> None:
    assert find(ProcessIdentity(900, 6000, "this-boot")) == [900]


@pytest.mark.parametrize(
    "identity",
    [
        ProcessIdentity(900, 6000, "next-boot"),
        ProcessIdentity(812, 400, "next-boot"),
        ProcessIdentity(812, 6000, "this-boot"),
    ],
)
def test_a_session_after_a_reboot_or_with_the_pid_again_is_another(
    find: Find, identity: ProcessIdentity
) -> None:
    """A system service may lead it, and would keep the burst for ever."""
    assert find(identity) == []
