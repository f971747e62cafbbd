# SPDX-License-Identifier: MIT
"""A host's further instance: adopt and unadopt have nothing to do with the first."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tomli_w

from burst.flux_setup.config_files import read_config_files
from burst.flux_setup.install import LIST, apply_files
from burst.flux_setup.setup_files import LEAD_PIECE
from burst.lead_setup.setup_place import directory_places, is_apart, setup_places
from tests.cli.cli_harness import CommandResult, burst
from tests.embedded_instance import short_directory
from tests.lead_setup.adopted_site import BOOTSTRAP, ENTRIES, Site
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

    def adopt_other(self, name: str = "") -> CommandResult:
        words = ("--slot", "burst-0-[0-3]:8", "--provider", "local", "--mode", "queue")
        where = ("--user", USER, "--rundir", str(self.run))
        settings = ("--settings", str(self.other.settings))
        return burst(
            *("lead", "adopt", str(self.other.config / name)),
            *words,
            *where,
            *settings,
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
    assert "\nUnless flux.service starts this instance, install\n" in said.stdout


def install(site: Site, own: Path, piece: Path) -> None:
    """Do what `burst setup` does."""
    frobnicator = own / "frob-burst.py"
    listed = f'[ingest.frobnicator]\nplugins = ["defaults", "{frobnicator}"]\n'
    apply_files(own, {frobnicator: "# ours\n", piece: listed})


SITE = {
    "queues": {"debug": {}},
    "policy": {"jobspec": {"defaults": {"system": {"queue": "debug"}}}},
    "ingest": {"frobnicator": {"plugins": ["defaults", "/site/a.py"]}},
}


@needs_name
def test_setup_puts_its_piece_beside_the_sites_files(host: Host) -> None:
    """Also where the instance does not run: adopt said to restart it."""
    config = host.other.config
    (config / "site.toml").write_text(tomli_w.dumps(SITE))
    host.other.before = host.other.files()
    _, _, commands = host.adopt_other().stdout.partition("\nAs root:\n\n")
    said = burst(*commands.splitlines()[0].split()[1:])
    assert said.status == 0, said.stderr
    ours = config / "burst-setup"
    piece = tomllib.loads((config / LEAD_PIECE).read_text())
    assert set(piece["queues"]) == {"burst", "burst-ready"}
    plugins = piece["ingest"]["frobnicator"]["plugins"]
    listed = ["defaults", "/site/a.py", "constraints"]
    assert plugins == [*listed, str(ours / "frob-burst.py")]
    assert read_config_files(config).tables["policy"] == SITE["policy"]
    assert (ours / "cli/plugins/burst.py").exists()
    assert host.unadopt_other().status == 0
    assert host.other.files() == host.other.before


@needs_name
def test_it_has_to_have_a_directory_for_the_piece(host: Host) -> None:
    file = host.other.config / "flux.toml"
    file.write_text(BOOTSTRAP + ENTRIES)
    host.other.before = host.other.files()
    said = host.adopt_other(file.name)
    assert said.status == 1
    assert said.error.startswith(f"{file}: is a file"), said.error
    assert host.other.files() == host.other.before


def as_link(piece: Path, target: Path) -> None:
    piece.symlink_to(target)


def as_copy(piece: Path, target: Path) -> None:
    piece.write_bytes(target.read_bytes())


@pytest.mark.parametrize("put", [as_link, as_copy])
def test_a_piece_that_was_put_beside_the_sites_files_goes_with_ours(
    host: Host, put: Callable[[Path, Path], None]
) -> None:
    """As where the broker of the host's own instance reads other files than Flux's."""
    site, piece = host.other, host.first.config / LEAD_PIECE
    site.adopt()
    install(site, host.first.setup, piece)
    put(site.config / LEAD_PIECE, piece)
    said = host.unadopt_other()
    assert said.status == 0, said.stderr
    assert f"remove   {site.config / LEAD_PIECE}" in said.lines
    assert not (site.config / LEAD_PIECE).is_symlink()
    assert site.files() == site.before


def test_an_instance_that_loads_what_was_installed_for_the_host_is_its_own(
    host: Host,
) -> None:
    """An earlier adopt printed `burst setup --system` for each instance."""
    site, first = host.other, host.first
    site.adopt(host.run)
    install(site, first.setup, first.config / LEAD_PIECE)
    uri = f"local://{host.run}/local"
    (site.config / LEAD_PIECE).symlink_to(first.config / LEAD_PIECE)
    assert is_apart(setup_places(site.config, uri)), "the host's own has files there"
    for path in (first.hosts, first.config / "resource.toml"):
        path.unlink()
    kept = first.files().keys() - {str(first.config / LEAD_PIECE)}
    said = host.unadopt_other()
    assert said.status == 0, said.stderr
    for path in (first.setup / "frob-burst.py", first.config / LEAD_PIECE):
        assert f"remove   {path}" in said.lines
    assert first.files().keys() == kept - {
        str(first.setup / name) for name in ("frob-burst.py", LIST)
    }
    assert "    systemctl restart flux" in said.lines
    assert site.files() == site.before


def test_an_edited_copy_of_the_piece_is_to_be_removed_by_hand(host: Host) -> None:
    site, piece = host.other, host.first.config / LEAD_PIECE
    site.adopt()
    install(site, host.first.setup, piece)
    (site.config / LEAD_PIECE).write_text(f"{piece.read_text()}# edited\n")
    said = host.unadopt_other()
    assert said.error.startswith(f"{site.config / LEAD_PIECE}: [ingest.frobnicator]")
    assert piece.exists()


@pytest.mark.parametrize("usual", [False, True])
def test_nothing_is_taken_from_the_first(host: Host, usual: bool) -> None:
    run = USUAL if usual else host.run
    host.first.adopt()
    install(host.first, host.first.setup, host.first.config / LEAD_PIECE)
    kept = host.first.files()
    host.other.adopt(run)
    places = directory_places(host.other.config / "burst-setup")
    assert places.config == host.other.config
    install(host.other, places.own, places.config / LEAD_PIECE)
    said = host.unadopt_other()
    assert said.status == 0, said.stderr
    assert host.first.files() == kept
    assert host.other.files() == host.other.before
    assert not places.own.exists()
    assert "systemctl" not in said.stdout
    *_, last = said.lines
    flux = "flux" if usual else f"env FLUX_URI=local://{run}/local flux"
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
