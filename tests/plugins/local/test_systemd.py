# SPDX-License-Identifier: MIT
"""Followers of a lead whose Flux starts jobs by systemd, with a systemd that is played.

tests/site has the real one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_local.cgroups import Units

from burst.errors import Refused
from burst.model.finding import Level
from burst.provider import BurstSpec
from tests.plugins.local.harness import LocalHarness
from tests.support.fluxlead import short_directory
from tests.support.waiting import wait_until


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with short_directory() as path:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
        yield path


@pytest.fixture
def bus(runtime: Path) -> Iterator[Path]:
    """Give the directory of a user with a bus."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(runtime / "bus"))
        yield runtime


@pytest.fixture
def spec(local: LocalHarness) -> BurstSpec:
    plain = local.spec(nodes=1)
    lead = msgspec.structs.replace(plain.lead, systemd=True)
    return msgspec.structs.replace(plain, lead=lead)


def test_followers_are_told_where_the_bus_is(
    local: LocalHarness, spec: BurstSpec, bus: Path
) -> None:
    local.script = "echo at $XDG_RUNTIME_DIR $DBUS_SESSION_BUS_ADDRESS; exec sleep 99"
    provider = local.provider()
    provider.provision(spec)
    expected = [f"at {bus} unix:path={bus}/bus\n"]
    wait_until(lambda: local.logs(spec) == expected, lambda: local.logs(spec))
    [found] = [each for each in provider.examine(spec.lead) if "[systemd]" in each.what]
    assert found.level is Level.NOTE
    assert "only once no job runs on this host" in found.what
    assert "drain the host's own node where housekeeping" in found.what
    local.reap_all(provider, spec.burst_id)


@pytest.mark.usefixtures("runtime")
def test_without_a_bus_nothing_is_started(local: LocalHarness, spec: BurstSpec) -> None:
    provider = local.provider()
    with pytest.raises(Refused, match="no systemd here") as refused:
        provider.provision(spec)
    assert "loginctl enable-linger" in refused.value.advice
    assert not provider.observe()
    [found] = [each for each in provider.examine(spec.lead) if "[systemd]" in each.what]
    assert found.level is Level.WRONG
    plain = msgspec.structs.replace(spec.lead, systemd=False)
    assert "[systemd]" not in str(provider.examine(plain))


class PlayedUnit:
    """A job's unit, of the follower with this rundir."""

    def __init__(self, runtime: Path, cgroups: Path, rundir: Path, number: int) -> None:
        name = f"imp-shell-2-f{number}.service"
        files = runtime / "systemd" / "transient"
        files.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(
            f'[Service]\nEnvironment="HOME=/" "FLUX_URI=local://{rundir}/local"\n'
        )
        user = os.geteuid()
        above = f"user.slice/user-{user}.slice/user@{user}.service/app.slice"
        self.group = cgroups / above / name
        self.group.mkdir(parents=True)
        self.populate(1)

    def populate(self, populated: int) -> None:
        (self.group / "cgroup.events").write_text(f"populated {populated}\nfrozen 0\n")

    @property
    def killed(self) -> bool:
        return (self.group / "cgroup.kill").exists()


def test_units_of_a_killed_follower_alone_are_killed(tmp_path: Path) -> None:
    ours, theirs = (
        PlayedUnit(tmp_path / "run", tmp_path / "fs", tmp_path / name, number)
        for number, name in enumerate(("burst-0-0", "burst-0-01"))
    )
    units = Units(tmp_path / "run", tmp_path / "fs")
    assert not units.kill([tmp_path / "burst-0-0"])
    assert ours.killed
    assert not theirs.killed
    ours.populate(0)
    assert units.kill([tmp_path / "burst-0-0"])
    assert not theirs.killed


@pytest.mark.usefixtures("bus")
def test_an_excluded_host_is_not_told_so(local: LocalHarness, spec: BurstSpec) -> None:
    provider = local.provider()
    [told] = [e for e in provider.examine(spec.lead) if "[systemd]" in e.what]
    assert "by [resource] exclude" in told.advice
    lead = msgspec.structs.replace(spec.lead, excluded=frozenset({0}))
    [found] = [e for e in provider.examine(lead) if "[systemd]" in e.what]
    assert "only once no job runs on other followers" in found.what
    assert "own node" not in found.what
    assert found.advice == "use another provider for more than a trial"
