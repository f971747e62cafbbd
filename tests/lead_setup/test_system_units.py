# SPDX-License-Identifier: MIT
"""The units of a system instance: who runs what, where, and with which rights."""

import shutil
from pathlib import Path

import pytest

from burst.lead_setup.system_units import SystemPlaces, broker_unit, daemon_unit
from tests.support.commands import run_captured
from tests.support.own_name import OWN_NAME

PLACES = SystemPlaces(user="flux", group="hpc")
BROKER = ("/usr/bin/flux", "broker", "--config-path=/etc/flux/burst/broker.toml")
SETTINGS = Path("/etc/flux/burst/burst.toml")


def service(text: str) -> dict[str, list[str]]:
    """Return the settings of [Service], each with all its values."""
    section = (
        text.split("[Service]\n")[1]
        .split("[Install]", maxsplit=1)[0]
        .replace("\\\n", "")
    )
    found: dict[str, list[str]] = {}
    for line in section.replace("\\\n", "").splitlines():
        if line and not line.startswith("#"):
            key, value = line.split("=", 1)
            found.setdefault(key, []).append(value)
    return found


def test_the_broker_runs_as_its_owner_and_its_socket_is_for_all() -> None:
    unit = service(broker_unit(PLACES, BROKER, {"A": "100%"}, quorum=2))
    assert (unit["User"], unit["Group"]) == (["flux"], ["hpc"])
    assert unit["Environment"] == ["A=100%%"]
    (command,) = unit["ExecStart"]
    words = command.split()
    assert words[:3] == list(BROKER)
    for word in ("statedir=/var/lib/flux", "rundir=/run/flux", "broker.quorum=2"):
        assert f"-S{word}" in words
    assert (unit["RuntimeDirectory"], unit["RuntimeDirectoryMode"]) == (
        ["flux"],
        ["0755"],
    )
    assert (unit["StateDirectory"], unit["StateDirectoryMode"]) == (["flux"], ["0700"])
    assert unit["NoNewPrivileges"] == ["no"]


def test_directories_elsewhere_are_made_by_root_for_the_owner() -> None:
    places = SystemPlaces(
        user="flux", group="hpc", run=Path("/srv/run"), state=Path("/srv/state")
    )
    unit = service(broker_unit(places, BROKER, {}, quorum=1))
    assert "RuntimeDirectory" not in unit
    assert unit["ExecStartPre"] == [
        "+install -d -o flux -g hpc -m 0755 /srv/run",
        "+install -d -o flux -g hpc -m 0700 /srv/state",
    ]


def test_a_daemon_with_local_followers_can_start_the_imp() -> None:
    unit = service(
        daemon_unit(PLACES, SETTINGS, Path("/srv/queues"), has_followers=True)
    )
    assert unit["User"] == ["flux"]
    assert unit["Environment"] == ["FLUX_URI=local:///run/flux/local"]
    assert unit["ExecStartPre"] == ["/srv/queues"]
    assert unit["NoNewPrivileges"] == ["no"]
    assert unit["KillMode"] == ["process"]
    assert unit["Delegate"] == ["yes"]
    # What the settings name, where no other user can make it first.
    assert unit["RuntimeDirectory"] == ["burst/flux"]
    assert unit["RuntimeDirectoryMode"] == ["0711"]
    assert unit["RuntimeDirectoryPreserve"] == ["yes"]
    assert str(PLACES.followers) == "/run/burst/flux"
    assert "ProtectSystem" not in unit


def test_any_other_daemon_has_no_privileges() -> None:
    unit = service(daemon_unit(PLACES, SETTINGS, has_followers=False))
    assert unit["NoNewPrivileges"] == ["yes"]
    assert unit["CapabilityBoundingSet"] == [""]
    assert unit["ProtectSystem"] == ["strict"]
    assert unit["ReadWritePaths"] == ["/var/lib/flux"]
    assert "KillMode" not in unit
    # For a socket of [http]: in /run/burst it could make none.
    assert unit["RuntimeDirectory"] == ["burst/flux"]
    assert "RuntimeDirectoryPreserve" not in unit


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@pytest.mark.parametrize("has_followers", [True, False])
def test_systemd_can_read_them(tmp_path: Path, *, has_followers: bool) -> None:
    places = SystemPlaces(user=OWN_NAME, group="root")
    flux = shutil.which("true") or "/bin/true"
    texts = {
        "flux.service": broker_unit(places, (flux, "broker"), {"A": "b c%"}, 1),
        "burst.service": daemon_unit(places, SETTINGS, has_followers=has_followers),
    }
    for wrong in ("", "Nonsense=1\n"):
        for name, text in texts.items():
            path = tmp_path / name
            path.write_text(text.replace("[Install]", f"{wrong}[Install]"))
        paths = [str(tmp_path / name) for name in texts]
        done = run_captured(["systemd-analyze", "verify", "--man=no", *paths])
        found = [path for path in paths if path in done.stderr]
        assert found == (paths if wrong else []), done.stderr
