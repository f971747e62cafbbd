# SPDX-License-Identifier: MIT
"""`burst lead unadopt` says what it does, and waits for what has to end first."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from burst.config import IntakeSettings
from burst.flux_setup.install import apply_files
from burst.flux_setup.setup_files import (
    LEAD_PIECE,
    IntakeChoice,
    lead_tables,
    single_directory,
)
from burst.lead_setup.site_files import RECORD
from burst.model.jobid import format_f58
from tests.cli.cli_harness import CliHarness, CommandResult, burst
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance, short_directory
from tests.flux_pool import FluxPool
from tests.lead_setup.adopted_site import Site
from tests.support.own_name import OWN_NAME

POINTS = "[burst.leads]\nmismatched = mismatched:connect\n"
LEAD = """\
from burst.errors import LeadError


def connect(uri):
    raise LeadError("the bindings found are of another version")
"""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An adopted site, and a Flux that has its files beside it."""
    with short_directory() as directory:
        site = Site(directory, entries=True)
        monkeypatch.setenv("PATH", str(site.install_flux()), prepend=":")
        site.before = site.files()
        site.adopt()
        yield site


def unadopt(site: Site, where: str = "") -> CommandResult:
    """Undo it where the instance does not run."""
    uri = f"embedded://{site.directory}/none"
    words = ("lead", "unadopt", where or str(site.config), "--uri", uri)
    return burst(*words, "-c", os.devnull)


def test_what_lives_has_to_end_first(
    site: Site, cli: CliHarness, instance: EmbeddedInstance
) -> None:
    config = str(site.config)
    with cli.daemon():
        name = cli.run("request", "-N2").lines[0].rpartition(" ")[2]
        cli.wait_for_state(name, "online")
        job = instance.submit(nodes=9, command=SLEEP)
        refused = cli.run("lead", "unadopt", config)
        assert refused.error.startswith(f"bursts live: {name}; burst down {name}")
        assert refused.stdout == "", "nothing is done"
        cli.run("down", name)
        refused = cli.run("lead", "unadopt", config)
        holds = f"burst holds jobs: {format_f58(job)}; burst release --all"
        assert refused.error == holds
        cli.run("release", "--all")
        refused = cli.run("lead", "unadopt", config)
        assert refused.error.endswith("; systemctl disable --now burst")
    adopted = site.files()
    cli.run("lead", "unadopt", config, "--dry-run")
    assert site.files() == adopted
    said = cli.run("lead", "unadopt", config).lines
    assert "    systemctl restart flux" in said
    assert any("other hosts, also where users only log in" in each for each in said)
    assert site.files() == site.before


def test_bursts_that_a_daemon_left_are_found_on_record(
    site: Site, cli: CliHarness
) -> None:
    with cli.daemon():
        name = cli.run("request", "-N2").lines[0].rpartition(" ")[2]
        cli.wait_for_state(name, "online")
    refused = cli.run("lead", "unadopt", str(site.config))
    assert "systemctl start burst && burst down" in refused.error


def test_it_needs_no_instance_and_says_that_nothing_is_left_to_do(
    site: Site,
) -> None:
    first, again = unadopt(site), unadopt(site)
    assert "the instance is not running" in first.stdout
    assert "systemctl restart flux" in first.stdout
    assert "`burst lead adopt` did nothing here" in again.error
    assert again.stdout == "", "no command is told"
    assert site.files() == site.before


def test_an_instance_that_cannot_be_asked_may_still_run(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mismatched.py").write_text(LEAD)
    info = tmp_path / "mismatched-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mismatched\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    adopted = site.files()
    asked = (str(site.config), "--uri", "mismatched://", "-c", os.devnull)
    refused = burst("lead", "unadopt", *asked)
    assert refused.error == "the bindings found are of another version"
    assert site.files() == adopted


def test_the_instance_that_was_adopted_is_asked(
    site: Site,
    cli: CliHarness,
    instance: EmbeddedInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = site.config / RECORD
    tables = json.loads(record.read_text())
    record.write_text(json.dumps({**tables, "uri": instance.uri}))
    monkeypatch.setenv("FLUX_URI", f"embedded://{site.directory}/none")
    adopted = site.files()
    with cli.daemon():
        refused = burst("lead", "unadopt", str(site.config), "-c", os.devnull)
    assert refused.error.startswith("a daemon serves the instance; ")
    assert site.files() == adopted


def test_files_are_the_same_from_every_directory_and_through_links(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.config)
    assert burst("lead", "add-slot", ".", "burst-1-[0-1]:2").lines
    (tmp_path / "link").symlink_to(site.config)
    assert burst("lead", "add-slot", str(tmp_path / "link"), "burst-2-0:2").lines
    monkeypatch.chdir(site.directory)
    said = unadopt(site, "flux/system/conf.d")
    assert said.status == 0, said.stderr
    assert site.files() == site.before


OURS = {name: {"requires": ["burst"]} for name in ("burst", "burst-ready")}
BATCH = {"batch": {"requires": ["^burst"]}}
DEFAULT = {"jobspec": {"defaults": {"system": {"queue": "batch"}}}}


@pytest.mark.flux
@pytest.mark.parametrize("own", [{}, {"debug": {}}], ids=["ours", "own"])
def test_flux_is_not_to_reload_where_its_queues_have_gone_from_the_files(
    flux_pool: FluxPool, monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    """By `burst setup --remove`, or an unadopt that was interrupted."""
    queues = {**OURS, **(own or BATCH)}
    tables = {"queues": queues, **({} if own else {"policy": DEFAULT})}
    with flux_pool.lend(tables) as instance, short_directory() as directory:
        site = Site(directory, entries=True)
        (site.config / "site.toml").write_text(tomli_w.dumps({"queues": own}))
        monkeypatch.setenv("PATH", str(site.install_flux()), prepend=":")
        site.adopt()
        asked = (str(site.config), "--uri", instance.uri, "-c", os.devnull)
        said = burst("lead", "unadopt", *asked)
    assert said.status == 0, said.stderr
    assert ("config reload" in said.stdout) is bool(own)
    assert ("restart it now" in said.stdout) is not bool(own)


@pytest.mark.parametrize(
    ("own", "reload"), [({}, False), ({"queues": {"debug": {}}}, True)]
)
def test_flux_is_not_to_reload_where_its_last_queues_go(
    site: Site, instance: EmbeddedInstance, own: dict[str, Any], reload: bool
) -> None:
    places = single_directory(site.directory / "flux")
    config = site.config
    (config / "site.toml").write_text(tomli_w.dumps({"access": {}, **own}))
    intake = IntakeSettings(mode="queue")
    choice = IntakeChoice(intake=intake, local_queue="" if own else "batch")
    piece = lead_tables(places, choice)
    apply_files(site.setup, {config / LEAD_PIECE: tomli_w.dumps(piece)})
    asked = (str(site.config), "--uri", instance.uri, "-c", os.devnull)
    said = burst("lead", "unadopt", *asked)
    user = OWN_NAME
    command = f"    runuser -u {user} -- flux config reload --follower-noop"
    assert (command in said.lines) is reload
    assert ("restart it now" in said.stdout) is not reload
