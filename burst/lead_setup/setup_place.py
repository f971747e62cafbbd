# SPDX-License-Identifier: MIT
"""Where `burst setup` has its files for an adopted instance.

Flux looks by itself in one place for the files of a host. A host may have another
instance, such as one for tests, with a configuration and a socket of its own: its files
are apart, so that neither instance has or loses those of the other.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from burst.flux.frobnicator import NAME
from burst.flux_setup.setup_files import (
    FluxDirectories,
    single_directory,
    system_directories,
)
from burst.flux_setup.site_tables import names_frobnicator, site_files
from burst.lead_setup.site_files import record_path
from burst.lead_setup.system_units import USUAL_URI

_APART = "burst-setup"


def setup_places(place: Path, uri: str) -> FluxDirectories:
    """Return the directories for an instance. Raises ConfigError without a Flux.

    `place` is its configuration, a directory or a file, `uri` where it has its socket.
    They are those in which Flux looks, or one that is `is_apart`.
    """
    system = system_directories()
    own = system.config.resolve()
    if own in {place.resolve(), *place.resolve().parents}:
        return system
    # Flux can be started with a file, or with files elsewhere.
    usual = uri in {"", USUAL_URI} or _loads_from(system, place)
    if usual and not record_path(system.config).exists():
        return system
    return _apart(record_path(place).parent)


def directory_places(directory: Path) -> FluxDirectories:
    """Return the directories for `burst setup --dir`."""
    directory = directory.absolute()
    place = directory.parent
    if directory.name == _APART and record_path(place).exists():
        return _apart(place)
    return single_directory(directory)


def is_apart(places: FluxDirectories) -> bool:
    """Tell whether the instance is not the one whose files Flux finds by itself."""
    return bool(places.environment)


def _loads_from(system: FluxDirectories, place: Path) -> bool:
    """Tell whether what is installed for the host is for the instance at `place`."""
    if not names_frobnicator(place, system.own / NAME):
        return False
    # Else it may be a copy of the configuration of the host's own instance.
    files = site_files(system)
    return files is None or not files.files


def _apart(place: Path) -> FluxDirectories:
    # The broker reads the lead's piece beside the site's files.
    return msgspec.structs.replace(single_directory(place / _APART), config=place)
