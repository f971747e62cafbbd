# SPDX-License-Identifier: MIT
"""Writes what starts a lead and its daemon: scripts, and a unit of systemd.

`start` starts the lead, `env` is for shells that use it. Flux runs the programs in
FLUX_RC_EXTRA/rc1.d at the end of rc1, on every rank that has them, and waits for them
(flux-broker(1)); systemd restarts what fails, systemd.unit(5).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from burst.kits.atomic_file import write_atomically
from burst.kits.own_command import own_command

_MODPROBE = "FLUX_MODPROBE_PATH_APPEND="
SITE = "${site}"
"""In a command of `start`: where the site has Flux's modprobe look, and a colon."""
_START = """\
#!/bin/sh
# Start the lead's broker on this host, and the daemon with rank 0.
# `start HOST` starts that of another own host, by its name in broker.toml.
site=${{FLUX_MODPROBE_PATH_APPEND:+$FLUX_MODPROBE_PATH_APPEND:}}
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
# A broker removes all SLURM_* from what it runs. SLURM_JWT is left out: a secret.
_REMOVED = ("SLURM_CONF", "SLURM_CONF_SERVER")
_SCRIPT = """\
#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts the daemon with the lead's broker, and again if it fails. One that lost its
# lead looks for it for 5 minutes; the lock keeps a second one waiting meanwhile.
# The lock's file has a line for each stop in order: what waited then starts nothing.
[ "$(flux getattr rank)" = 0 ] || exit 0
(
    stops=$(wc -l <{lock})
    flock 9 || exit 1
    [ "$(wc -l <{lock})" = "$stops" ] || exit 0
    until {daemon} 9>&- >>{log} 2>&1; do
        flux getattr rank >/dev/null 2>&1 || exit 0
        sleep 5
    done
    echo stopped >&9
) 9>>{lock} </dev/null >/dev/null 2>&1 &
"""
_QUEUES = """\
#!/bin/sh
# SPDX-License-Identifier: MIT
# Starts the queue of jobs that do not burst. Named queues are stopped when an instance
# starts for the first time, and later as somebody has left them: so only once.
[ "$(flux getattr rank)" = 0 ] || exit 0
[ -e {once} ] && exit 0
if flux queue start --quiet --queue={queue}; then touch {once}; fi
"""
_UNIT = """\
# SPDX-License-Identifier: MIT
# For a lead that systemd starts: instead of rc1.d/burst-daemon, so leave FLUX_RC_EXTRA
# out of its environment then. Goes to /etc/systemd/system. If the lead's socket is not
# that of the system instance, set FLUX_URI by `systemctl edit burst`.
[Unit]
Description=Lends nodes to a Flux instance
After=flux.service
PartOf=flux.service

[Service]
# Started once the daemon serves the lead, for which it may wait ([deadlines] lead).
Type=notify
TimeoutStartSec=infinity
# The owner of the lead: nobody else can be its daemon.
User={user}
{before}ExecStart={daemon}
ExecReload=/bin/kill -HUP $MAINPID
# Local followers are in this unit's control group, and outlive the daemon.
KillMode=process
Restart=on-failure
RestartSec=5s

[Install]
WantedBy=flux.service
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
        f"{host})\n    {'' if number else first}exec {_typed(command)}\n    ;;"
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


def _typed(command: Sequence[str]) -> str:
    """Return a command for sh; Flux's modprobe also looks where the site has it."""
    name, kept = _MODPROBE, f'{_MODPROBE}"{SITE}"'
    return " ".join(
        kept + shlex.quote(word.removeprefix(name))
        if word.startswith(name)
        else shlex.quote(word)
        for word in command
    )


def rc1_daemon_script(directory: Path) -> str:
    """Return a program for rc1.d that starts the daemon of the lead in `directory`.

    The daemon finds the Slurm that the environment of this process names.
    """
    return _SCRIPT.format(
        daemon=shlex.join([*env_for_slurm(), *_command(directory)]),
        log=shlex.quote(str(directory / "daemon.log")),
        lock=shlex.quote(str(directory / "daemon.lock")),
    )


def env_for_slurm() -> list[str]:
    """Return words before a command that a broker starts, so that it finds our Slurm.

    Empty if nothing in the environment of this process names one.
    """
    given = [f"{name}={os.environ[name]}" for name in _REMOVED if name in os.environ]
    return ["env", *given] if given else []


def rc1_queue_script(state: Path, queue: str) -> str:
    """Return a program for rc1.d that starts, once, the queue for own nodes.

    `state` is the lead's state directory.
    """
    once = state / f"started-{queue}"
    return _QUEUES.format(once=shlex.quote(str(once)), queue=shlex.quote(queue))


def systemd_unit(directory: Path, user: str, before: Path | None = None) -> str:
    """Return a unit of systemd that runs the daemon as `user`.

    `before` is a program to run ahead of the daemon.
    """
    return _UNIT.format(
        user=user,
        daemon=shlex.join(_command(directory)),
        before=f"ExecStartPre={shlex.quote(str(before))}\n" if before else "",
    )


def _command(directory: Path) -> list[str]:
    return own_command("daemon", "-c", str(directory / "burst.toml"))
