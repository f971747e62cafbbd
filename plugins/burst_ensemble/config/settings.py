# SPDX-License-Identifier: MIT
"""`[ensemble]`: ensembles that the daemon starts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from burst.config import Settings
from burst.config.convert import PackageTable, Seconds
from burst.errors import ConfigError

_DAY_S = 86400


class EnsembleSettings(PackageTable, frozen=True):
    """`[ensemble]`: ensembles that the daemon starts by itself, each once."""

    files: tuple[str, ...] = ()
    """Absolute paths of ensemble files. The daemon starts each, unless an ensemble of
    its name is on record, whether it runs or has ended: so neither a restart nor an
    upgrade of the daemon nor a change of the file starts it again. A new `name` in the
    file does, or `burst ensemble up FILE` after the end. None by default."""
    environment: Mapping[str, str] = {}
    """Variables that their jobs have beside those that `burst ensemble up` keeps of
    the daemon's environment, or in place of them: PATH, say, where jobs run in another
    image than the daemon. Whoever may read the records can read them: no secrets."""
    in_daemon: bool = True
    """Whether ensembles run in the daemon's process. If not, `burst ensemble run` runs
    them in one of its own, as the same user; they have no members of mode external
    then. A daemon has to be started again for another value."""
    agent: Seconds = Seconds(60)
    """How long the agent of an external member may be silent, 1s to 1d. Past this
    nothing is decided for the member until the agent reports again. Some times
    `checkSeconds`, which is how often it reports."""

    def check(self, where: str) -> None:
        """Raise ConfigError for a path that depends on where the daemon was started."""
        for file in self.files:
            if not Path(file).is_absolute():
                raise ConfigError(
                    f"{where}: ensemble.files: {file!r} is not an absolute path",
                    f'such as "/etc/burst/{Path(file).name or "ensemble.toml"}"',
                )
        if not 1 <= self.agent <= _DAY_S:
            raise ConfigError(
                f"{where}: ensemble.agent: {self.agent} is out of range",
                "at least 1s, at most 1d",
            )


def ensemble_settings(settings: Settings) -> EnsembleSettings:
    """Return `[ensemble]` of the settings."""
    found = settings.packages.get("ensemble", EnsembleSettings())
    assert isinstance(found, EnsembleSettings)
    return found
