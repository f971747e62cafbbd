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
    agent: Seconds = Seconds(60)
    """How long the agent of an external member may be silent, 1s to 1d. After that time
    nothing is decided for the member until the agent reports again. Set it to a few
    times `checkSeconds`, the interval of the reports."""

    def check(self, where: str) -> None:
        """Raise ConfigError for a relative path, which would depend on the daemon's
        working directory, and for a value of `agent` that is out of range.
        """
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
