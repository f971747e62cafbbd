# SPDX-License-Identifier: MIT
"""Writes the files of a burst's followers, and the script that starts one.

It is for followers that can read a directory which the daemon writes, on the same host
or on a shared file system. The directory belongs to the daemon's user and has mode
0700:

    DIR/broker.toml   for all followers of the burst
    DIR/burst.cert    a copy of the certificate, mode 0600
    DIR/start         `sh DIR/start HOST` runs the follower HOST until it ends

The script makes a rundir on the node and removes it at the end. The follower gets few
environment variables and ends at the burst's `lease_end`. On SIGTERM, SIGINT and SIGHUP
the script lets the follower shut down properly, even if it gets several signals. After
SIGKILL the rundir is left.
"""

from __future__ import annotations

import math
import shlex
import shutil
from pathlib import Path

import msgspec

from burst.errors import CertificateError, ConfigError, Refused
from burst.kits import certificate
from burst.kits.atomic_file import write_atomically
from burst.kits.broker import FollowerPrograms, follower_argv, follower_config
from burst.kits.private_dir import disk_errors
from burst.kits.systemd_user import SHELL_VARIABLES
from burst.provider import BurstSpec

INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR"),
    *("LD_LIBRARY_PATH", "PYTHONPATH"),
)
"""The only variables that a follower inherits. Jobs of other users run under it and can
read its variables, so it must not have others, such as the credentials of a cloud."""

