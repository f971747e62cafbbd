# SPDX-License-Identifier: MIT
"""Reads the parts of a site's own configuration to which `burst setup` adds."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux.frobnicator import NAME
from burst.flux.identity import default_queue
from burst.flux_setup.config_files import ConfigFiles, read_config_files, read_tables
from burst.flux_setup.install import Change, FileStep
from burst.flux_setup.setup_files import LEAD_PIECE, FluxDirectories
from burst.model.confinement import LENT

FLUX_PLUGINS = ("defaults", "constraints")
"""Flux's own list of frobnicators, if the site has none (flux-config-ingest(5))."""


class SiteTables(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration without what `burst setup` has added to it."""

    queues: Mapping[str, Any] = {}
    """The site's named queues, flux-config-queues(5)."""
    plugins: tuple[str, ...] = FLUX_PLUGINS
    """The site's frobnicators, in their order."""
    default_queue: str = ""
    """The queue of jobs that name none; empty if the site has no such queue."""
    verify: Mapping[str, str] = {}
    """Keys of `[resource.verify]` with which Flux does not drain followers on a host of
    another name, such as those on the lead's own host; empty if none are needed."""

    @property
    def default_limits(self) -> Mapping[str, Any]:
        """`policy.limits` of the default queue, flux-config-policy(5)."""
        queue = self.queues.get(self.default_queue, {})
        limits: Mapping[str, Any] = queue.get("policy", {}).get("limits", {})
        return limits


def site_tables(config: Mapping[str, Any], ours: Mapping[str, Any]) -> SiteTables:
    """Return the site's part of a configuration; `ours` are the tables we wrote."""
    names = config.get("queues", {}).keys() - ours.get("queues", {}).keys()
    queues = {name: config["queues"][name] for name in sorted(names)}
    table = config.get("ingest", {}).get("frobnicator", {})
    listed = table.get("plugins", FLUX_PLUGINS)
    default = default_queue(config)
    return SiteTables(
        queues=queues,
        plugins=tuple(str(p) for p in listed if os.path.basename(str(p)) != NAME),
        default_queue=default if default in queues else "",
        verify=ours.get("resource", {}).get("verify") or verify_without_names(config),
    )


def verify_without_names(config: Mapping[str, Any]) -> dict[str, str]:
    """Return `[resource.verify]` with which Flux does not compare the names of hosts.

    All else is compared as before (flux-config-resource(5), `parse_verify_config` in
    the resource module). Empty if Flux compares no names already.
    """
    table = config.get("resource", {})
    verify = table.get("verify")
    if table.get("noverify") is True or verify is False:
        return {}
    if verify is None:
        return {"default": "allow-extra", "gpu": "ignore", "hostname": "ignore"}
    if not isinstance(verify, Mapping):
        return {"default": "strict", "hostname": "ignore"}
    mode = verify.get("hostname", verify.get("default", "strict"))
    return {} if mode == "ignore" else {"hostname": "ignore"}


def site_files(places: FluxDirectories) -> ConfigFiles | None:
    """Return the site's files beside which our piece is put; None if there are none.

    Raises ConfigError.
    """
    if not any(places.config.glob("*.toml")):
        return None
    return read_config_files(places.config).without(places.config / LEAD_PIECE)


def our_tables(places: FluxDirectories) -> dict[str, Any]:
    """Return the tables of our installed piece; empty if none. Raises ConfigError."""
    piece = places.config / LEAD_PIECE
    return read_tables(piece) if piece.exists() else {}


def loses_last_queue(
    site: Collection[str], ours: Mapping[str, Any], running: Collection[str]
) -> bool:
    """Tell whether an instance has named queues, and none without our piece.

    `site` are the queues of the site. `ours` are the tables of our piece, which may be
    gone already while the instance still has its queues: `running`, empty if it does
    not run.
    """
    return bool(running or ours.get("queues")) and not site


def queues_of_others(ours: Mapping[str, Any], running: Mapping[str, Any]) -> list[str]:
    """Return the queues of an instance that `burst setup` did not make.

    For where the site's files are not known. Our piece, with the tables `ours`, may be
    gone already.
    """
    names = ours.get("queues", {}).keys()
    return [
        name
        for name, table in running.items()
        if name not in names
        and list(table.get("requires", ())) != [LENT]
        and not is_for_ordinary_jobs(table)
    ]


def is_for_ordinary_jobs(queue: Mapping[str, Any]) -> bool:
    """Tell whether `burst setup` made this queue for the jobs that do not burst."""
    return list(queue.get("requires", ())) == [f"^{LENT}"]


def files_after_ours(files: ConfigFiles) -> list[Path]:
    """Return the later files whose list of frobnicators replaces ours and lacks it."""
    late = (e for e in files.files if os.fsencode(e.path.name) > LEAD_PIECE.encode())
    return [
        each.path
        for each in late
        if (listed := _frobnicators(each.tables)) is not None
        and not any(os.path.basename(name) == NAME for name in listed)
    ]


def check_frobnicator_unused(place: Path, steps: Iterable[FileStep]) -> None:
    """Raise ConfigError if a file that stays names a frobnicator that is removed.

    Flux would refuse every submission: its ingest ends if a plugin does not exist.
    `place` is the instance's configuration, a file or a directory, and `steps` are the
    steps for the files of `burst setup`.
    """
    removed = [each.path for each in steps if each.change is Change.REMOVE]
    # Links are resolved: /etc/flux may be a link to where Flux is installed.
    gone = {path.resolve() for path in removed}
    for path, name in _files_that_name(place, gone):
        if path.resolve() not in gone:
            raise ConfigError(
                f"{path}: [ingest.frobnicator] plugins names {name}, which"
                " is to be removed: Flux would refuse each job that is submitted",
                "remove it from that list, and run this command again",
            )


def check_no_link(place: Path, steps: Iterable[FileStep]) -> None:
    """Raise ConfigError if a link stays that leads to a file that is removed.

    `burst setup` says to put its piece beside broker.toml. `place` is the instance's
    configuration, a file or a directory.
    """
    removed = {each.path.resolve() for each in steps if each.change is Change.REMOVE}
    for path in place.glob("*.toml"):
        if path.is_symlink() and path.resolve() in removed:
            raise ConfigError(
                f"{path}: leads to {path.resolve()}, which is to be removed, and Flux"
                " reads no directory with a link to a file that is gone",
                "remove that link, and run this command again",
            )


def names_frobnicator(place: Path, frobnicator: Path) -> bool:
    """Tell whether the configuration at `place` has this frobnicator in its list.

    Raises ConfigError.
    """
    return any(_files_that_name(place, {frobnicator.resolve()}))


def _files_that_name(
    place: Path, programs: Collection[Path]
) -> Iterator[tuple[Path, str]]:
    """Yield the files that name one of these frobnicators, and the name there."""
    if place.is_file() or any(place.glob("*.toml")):
        for each in read_config_files(place).files:
            for name in _frobnicators(each.tables) or ():
                if Path(name).resolve() in programs:
                    yield each.path, name


def _frobnicators(tables: Mapping[str, Any]) -> list[str] | None:
    """Return the list of frobnicators in a file's tables; None if they have none."""
    table = tables.get("ingest", {}).get("frobnicator", {})
    return [str(name) for name in table["plugins"]] if "plugins" in table else None


def check_names(site: SiteTables, intake: IntakeSettings) -> None:
    """Raise ConfigError if a queue of ours has the name of a queue of the site."""
    if intake.mode != "queue":
        return
    for name in (intake.queue, intake.ready):
        if name in site.queues and site.queues[name].get("requires") != [LENT]:
            raise ConfigError(
                f"the instance already has a queue {name} for other jobs",
                "set another name: queue under [intake] of burst.toml, which"
                " `burst lead adopt` keeps if it is there; or choose another mode",
            )
