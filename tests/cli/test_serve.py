# SPDX-License-Identifier: MIT
"""`burst daemon` as a process: how it is stopped, reloaded, killed and gone on with."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from burst.config.file import VARIABLE
from burst.kits import certificate
from burst.model.lead import JobState
from tests.cli.cli_harness import CliHarness, DaemonProcess, burst
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance
from tests.support.waiting import wait_until

STOPPED = "stopped; live bursts: 1, held jobs: 0; all stay as they are"


def bring_up(cli: CliHarness, nodes: int = 2) -> str:
    """Ask for a burst and return its id once it is online; the cli reaps it."""
    return cli.run("request", f"-N{nodes}").lines[0].rpartition(" ")[2]


@contextmanager
def settings(cli: CliHarness, **tables: Mapping[str, Any]) -> Iterator[None]:
    """Have these settings in the file for a while."""
    cli.write(**tables)
    try:
        yield
    finally:
        cli.write()


def hang_up(daemon: DaemonProcess, text: str, since: int) -> str:
    """Send SIGHUP and return the line with that text once it is logged."""
    daemon.process.send_signal(signal.SIGHUP)

    def heard() -> list[str]:
        return [line for line in daemon.log[since:].splitlines(True) if text in line]

    wait_until(lambda: "".join(heard()).endswith("\n"), f"{text!r} in the log")
    (line,) = heard()
    return line


def refused(cli: CliHarness) -> str:
    """Start a daemon that ends at once, and return the one line that it says."""
    daemon = DaemonProcess(cli)
    assert daemon.wait() == 1
    (line,) = daemon.log.splitlines()
    assert line.startswith("burst: ERROR: ")
    return line.removeprefix("burst: ERROR: ")


def test_a_stop_leaves_bursts_alone_and_a_new_daemon_goes_on_with_them(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    with cli.daemon() as daemon:
        burst_id = bring_up(cli)
        assert daemon.end(signal.SIGTERM) == 0
        assert STOPPED in daemon.log
        assert "Traceback" not in daemon.log
    job = instance.submit(nodes=2)
    assert "no daemon serves this lead" in cli.run("status").stdout
    with cli.daemon() as second:
        wait_until(lambda: instance.info(job).state is JobState.INACTIVE, "the job")
        assert cli.row(burst_id)["state"] == "online"
        done = cli.run("down", burst_id).lines
        assert done[0].startswith(f"{burst_id} is gone after ")
        assert second.end(signal.SIGINT) == 0
        assert "Traceback" not in second.log
    assert list(cli.provider().observe()) == []


def test_where_told_so_a_stop_takes_all_down_first(cli: CliHarness) -> None:
    cli.write(daemon={"on_stop": "reap"})
    with cli.daemon() as daemon:
        bring_up(cli)
        assert daemon.end() == 0
        assert "deleting all bursts, for at most 10m" in daemon.log
        assert "stopped; live bursts: 0, held jobs: 0" in daemon.log
    assert list(cli.provider().observe()) == []


def test_a_second_signal_leaves_what_is_still_being_taken_down(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    cli.write(daemon={"on_stop": "reap"})
    with cli.daemon() as daemon:
        bring_up(cli)
        job = instance.submit(nodes=2, command=SLEEP)
        wait_until(lambda: instance.info(job).state is JobState.RUN, "the job to run")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.says("deleting all bursts")
        assert daemon.end() == 0
        assert "stopped; live bursts: 1" in daemon.log
        assert instance.info(job).state is JobState.RUN
        instance.cancel(job)


def test_a_reload_reads_the_file_that_was_found_at_the_start(cli: CliHarness) -> None:
    found = cli.directory / "home/.config/burst/burst.toml"
    found.parent.mkdir(parents=True)
    found.write_bytes(cli.config.read_bytes())
    others = {k: v for k, v in os.environ.items() if k != VARIABLE}
    env = {**others, "HOME": str(cli.directory / "home"), "FLUX_URI": cli.uri}
    with DaemonProcess(cli, env=env) as daemon:
        daemon.says(" serves ")
        found.rename(found.with_suffix(".bak"))
        missing = f"{found}: cannot be read: No such file or directory"
        assert cli.run("reload").error.startswith(missing)
        assert [provider["name"] for provider in cli.status()["providers"]] == ["local"]
        found.with_suffix(".bak").rename(found)
        assert cli.run("reload").status == 0


def test_a_reload_by_signal_makes_new_settings_count(shared: Shared) -> None:
    _, cli, daemon = shared
    since = len(daemon.log)
    with settings(cli, limits={"max_nodes": 1}):
        hang_up(daemon, f"reloaded {cli.config}", since)
        assert "limit of 1 node in all" in cli.run("request", "-N2").error
    hang_up(daemon, f"reloaded {cli.config}", len(daemon.log))


def test_settings_that_are_wrong_are_told_and_the_old_ones_stay(
    shared: Shared,
) -> None:
    _, cli, daemon = shared
    with settings(cli):
        cli.config.unlink()
        line = hang_up(
            daemon, "not reloaded, the old settings stay in use: ", len(daemon.log)
        )
    assert f"the old settings stay in use: {cli.config}: " in line
    assert "cannot be read: No such file or directory; name another file" in line
    # What a provider offers is asked anew after each reload.
    wait_until(lambda: bool(cli.status()["providers"][0]["offers"]), "its offers")
    assert cli.status()["providers"][0]["offers"][0]["max_nodes"] == 8


@pytest.mark.parametrize("on_stop", ["leave", "reap"])
def test_what_a_lead_leaves_that_is_shut_down_is_taken_down_or_handed_over(
    cli: CliHarness, instance: EmbeddedInstance, on_stop: str
) -> None:
    cli.write(daemon={"on_stop": on_stop})
    with cli.daemon() as daemon:
        burst_id = bring_up(cli, 2)
        instance.stop()
        assert daemon.wait() == 1
    told = f"{burst_id} of provider local: to delete what is left,"
    if on_stop == "reap":
        assert f"{burst_id} of provider local: it is gone" in daemon.log
        assert told not in daemon.log
        return
    line = daemon.log.split(f"{told} without the lead: ")[-1].splitlines()[0]
    assert str(cli.config) in line
    done = burst(*shlex.split(line)[1:])
    assert f"{burst_id} of provider" in done.stderr
    assert " is gone" in done.stderr
    assert burst(*shlex.split(line)[1:]).stdout.startswith("nothing is left in ")


def test_a_second_daemon_is_told_who_serves_the_lead(shared: Shared) -> None:
    _, cli, daemon = shared
    error = refused(cli)
    assert f"another daemon serves this lead: pid {daemon.process.pid} on " in error
    assert error.endswith("; stop that one first: one daemon serves a lead")
    assert cli.run("status").status == 0


def test_the_log_may_be_json_and_holds_no_secret(
    cli: CliHarness, instance: EmbeddedInstance
) -> None:
    cli.write(daemon={"log": "json"})
    with cli.daemon() as daemon:
        burst_id = bring_up(cli, 1)
        cli.run("down", burst_id)
        daemon.says('"undrain"')
        assert daemon.end() == 0
    lines = [json.loads(line) for line in daemon.log.splitlines()]
    about = [line for line in lines if line["context"].get("about") == burst_id]
    assert [line["name"] for line in about][:1] == ["submit"]
    assert [line["name"] for line in about][-2:] == ["reaped", "undrain"]
    secret = certificate.read(instance.directory / "curve.cert").secret.decode()
    assert secret not in daemon.log