# Guests' jobs pass through the rundir to the follower's socket; they cannot list it.
_FOR_GUESTS = 'chmod 0711 "$rundir"\n'
# Who signals all processes ends this one, too, and then the broker is not told again.
# Slurm does it or not, by its ProctrackType. It lists the processes, and signals them
# then. So this one begins after the follower, which is on each list that has it.
_CANARY = """\
tail -f --pid=$$ /dev/null > /dev/null 2>&1 &
canary=$!
"""
_REACHED = """\
reached() {
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$canary" 2> /dev/null || return 0
    sleep 0.1
  done
  return 1
}
"""
_NOT_REACHED = "reached() { return 1; }\n"
# Seconds in which a further signal to the script is not passed on to the broker: a
# second SIGTERM while it leaves (rc3) would break its shutdown.
_AGAIN_S = 30
WAIT_FOR_CHILD = """\
alive=1 status=127
while [ "$alive" ]; do
  kill -0 "$child" 2> /dev/null || alive=
  wait "$child"
  ended=$?
  [ "$ended" -ne 127 ] || break
  status=$ended
done
"""
"""Lines for sh that wait for `$child` and set `$status` to its exit status.

A trapped signal ends `wait` before the child has ended, so one `wait` is not enough.
The shell may have learned of the child's end during an earlier command: then `kill -0`
fails at once, and only `wait` returns the status. `wait` returns 127 for a child that
was waited for before.
"""
_HOST, _RUNDIR = "@HOST@", "/@RUNDIR@"
_SCRIPT = """\
#!/bin/sh
# The follower $1 of burst {burst}, until it ends.
umask 077
host=$1
# Before anything is made or started: a signal must find somebody to tell.
child= stopped= told=
{reached}tell() {{
  read -r now _ < /proc/uptime
  now=${{now%.*}}
  [ -z "$told" ] || [ $((now - told)) -ge {again} ] || return 0
  told=$now
  reached || kill -TERM "$child" 2> /dev/null
}}
trap 'stopped=1; [ -z "$child" ] || tell' TERM INT HUP
# Whoever ends a burst repeats that: a further signal to all would end rm half-way.
clean() {{ trap '' TERM INT HUP; rm -rf "$rundir"; }}
# A signal to all would end mktemp after it has made the directory.
rundir=$(trap '' TERM INT HUP; exec mktemp -d /tmp/{burst}-XXXXXX) || exit 1
{for_guests}# A broker runs its rc scripts with $SHELL and a socket as standard input.
# Bash takes this for a remote login, and would read ~/.bashrc.
set -- SHELL=/bin/sh
for name in {inherited}; do
  eval "value=\\${{$name-}} there=\\${{$name+1}}"
  [ -z "$there" ] || set -- "$@" "$name=$value"
done
end={end} left=1
# Nor may a signal end date(1): the script would end at the expression.
[ "$end" -eq 0 ] || left=$((end - $(trap '' TERM INT HUP; exec date +%s)))
# A job may have waited until the lease has ended.
[ -z "$stopped" ] && [ "$left" -gt 0 ] || {{ clean; exit 143; }}
# A shell that has just forked may lose a signal. So the follower begins only once that
# is over, if nobody has stopped the script before: then it gets each signal once.
{for_systemd}(
  : > "$rundir/forked"
  until [ -e "$rundir/begin" ]; do kill -0 $$ 2> /dev/null && sleep 0.01 || exit; done
  exec env -i "$@" {command} < /dev/null
) &
started=$!
until [ -e "$rundir/forked" ] || ! kill -0 "$started" 2> /dev/null; do sleep 0.01; done
{canary}child=$started
[ -z "$stopped" ] || {{ kill -TERM "$child" 2> /dev/null; clean; exit 143; }}
true > "$rundir/begin" || {{ kill -TERM "$child" 2> /dev/null; clean; exit 1; }}
outlives() {{ timeout "$1" tail -f --pid="$child" /dev/null; [ $? -eq 124 ]; }}
if [ "$end" -gt 0 ]; then
  # Beside the follower: timeout(1) before it would pass on signals, too.
  {{
    outlives "$left" && kill -TERM "$child"
    outlives 30 && kill -KILL "$child"
  }} > /dev/null 2>&1 &
fi
{wait_for_child}clean
exit "$status"
"""


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the files of a burst's followers. Equal values give equal files."""

    flux: str = "flux"
    """The flux program on the nodes."""
    signals_may_reach_all: bool = False
    """Whether a signal to stop the script may go to all its processes at once, as with
    a batch system. Then the script passes it on only if it did not."""

    def write(self, place: Path, spec: BurstSpec) -> Path:
        """Write the files into a directory; return the path of the script.

        Raises Refused if no follower could join with them, InsufficientCapacity if the
        disk is full, Transient.
        """
        texts = self.contents(place, spec)
        with disk_errors(place, writing=True):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, text in texts.items():
                write_atomically(place / name, text.encode(), private=True)
        return place / "start"

    def contents(self, place: Path, spec: BurstSpec) -> dict[str, str]:
        """Return the contents of the files by name, the script last.

        `place` is the directory in which the follower finds them. The certificate is
        secret. Raises Refused if no follower could join with them.
        """
        try:
            path = str(place / "burst.cert")
            config = follower_config(spec.lead, spec.hosts, spec.ranks, path)
            content = certificate.read(Path(spec.lead.certificate))
        except (ConfigError, CertificateError) as error:
            raise Refused(error.what, error.advice) from error
        return {
            "burst.cert": certificate.format_certificate(content),
            "broker.toml": config,
            "start": self._script(place, spec),
        }

    def _script(self, place: Path, spec: BurstSpec) -> str:
        return _SCRIPT.format(
            burst=spec.burst_id,
            reached=_REACHED if self.signals_may_reach_all else _NOT_REACHED,
            canary=_CANARY if self.signals_may_reach_all else "",
            again=_AGAIN_S,
            for_guests=_FOR_GUESTS if spec.lead.access.allow_guest_user else "",
            for_systemd=SHELL_VARIABLES if spec.lead.systemd else "",
            inherited=" ".join(INHERITED),
            # In whole seconds, rounded up so that it is not before the lease ends.
            end=math.ceil(spec.lease_end),
            wait_for_child=WAIT_FOR_CHILD,
            command=_command(spec, place / "broker.toml", self.flux),
        )


def remove(place: Path) -> None:
    """Remove the directory, if it exists. Call it once no follower runs.

    Raises Transient.
    """
    with disk_errors(place):
        try:
            shutil.rmtree(place)
        except FileNotFoundError:
            return


def _command(spec: BurstSpec, config: Path, flux: str) -> str:
    """Return the follower's command for sh, with the script's variables in it."""
    argv = follower_argv(
        spec.lead, FollowerPrograms(flux), config, _HOST, Path(_RUNDIR)
    )
    text = shlex.join(argv)
    return text.replace(_HOST, '"$host"').replace(_RUNDIR, '"$rundir"')
