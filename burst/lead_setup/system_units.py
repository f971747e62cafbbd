# SPDX-License-Identifier: MIT
"""systemd units of a system instance that can burst: its broker, and the daemon.

The broker's unit has the settings of Flux's own, flux.service, with this lead's files.
Sources: flux-broker(1), flux-broker-attributes(7), systemd.exec(5).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from burst.kits.own_command import own_command

# Where systemd makes a RuntimeDirectory.
_RUN = Path("/run")
_USUAL_RUN = _RUN / "flux"
USUAL_URI = f"local://{_USUAL_RUN}/local"
"""The URI of a host's own instance, which commands ask that are given none."""
# Ordered as a broker's life: where it keeps things, what it waits for, how it ends.
_ATTRIBUTES = (
    "log-stderr-level=6",
    "log-stderr-mode=local",
    "log-forward-level=-1",
    # Serve; run no initial program.
    "broker.rc2_none=1",
    "broker.quorum-warn=none",
    "broker.cleanup-timeout=45",
    "broker.shutdown-timeout=5m",
    "broker.exit-norestart=42",
    "broker.sd-notify=1",
    "broker.sd-stop-timeout=90",
    # A module that crashes, such as the scheduler, must not end all jobs.
    "broker.module-nopanic=1",
    "content.dump=auto",
    "content.restore=auto",
)
_BROKER = """\
# SPDX-License-Identifier: MIT
# The broker of a system instance. Goes to /etc/systemd/system, where it takes the place
# of the unit that Flux's package brings.
[Unit]
Description=Flux system instance
Wants=munge.service network-online.target
After=munge.service network-online.target

[Service]
Type=notify
NotifyAccess=main
User={user}
Group={group}
{environment}ExecStart={command}
ExecReload=/usr/bin/env FLUX_URI={uri} {flux} config reload --follower-noop
{places}# The broker stops the jobs' processes itself, and needs time for it.
KillMode=mixed
TimeoutStopSec=90
Restart=always
RestartSec=30s
RestartPreventExitStatus=42
SuccessExitStatus=42
# Flux makes control groups for what it starts.
Delegate=yes
# The IMP is setuid: without it, no job of another user starts.
NoNewPrivileges=no

[Install]
WantedBy=multi-user.target
"""
_DAEMON = """\
# SPDX-License-Identifier: MIT
# Goes to /etc/systemd/system.
[Unit]
Description=Lends nodes to the Flux system instance
After=flux.service
PartOf=flux.service

[Service]
# Started once the daemon serves the lead, for which it may wait ([deadlines] lead).
Type=notify
TimeoutStartSec=infinity
# The owner of the instance: Flux gives nobody else the rights that the daemon uses,
# see docs/multi-user.md. root would have more than it uses.
User={user}
Group={group}
Environment=FLUX_URI={uri}
{before}ExecStart={daemon}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5s
# /run/{own}, for its sockets, and followers if it has some on this host.
RuntimeDirectory={own}
RuntimeDirectoryMode=0711
{rights}
[Install]
WantedBy=flux.service
"""
_FOLLOWERS_RIGHTS = """\
# Followers on this host are in this unit's control group, and outlive the daemon, as
# their directories do.
KillMode=process
RuntimeDirectoryPreserve=yes
# In a group of its own below, each can be killed with all that guests' jobs left there,
# to which the daemon's user cannot send a signal.
Delegate=yes
# They are children of the daemon and start users' jobs by the IMP, which is setuid: so
# the daemon may not give up privileges here, and jobs see the files as users do. With
# followers only elsewhere, the unit takes away what the daemon does not use.
NoNewPrivileges=no
"""
_FEW_RIGHTS = """\
# The daemon uses sockets, and writes its ledger in the lead's state directory. If it
# has to write elsewhere (dir of a provider; [daemon] record, alive; a cloud's token
# cache), run `systemctl edit burst`, and write there [Service] and
# ReadWritePaths=DIRECTORY.
UMask=0077
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths={state}
ProtectHome=read-only
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
"""


class SystemPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Who owns a system instance, and where it keeps its socket and its state."""

    user: str
    group: str
    run: Path = _USUAL_RUN
    """The directory of the socket; mode 0755, since users connect to the socket."""
    state: Path = Path("/var/lib/flux")
    """The directory of the state; mode 0700, since it contains what jobs print."""

    @property
    def uri(self) -> str:
        """The URI of the instance."""
        return f"local://{self.run}/local"

    @property
    def followers(self) -> Path:
        """The directory of followers on this host; burst.service makes it."""
        return _RUN / "burst" / self.user


def broker_unit(
    places: SystemPlaces,
    broker: Sequence[str],
    environment: Mapping[str, str],
    quorum: int,
) -> str:
    """Return the unit of the broker.

    `broker` is the program with its first arguments, and `quorum` the number of own
    hosts: the broker does not wait for hosts that join in a burst.
    """
    where = {
        "statedir": places.state,
        "rundir": places.run,
        "local-uri": places.uri,
        # By default the quorum is the size.
        "broker.quorum": quorum,
    }
    attributes = (*(f"{key}={value}" for key, value in where.items()), *_ATTRIBUTES)
    command = (*broker, *(f"-S{each}" for each in attributes))
    return _BROKER.format(
        user=places.user,
        group=places.group,
        environment=_environment(environment),
        command=" \\\n    ".join(_quote(word) for word in command),
        flux=_quote(broker[0]),
        uri=places.uri,
        places="".join(f"{line}\n" for line in _directories(places)),
    )


def daemon_unit(
    places: SystemPlaces,
    settings: Path,
    before: Path | None = None,
    *,
    has_followers: bool,
) -> str:
    """Return the unit of the daemon, with as few rights as it needs.

    `settings` is burst.toml, `before` a program to run ahead of the daemon.
    `has_followers` tells whether it starts followers on its host
    (`ProviderType.own_host`).
    """
    daemon = own_command("daemon", "-c", str(settings))
    if has_followers:
        rights = _FOLLOWERS_RIGHTS
    else:
        rights = _FEW_RIGHTS.format(state=_quote(str(places.state)))
    return _DAEMON.format(
        user=places.user,
        group=places.group,
        uri=places.uri,
        daemon=shlex.join(daemon),
        own=_quote(str(places.followers.relative_to(_RUN))),
        before=f"ExecStartPre={_quote(str(before))}\n" if before else "",
        rights=rights,
    )


def _environment(values: Mapping[str, str]) -> str:
    # Here % has a special meaning, and $ has none (systemd.exec(5)).
    words = (f"{name}={value}".replace("%", "%%") for name, value in values.items())
    return "".join(f"Environment={shlex.quote(word)}\n" for word in words)


def _directories(places: SystemPlaces) -> Iterator[str]:
    """Yield a unit's lines that make the directories with their owner and modes."""
    for path, kind, root, mode in (
        (places.run, "Runtime", _RUN, "0755"),
        (places.state, "State", Path("/var/lib"), "0700"),
    ):
        if path != root and path.is_relative_to(root):
            yield f"{kind}Directory={path.relative_to(root)}"
            yield f"{kind}DirectoryMode={mode}"
        else:
            # systemd makes directories in its own places only. "+": as root.
            owner = f"-o {places.user} -g {places.group}"
            yield f"ExecStartPre=+install -d {owner} -m {mode} {_quote(str(path))}"


def _quote(word: str) -> str:
    """Quote a word of a command, where % and $ are special (systemd.service(5))."""
    return shlex.quote(word.replace("%", "%%").replace("$", "$$"))
