# SPDX-License-Identifier: MIT
"""A host's further instance: adopt and unadopt have nothing to do with the first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from burst.flux_setup.install import apply_files
from burst.flux_setup.setup_files import LEAD_PIECE, single_directory
from burst.lead_setup.setup_place import is_apart, setup_places
from tests.cli.cli_harness import CommandResult, burst
from tests.embedded_instance import short_directory
from tests.lead_setup.adopted_site import Site
from tests.support.own_name import OWN_NAME, needs_name

# Whom root can give files to, or whoever runs this.
USER = OWN_NAME if os.geteuid() else "nobody"
USUAL = Path("/run/flux")


class Host:
    """Two instances; Flux looks for the files of the first by itself."""

    def __init__(self, directory: Path) -> None:
        for name in ("first", "other"):
            (directory / name).mkdir()
        self.first = Site(directory / "first", entries=True)
        self.other = Site(directory / "other", entries=True)
        self.run = directory / "run"

    def adopt_other(self) -> CommandResult:
        words = ("--slot", "burst-0-[0-3]:8", "--provider", "local", "--mode", "queue")
        where = ("--user", USER, "--rundir", str(self.run))
        settings = ("--settings", str(self.other.settings))
        return burst(
            *("lead", "adopt", str(self.other.config)), *words, *where, *settings
        )

    def unadopt_other(self) -> CommandResult:
        """Undo it while none runs."""
        asked = ("--uri", f"embedded://{self.run}/none", "-c", os.devnull)
        return burst("lead", "unadopt", str(self.other.config), *asked)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with short_directory() as directory:
        host = Host(directory)
        monkeypatch.setenv("PATH", str(host.first.install_flux()), prepend=":")
        yield host


@needs_name
def test_its_commands_name_it(host: Host) -> None:
    said = host.adopt_other()
    assert said.status == 0, said.stderr
    _, _, commands = said.stdout.partition("\nAs root:\n\n")
    uri, config, settings = (
        f"local://{host.run}/local",
        host.other.config,
        host.other.settings,
    )
    assert commands.splitlines() == [
        f"    burst setup --dir {config}/burst-setup --uri {uri} --mode queue"
        f" -c {settings}",
        f"    burst lead check {config} --uri {uri}",
        f"    runuser -u {USER} -- burst doctor -c {settings} --uri {uri}",
    ]
    assert "name there the unit that starts\nthis instance" in said.stdout


def install(site: Site, own: Path, piece: Path) -> None:
    """Do what `burst setup` does."""
    frobnicator = own / "frob-burst.py"
    listed = f'[ingest.frobnicator]\nplugins = ["defaults", "{frobnicator}"]\n'
    apply_files(own, {frobnicator: "# ours\n", piece: listed})


@pytest.mark.parametrize("run", ["run", USUAL])
def test_nothing_is_taken_from_the_first(host: Host, run: Path) -> None:
    host.first.adopt()
    install(host.first, host.first.setup, host.first.config / LEAD_PIECE)
    kept = host.first.files()
    host.other.adopt(host.run / run)
    places = single_directory(host.other.config / "burst-setup")
    install(host.other, places.own, places.config / LEAD_PIECE)
    said = host.unadopt_other()
    assert said.status == 0, said.stderr
    assert host.first.files() == kept
    assert host.other.files() == host.other.before
    assert not places.own.exists()
    assert "systemctl" not in said.stdout
    *_, last = said.lines
    flux = "flux" if run is USUAL else f"env FLUX_URI=local://{host.run}/run/local flux"
    assert last == f"    {flux} kvs unlink -Rf burst"


def test_the_hosts_own_instance_may_have_its_files_or_its_socket_elsewhere(
    host: Host,
) -> None:
    usual = f"local://{USUAL}/local"
    file = host.other.directory / "flux.toml"
    for place, uri, apart in (
        (host.first.config, f"local://{host.run}/local", False),
        (host.first.config / "net.toml", f"local://{host.run}/local", False),
        (file, usual, False),
        (host.other.config, usual, False),
        (host.other.config, f"local://{host.run}/local", True),
        (file, f"local://{host.run}/local", True),
    ):
        assert is_apart(setup_places(place, uri)) is apart, (place, uri)
    host.first.adopt()
    assert is_apart(setup_places(host.other.config, usual)), "that is another's"
