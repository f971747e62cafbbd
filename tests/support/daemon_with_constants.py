# SPDX-License-Identifier: MIT
"""`burst daemon` with constants that no settings file has, for tests that cannot wait.

python -m tests.support.daemon_with_constants constants.json -c burst.toml
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from burst import log
from burst.cli.target import Target, target_options
from burst.config import Settings
from burst.daemon import Daemon
from tests.builders import with_constants


@click.command()
@click.argument("constants", type=Path)
@target_options
def serve(constants: Path, target: Target) -> None:
    """Serve a lead; the file of constants is read whenever the settings are."""

    def read() -> Settings:
        return with_constants(target.settings(), json.loads(constants.read_text()))

    log.start(target.settings().daemon.log)
    process = Daemon(read, target.find())
    process.handle_signals()
    process.run()


if __name__ == "__main__":
    serve()
