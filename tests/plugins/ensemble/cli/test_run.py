# SPDX-License-Identifier: MIT
"""`burst ensemble up, status, down` by a daemon and an embedded lead."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from burst_ensemble.cli.run import print_ensemble
from burst_ensemble.core.report import ensemble_row

from burst.cli.listing import Listing
from tests.cli.cli_harness import CliHarness, burst
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, EnsembleSite, nodes_of
from tests.plugins.ensemble.runtime.far_site import Far
from tests.support.ensemble_story import FILE, ensemble, run_to_its_end
from tests.support.waiting import wait_until


def test_members_grow_run_their_jobs_and_end(cli: CliHarness, tmp_path: Path) -> None:
    with cli.daemon() as daemon:
        found = run_to_its_end(cli, tmp_path)
        assert found["largest"] == 3
        members = found["row"]["members"]
        assert "6 jobs have succeeded" in members["md"]["member"]["why"]
        assert "2 jobs have failed" in members["post"]["member"]["why"]
        assert [row["state"] for row in cli.status()["bursts"]] == ["inactive"] * len(
            cli.status()["bursts"]
        )
        assert "ensemble sweep: md ends" in daemon.log
        lines = cli.run("ensemble", "status").lines
        assert lines[0].startswith("sweep: ended since ")
        assert lines[1].split()[:3] == ["MEMBER", "PROVIDER", "STATE"]
        # What came of it is to be seen after its end, too.
        assert re.match(r"md +local +ended +\S+ +0/0 +6 ended +6 jobs have", lines[2])
        assert re.match(r"post +local +ended +\S+ +0/0 +2 ended \(2 failed\)", lines[3])
        assert members["post"]["member"]["nodes"] == 0


def test_down_ends_it(cli: CliHarness, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    # Its jobs outlast all that is typed here.
    file.write_text(FILE.replace("sleep 1", "sleep 5").replace("= 6", "= 100"))
    with cli.daemon():
        assert cli.run("ensemble", "status").lines == [
            "there is no ensemble; burst ensemble up FILE starts one"
        ]
        assert cli.run("ensemble", "up", str(file)).status == 0
        wait_until(lambda: cli.status()["bursts"], "a burst")
        burst = cli.status()["bursts"][0]["id"]
        resized = cli.run("ensemble", "resize", "sweep", "md", "2").lines
        assert resized == [
            "sweep/md is to have 2 nodes, until its algorithms say otherwise"
        ]
        taken_down = cli.run("down", burst, "--no-wait")
        assert taken_down.stderr.startswith("it has tag sweep/md: what requested it")
        assert "there already" in cli.run("ensemble", "up", str(file)).error
        down = cli.run("ensemble", "down", "sweep", "--note", "enough")
        assert down.lines == [
            "ensemble sweep is being taken down",
            "ensemble sweep has ended; nothing of it is left",
        ]
        assert ensemble(cli)["why"] == "enough"
        assert "there is no ensemble x" in cli.run("ensemble", "down", "x").error


def test_check_without_settings_asks_the_daemon_for_its_providers(
    cli: CliHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BURST_CONFIG", raising=False)
    file = tmp_path / "sweep.toml"
    file.write_text(FILE)
    check = ("ensemble", "check", str(file), "--uri", cli.uri)
    assert "the settings have no provider" in burst(*check).error
    with cli.daemon():
        assert "local" in burst(*check).lines[2]
        file.write_text(FILE.replace('"local"', '"local"\nmode = "isolated"'))
        refused = "provider local makes no isolated bursts"
        assert refused in burst(*check).error
        assert refused in cli.run("ensemble", "up", str(file)).error


def test_of_an_isolated_member_the_nodes_that_are_paid_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = Far()
    site.wants(3, "md", "wide", "wide")
    site.step(3)
    (row,) = site.rows()
    print_ensemble(row, Listing())
    line = capsys.readouterr().out.splitlines()[2]
    assert re.search(r"a +local +running +\S+ +3/3 +1 wait, 2 run, 0 ended", line)
    site.end_programs()
    site.sim.tick(4)
    (row,) = site.rows()
    print_ensemble(row, Listing())
    assert " 0/3 " in capsys.readouterr().out


def test_of_a_member_that_ends_its_jobs_and_what_it_waits_for_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = EnsembleSite()
    jobs = [{"name": "md", "command": "run", "count": 0}]
    site.up(members=[{**MEMBER, "jobs": jobs}])
    site.once("md")
    site.step(2)
    (job,) = site.sim.lead.running()

    def line() -> str:
        (row,) = site.rows()
        print_ensemble(row, Listing())
        return capsys.readouterr().out.splitlines()[2]

    site.down()
    site.step()
    assert re.search(
        r" ending +\S+ +1/0 +0 wait, 1 run, 0 ended +by hand; waiting for", line()
    )
    site.end_job(job)
    site.step(3)
    assert re.search(r" ended +\S+ +0/0 +1 ended +by hand", line())


def test_without_a_daemon_the_nodes_that_are_up_are_not_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = EnsembleSite()
    site.up(members=[MEMBER])
    site.step(2)
    nodes = msgspec.structs.replace(nodes_of(site.sim), is_read=False)
    one = site.store.read()["sweep"]
    print_ensemble(ensemble_row(one, nodes, {}), Listing())
    assert re.search(r" running +\S+ +\?/1 +0 ended", capsys.readouterr().out)
