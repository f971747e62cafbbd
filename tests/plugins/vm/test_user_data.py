# SPDX-License-Identifier: MIT
"""The user data that a VM gets, as cloud-init and systemd read it."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import msgspec
import pytest
import yaml
from burst_vm.user_data import HOME, LONGEST

from burst.errors import Refused
from tests.plugins.vm.fake_cloud import FakeCloud
from tests.plugins.vm.hypervisor import commands, written
from tests.support.waiting import HANG_S

UNITS = Path("/etc/systemd/system")


def user_data(cloud: FakeCloud, lease_end: float = 5000.0, **changes: str) -> str:
    """Return the user data of a VM of a burst that ends so."""
    spec = msgspec.structs.replace(cloud.spec(1), lease_end=lease_end)
    provider = cloud.provider(**changes)
    provider.provision(spec)
    text: str = cloud.asked[-1]["ex_userdata"]
    return text


def test_it_is_what_cloud_init_reads(cloud: FakeCloud) -> None:
    text = user_data(cloud)
    assert text.startswith("#cloud-config\n")
    assert len(text.encode()) < LONGEST / 2
    parsed = yaml.safe_load(text)
    assert set(parsed) == {"write_files", "runcmd"}
    assert {entry["permissions"] for entry in parsed["write_files"]} == {"0600"}
    assert set(written(text)) == {
        Path(HOME) / "fetch.py",
        Path(HOME) / "handover.json",
        UNITS / "burst-follower.service",
        UNITS / "burst-end.service",
    }
    started = parsed["runcmd"][-1]
    assert {"burst-end.service", "burst-follower.service"} <= set(started)


def test_the_script_in_it_is_python_of_older_releases_too(cloud: FakeCloud) -> None:
    script = written(user_data(cloud))[Path(HOME) / "fetch.py"]
    compile(script, "fetch.py", "exec", dont_inherit=True)
    assert "import burst" not in script
    assert "match " not in script


def test_the_follower_starts_as_its_user_after_the_fetch(cloud: FakeCloud) -> None:
    unit = written(user_data(cloud, user="flux"))[UNITS / "burst-follower.service"]
    assert "\nUser=flux\n" in unit
    found = commands(unit)
    fetch, handover = f"{HOME}/fetch.py", f"{HOME}/handover.json"
    assert found["ExecStartPre"] == ["/usr/bin/python3", fetch, handover]
    assert found["ExecStart"] == ["/bin/sh", f"{HOME}/start", "burst-0-0"]


@pytest.mark.parametrize(
    ("state", "powers_off"),
    [("running", True), ("degraded", True), ("stopping", False)],
)
def test_the_end_of_the_follower_powers_off_and_a_reboot_does_not(
    cloud: FakeCloud, tmp_path: Path, state: str, powers_off: bool
) -> None:
    unit = written(user_data(cloud))[UNITS / "burst-follower.service"]
    off = run(tmp_path, commands(unit)["ExecStopPost"], state)
    assert off is powers_off


@pytest.mark.parametrize(
    ("left", "powers_off"), [(-120, True), (3600, False), (None, False)]
)
def test_it_powers_off_after_the_lease_whatever_happened(
    cloud: FakeCloud, tmp_path: Path, left: float | None, powers_off: bool
) -> None:
    cloud.now = time.time() - 7200
    end = 0.0 if left is None else time.time() + left
    unit = written(user_data(cloud, end))[UNITS / "burst-end.service"]
    assert ("Restart=always" in unit) is (left is not None)
    command = commands(unit)["ExecStart"]
    assert run(tmp_path, command, "running", ends=powers_off) is powers_off


def test_it_tries_to_power_off_again_and_again(cloud: FakeCloud) -> None:
    unit = written(user_data(cloud))[UNITS / "burst-end.service"]
    lines = unit.splitlines()
    head = lines[: lines.index("[Service]")]
    assert "StartLimitIntervalSec=0" in head, "systemd reads it in [Unit] alone"
    assert {"Restart=always", "RestartSec=5"} <= set(lines)


def run(place: Path, command: list[str], state: str, *, ends: bool = True) -> bool:
    """Run a unit's command until it ends, and one that does not for two seconds.

    Return whether it powers off.
    """
    program = place / "bin/systemctl"
    program.parent.mkdir()
    lines = ["#!/bin/sh", f'[ "$1" = is-system-running ] && echo {state} && exit']
    lines += [f'echo "$@" >> {place}/called']
    program.write_text("\n".join(lines) + "\n")
    program.chmod(0o755)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    process = subprocess.Popen(command, env=environment)
    try:
        process.wait(HANG_S if ends else 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    called = place / "called"
    return called.exists() and "poweroff" in called.read_text()


def test_a_sites_template_takes_its_place(cloud: FakeCloud) -> None:
    marks = ("fetch", "handover", "follower_unit", "end_unit")
    template = cloud.path / "template.yaml"
    entries = "".join(f"  - {{{{{mark}}}}}\n" for mark in marks)
    template.write_text(f"#cloud-config\nmounts: [[a, b]]\nwrite_files:\n{entries}")
    text = user_data(cloud, user_data=str(template))
    assert yaml.safe_load(text)["mounts"] == [["a", "b"]]
    assert len(written(text)) == 4


MARKS = "{{fetch}} {{handover}} {{follower_unit}} {{end_unit}}"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, r"template\.yaml"),
        ("#cloud-config\n", r"template\.yaml"),
        ("{{fetch}} {{handover}} {{other}}", r"template\.yaml"),
        (MARKS + "#" * LONGEST, "bytes"),
    ],
    ids=["none", "without marks", "a mark of no meaning", "too long for a cloud"],
)
def test_a_template_that_cannot_be_used_is_refused(
    cloud: FakeCloud, text: str | None, why: str
) -> None:
    template = cloud.path / "template.yaml"
    if text is not None:
        template.write_text(text)
    with pytest.raises(Refused, match=why):
        user_data(cloud, user_data=str(template))
    assert cloud.asked == []
