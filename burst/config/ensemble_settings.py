# SPDX-License-Identifier: MIT
"""`[ensemble]`: ensembles that the daemon starts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from burst.config.convert import Table
from burst.errors import ConfigError


class EnsembleSettings(Table, frozen=True):
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


def check_ensemble(settings: EnsembleSettings, where: str) -> None:
    """Raise ConfigError for a path that depends on where the daemon was started."""
    for file in settings.files:
        if not Path(file).is_absolute():
            raise ConfigError(
                f"{where}: ensemble.files: {file!r} is not an absolute path",
                f'such as "/etc/burst/{Path(file).name or "ensemble.toml"}"',
            )
