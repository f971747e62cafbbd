# SPDX-License-Identifier: MIT
"""`[ensemble]`: ensembles that the daemon starts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from burst.config import Settings
from burst.config.convert import PackageTable
from burst.errors import ConfigError


class EnsembleSettings(PackageTable, frozen=True):
    """`[ensemble]`: ensembles that the daemon starts by itself, each once."""

    files: tuple[str, ...] = ()
    """Absolute paths of ensemble files. The daemon starts each, unless an ensemble of
    its name is on record, running or ended: a restart or upgrade of the daemon or a
    change of the file does not start it again. A new `name` in the file does, or
    `burst ensemble up FILE` after the end. None by default."""
    environment: Mapping[str, str] = {}
    """Environment variables of their jobs. They add to or replace those that `burst
    ensemble up` keeps of the daemon's environment: PATH, say, if jobs run in another
    image than the daemon. Whoever may read the records can read them: no secrets."""
    in_daemon: bool = True
    """Whether ensembles run in the daemon's process. If not, `burst ensemble run` runs
    them in a process of its own, as the same user, and members of mode external are
    refused. A new value takes effect when the daemon is started again."""
    custom: bool = False
    """Whether the `[custom]` commands of ensembles may run. They run as the daemon's
    user, beside the daemon: in a container of its own with the tokens that are mounted
    there. Everyone who can act as the instance owner can start an ensemble: jobs on the
    lead's node that run as the owner, and followers."""
    retired: ClassVar[Mapping[str, str]] = {
        "agent": "remove it: an agent may be silent for six times checkSeconds, and at"
        " least for a minute"
    }

    def check(self, where: str) -> None:
        """Raise ConfigError for a relative path, which would depend on the daemon's
        working directory.
        """
        for file in self.files:
            if not Path(file).is_absolute():
                raise ConfigError(
                    f"{where}: ensemble.files: {file!r} is not an absolute path",
                    f'such as "/etc/burst/{Path(file).name or "ensemble.toml"}"',
                )


def ensemble_settings(settings: Settings) -> EnsembleSettings:
    """Return `[ensemble]` of the settings."""
    found = settings.packages.get("ensemble", EnsembleSettings())
    assert isinstance(found, EnsembleSettings)
    return found
