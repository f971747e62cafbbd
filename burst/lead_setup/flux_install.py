# SPDX-License-Identifier: MIT
"""Finds what a system instance needs of this host's Flux: job shell, IMP, their files.

flux-security reads its configuration from directories that are compiled in, so that no
user can name others (flux-config-security(5)). The IMP's own is in its binary.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from burst.errors import ConfigError
from burst.kits.program import ask_flux

_PATTERN = re.compile(rb"(/[^\0\n]+)/imp/conf\.d/\*\.toml\0")
_NEEDED = (
    "install flux-security, and a flux-core that was built --with-flux-security: other"
    " users' jobs need its signatures and its IMP"
)


class FluxInstall(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of this host's Flux that a system instance's files name."""

    flux: str
    """The `flux` program."""
    shell: str
    """The job shell, which the IMP has to allow."""
    imp: Path
    security: Path
    """Directory above `imp/conf.d` and `security/conf.d`."""

    @property
    def imp_config(self) -> Path:
        """Directory from which the IMP reads, flux-config-security-imp(5)."""
        return self.security / "imp" / "conf.d"

    @property
    def sign_config(self) -> Path:
        """Directory from which job signing reads, flux-config-security-sign(5)."""
        return self.security / "security" / "conf.d"


def find_install(imp: Path | None = None) -> FluxInstall:
    """Return the paths of the `flux` on PATH.

    `imp` is by default where Flux installs it. Raises ConfigError without Flux, without
    flux-security, or without an IMP.
    """
    flux = find_flux()
    if "libflux-security:" not in ask_flux(flux, "version"):
        raise ConfigError(f"{flux} was built without flux-security", _NEEDED)
    path = imp or Path(builtin(flux, "libexecdir")) / "flux-imp"
    shell, confdir = builtin(flux, "shell_path"), Path(builtin(flux, "confdir"))
    security = security_directory(path) or confdir
    return FluxInstall(flux=flux, shell=shell, imp=path, security=security)


def find_flux() -> str:
    """Return the path of the `flux` on PATH. Raises ConfigError without one."""
    flux = shutil.which("flux")
    if flux:
        return flux
    raise ConfigError(
        "there is no flux on PATH",
        "put the directory of the system's flux first on PATH",
    )


def builtin(flux: str, name: str) -> str:
    """Return a path that is compiled into Flux, flux-config(1). Raises ConfigError."""
    return ask_flux(flux, "config", "builtin", name).strip()


def security_directory(imp: Path) -> Path | None:
    """Return the directory of flux-security's files that this IMP reads.

    None if the binary does not contain it, or may be run but not read: then it is most
    likely Flux's own directory. Raises ConfigError if there is no IMP.
    """
    if not imp.is_file():
        raise ConfigError(
            f"there is no IMP at {imp}", f"{_NEEDED}; or name its path with --imp"
        )
    try:
        found = _PATTERN.search(imp.read_bytes())
    except PermissionError:
        return None
    return Path(os.fsdecode(found[1])) if found else None


def read_tables(directory: Path) -> dict[str, Mapping[str, Any]]:
    """Return the tables of all TOML files in a directory, by the file's path.

    Empty for a directory that does not exist. Raises ConfigError.
    """
    read: dict[str, Mapping[str, Any]] = {}
    for path in sorted(directory.glob("*.toml")):
        try:
            read[str(path)] = tomllib.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: cannot be read: {error}") from error
    return read
