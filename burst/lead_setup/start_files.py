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
# A second broker would clear the directory of the first one's socket: nothing could
# reach the lead any more.
_UNLESS_RUNNING = """\
if FLUX_URI={uri} flux getattr rank >/dev/null 2>&1; then
        echo "$0:" {told} >&2
        exit 1
    fi
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
    uri: str,
    environment: Mapping[str, str],
) -> StartFiles:
    """Write both scripts to a directory; existing ones are replaced.

    `commands` is the argv of each own host's broker; the first one is that of rank 0,
    which serves `uri`.
    """
    found = StartFiles(directory / "start", directory / "env")
    env = shlex.quote(str(found.env))
    told = shlex.quote(f"the lead runs already; to use it: . {env}")
    first = _UNLESS_RUNNING.format(uri=shlex.quote(uri), told=told)
    cases = (
        f"{host})\n    {'' if number else first}exec {shlex.join(command)}\n    ;;"
        for number, (host, command) in enumerate(zip(hosts, commands, strict=True))
    )
    # If there is only one host, its name need not be that of this machine.
    default = "$(hostname -s)" if hosts[1:] else hosts[0]
    text = _START.format(default=default, cases="\n".join(cases))
    write_atomically(found.start, text)
    found.start.chmod(0o700)
    values = {"FLUX_URI": uri, **environment}
    lines = (f"export {key}={shlex.quote(value)}" for key, value in values.items())
    write_atomically(found.env, _ENV.format(path=env, lines="\n".join(lines)))
    return found
