# SPDX-License-Identifier: MIT
"""Checks, without starting anything, whether followers can run on this host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from burst.errors import ConfigError, Refused
from burst.kits.broker import check_socket
from burst.kits.path_rights import first_closed
from burst.kits.program import flux_version
from burst.kits.systemd_user import ENABLE_LINGER, has_bus
from burst.model.finding import Finding, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.version import major_minor
from burst_local.burst_dirs import ProviderDirectory

# A burst's id is the name of its rank slot, with which its hosts' names begin, and 7
# more characters.
_ID_TAIL = "-0123ab"
# Mounts that access(2) reports to root as writable.
_KERNELS = ("/proc", "/sys")


def examine_program(flux: str, lead: LeadIdentity | None) -> Iterator[Finding]:
    """Check the program that starts followers."""
    if lead is not None and lead.follower_module:
        yield ok("followers of this lead need no flux")
        return
    program = shutil.which(flux)
    if program is None:
        yield wrong(
            f"there is no program {flux!r}",
            "install Flux, or set flux to the path of the lead's",
        )
        return
    try:
        version = flux_version(program)
        fits = lead is None or major_minor(version) == major_minor(lead.version)
    except (ConfigError, ValueError) as error:
        yield wrong(str(error), "set flux to the path of the lead's")
        return
    if fits:
        yield ok(f"followers run {program}, Flux {version}")
    else:
        assert lead is not None, "without a lead each version fits"
        yield wrong(
            f"followers would run {program}, Flux {version}, which a lead of"
            f" {lead.version} rejects",
            "set flux to the path of the lead's",
        )


def examine_home(
    home: ProviderDirectory, lead: LeadIdentity | None
) -> Iterator[Finding]:
    """Check the directory of the followers' directories, without making it."""
    try:
        home.check()
    except Refused as error:
        yield wrong(error.what, error.advice)
        return
    if lead is not None and lead.access.allow_guest_user:
        try:
            check_passable(home)
        except Refused as error:
            yield wrong(error.what, error.advice)
            return
    nearest = _nearest(home.path)
    if not _takes_directories(nearest):
        yield wrong(
            f"{home.path}: cannot be made, since {nearest} cannot be written",
            "start the daemon's unit, if that makes it; or set dir to a directory that"
            " this user may write, such as /tmp/burst, or remove it",
        )
        return
    hosts = lead.hosts[1:] if lead else ()
    late = {host: why for host in hosts if (why := _too_long(home, host))}
    shorter = "set dir to a shorter one"
    if late and len(late) == len(hosts):
        yield wrong(late[hosts[0]], shorter)
    else:
        for host, why in late.items():
            yield note(f"{host} could not be a follower: {why}", shorter)
        yield ok(f"followers have their directories in {home.path}")


def examine_systemd(runtime: Path, lead: LeadIdentity | None) -> Iterator[Finding]:
    """Check the systemd of the lead's owner, if the lead's Flux needs it."""
    if lead is None or not lead.systemd:
        return
    if not has_bus(runtime):
        yield wrong(
            "the lead has [systemd] enable, and its owner has no systemd here: there is"
            f" no {runtime}/bus, so that no follower would come online",
            ENABLE_LINGER,
        )
        return
    share = "the lead has [systemd] enable, and followers on its host share its systemd"
    other = "use another provider for more than a trial"
    if 0 in lead.excluded:
        yield note(
            f"{share}: they come online only once no job runs on other followers, so"
            " one burst after another",
            other,
        )
        return
    yield note(
        f"{share}: they come online only once no job runs on this host, on its own node"
        " or on other followers, so one burst after another; and Flux may drain the"
        " host's own node where housekeeping on them is ended (after 10m;"
        " flux resource undrain)",
        f"keep own jobs off this host, such as by [resource] exclude, and {other}",
    )


def check_passable(home: ProviderDirectory) -> None:
    """Raise Refused if guests' jobs could not reach the sockets of their followers."""
    # `dir`, and what does not exist of its path, are made so that guests may pass.
    closed = first_closed(_nearest(home.path.parent.parent))
    if closed:
        raise Refused(
            f"{closed}: guests may not pass through it, so that their jobs would fail"
            f" on followers below {home.path}",
            f"chmod o+x {closed}, or set dir to a directory that all users may reach,"
            " such as /run/burst",
        )


def _nearest(path: Path) -> Path:
    """Return the path, or the nearest directory above it that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def _takes_directories(place: Path) -> bool:
    """Return whether directories can be made there; not in /proc and /sys."""
    kernels = {os.stat(path).st_dev for path in _KERNELS if os.path.isdir(path)}
    may = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    return may and place.stat().st_dev not in kernels


def _too_long(home: ProviderDirectory, host: str) -> str:
    """Return why the path of that host's socket is too long; empty if it is not."""
    stem = host.rstrip("0123456789").rstrip("-") or host
    rundir = home.burst(stem + _ID_TAIL).follower(host).path
    try:
        check_socket(rundir / "local")
    except ConfigError as error:
        return error.what
    return ""
