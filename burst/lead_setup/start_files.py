# SPDX-License-Identifier: MIT
"""Writes two scripts of a lead: `start` starts it, `env` is for shells that use it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from burst.kits.atomic_file import write_atomically

_START = """\
#!/bin/sh
# Start the lead's broker on this host, and the daemon with rank 0.
# `start HOST` starts that of another own host, by its name in broker.toml.
case "${{1:-{default}}}" in
{cases}
*)
    echo "$0: no own host of the lead is called ${{1:-{default}}}" >&2
    exit 1
    ;;
esac
"""
_ENV = """\
# What a shell needs to submit jobs to the lead and to look at its bursts: `. {path}`
{lines}
"""


class StartFiles(msgspec.Struct, frozen=True):
    """The paths of the two scripts."""

    start: Path
    env: Path


def write_start_files(
    directory: Path,
    hosts: Sequence[str],
    commands: Sequence[Sequence[str]],
    environment: Mapping[str, str],
) -> StartFiles:
    """Write both scripts to a directory; existing ones are replaced.

    `commands` is the argv of each own host's broker.
    """
    found = StartFiles(directory / "start", directory / "env")
    cases = (
        f"{host})\n    exec {shlex.join(command)}\n    ;;"
        for host, command in zip(hosts, commands, strict=True)
    )
    # If there is only one host, its name need not be that of this machine.
    default = "$(hostname -s)" if hosts[1:] else hosts[0]
    text = _START.format(default=default, cases="\n".join(cases))
    write_atomically(found.start, text)
    found.start.chmod(0o700)
    lines = (f"export {key}={shlex.quote(value)}" for key, value in environment.items())
    path = shlex.quote(str(found.env))
    write_atomically(found.env, _ENV.format(path=path, lines="\n".join(lines)))
    return found
