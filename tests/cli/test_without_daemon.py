# SPDX-License-Identifier: MIT
"""What `burst status`, `explain`, `plan` and `doctor` go by without a daemon, or -c."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.model.jobid import format_f58
from tests.cli.cli_harness import DaemonProcess, Desk, burst, open_desk
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance, embedded_instance

Shared = tuple[EmbeddedInstance, Desk, DaemonProcess]
_NONE = "no settings file was read"


@pytest.fixture
def left() -> Iterator[tuple[EmbeddedInstance, Desk, str]]:
    """A burst that its daemon left up."""
    with embedded_instance() as instance, open_desk(instance) as desk:
        with desk.daemon():
            said = desk.run("request", "-N2").lines
        yield instance, desk, said[0].rpartition(" ")[2]


@pytest.fixture
def no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without any settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BURST_CONFIG", raising=False)


def test_the_records_are_shown_and_that_nobody_takes_the_bursts_down(
    left: tuple[EmbeddedInstance, Desk, str],
) -> None:
    instance, desk, name = left
    said = desk.run("status")
    assert said.lines[1].split()[:3] == [name, "local/local", "online"]
    assert said.lines[-1] == (
        "no daemon serves this lead; this is what is on record, and nothing takes"
        f" {name} down: start one (burst daemon)"
    )
    assert desk.run("status", "--json").json["daemon"] is None
    job = instance.submit(nodes=9, command=SLEEP)
    told = desk.run("explain", format_f58(job))
    assert (
        told.lines[0] == f"{format_f58(job)}: sched, 9 whole nodes, 9 slots of 1 core"
    )
    assert told.stderr.startswith("no daemon serves this lead; start one")
    instance.cancel(job)


def test_with_nothing_live_nothing_is_said_to_be_lost(desk: Desk) -> None:
    assert (
        desk.run("status")
        .lines[-1]
        .endswith(
            "this is what is on record, and no burst is live: start one (burst daemon)"
        )
    )


@pytest.mark.usefixtures("no_file")
@pytest.mark.parametrize("command", ["plan", "gc"])
def test_without_daemon_and_file_it_is_said_that_no_provider_is_known(
    command: str, desk: Desk
) -> None:
    assert _NONE in burst(command, "--uri", desk.uri).stderr
    assert _NONE not in desk.run(command).stderr


@pytest.mark.usefixtures("no_file")
def test_the_running_daemons_settings_are_used_where_none_are_named(
    shared: Shared,
) -> None:
    _, desk, _ = shared
    found = burst("doctor", "--uri", desk.uri).stdout
    assert f"{desk.config} is read; providers: local" in found
    planned = burst("plan", "--uri", desk.uri)
    assert planned.lines == ["nothing to burst"]
    assert _NONE not in planned.stderr


@pytest.mark.usefixtures("no_file")
def test_what_the_environment_names_counts_before_the_daemons_file(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, desk, _ = shared
    mine = tmp_path / "mine.toml"
    mine.write_text("[plan]\nshare = false\n")
    monkeypatch.setenv("BURST_CONFIG", str(mine))
    assert f"{mine} is read" in burst("doctor", "--uri", desk.uri).stdout


@pytest.mark.usefixtures("no_file")
def test_doctor_says_that_no_file_was_read_where_there_is_no_daemon(desk: Desk) -> None:
    found = burst("doctor", "--uri", desk.uri).stdout
    assert "there is no settings file; defaults are used" in found
