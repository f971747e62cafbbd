# SPDX-License-Identifier: MIT
"""Makes a lead that is a system instance: many users submit, `flux` owns it.

The configuration belongs to root, so that the instance's owner can read but not change
it; only the owner can read the certificate, and all users everything else.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
from collections.abc import Iterator
from pathlib import Path

from burst.errors import ConfigError, ProviderError
from burst.kits.path_rights import first_closed, make_open_directory
from burst.kits.program import run
from burst.lead_setup.init_lead import InitializedLead, init_lead
from burst.lead_setup.intake_files import (
    BROKER_UNIT,
    DAEMON_UNIT,
    SystemChoice,
    staged_name,
)
from burst.lead_setup.lead_plan import LeadPlan
from burst.lead_setup.site_files import check_places
from burst.lead_setup.system_units import SystemPlaces

UNITS = Path("/etc/systemd/system")
# An existing unit of that name is kept as NAME.~1~, which systemd does not read; a file
# that is the same already is left as it is.
_PLACE = (
    *("install", "-D", "-C", "--backup=numbered"),
    *("-o", "root", "-g", "root", "-m", "644"),
)


def find_owner(name: str, run: Path, state: Path) -> SystemPlaces:
    """Return the places of an instance of this user. Raises ConfigError.

    This process has to run as root or as that user: only they can give it its files.
    """
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise ConfigError(
            f"there is no user {name!r} on this host",
            f"make it: useradd --system --user-group --shell /usr/sbin/nologin {name};"
            " or name another with --user",
        ) from None
    if not entry.pw_uid:
        raise ConfigError(
            "a system instance must not run as root: every job could become root's",
            "make a user for it, such as flux",
        )
    if os.geteuid() not in {0, entry.pw_uid}:
        raise ConfigError(
            f"the files must belong to {name}, and this user cannot change their owner",
            f"run it as root, or as {name}",
        )
    group = grp.getgrgid(entry.pw_gid).gr_name
    return SystemPlaces(user=name, group=group, run=run, state=state)


def init_system_lead(
    directory: Path,
    plan: LeadPlan,
    provider: str,
    choice: SystemChoice,
    *,
    replace: bool = False,
) -> InitializedLead:
    """Write the files of a system instance, as `init_lead`, with owners and modes.

    Raises ConfigError also if root would write where others can put a link.
    """
    directory = directory.absolute()
    # The modes of the files are set by their paths.
    check_places([directory / "broker.toml"])
    _make_directory(directory)
    ready = init_lead(directory, plan, provider, replace=replace, choice=choice)
    _hand_over(ready, choice.places.user)
    return ready


def _make_directory(directory: Path) -> None:
    """Make the lead's directory, which the instance and its users have to enter.

    The broker reads broker.toml as its user, and users read plug-ins. Raises
    ConfigError if other users cannot enter it; an existing directory stays as it is.
    """
    try:
        make_open_directory(directory)
    except OSError as error:
        raise ConfigError(
            f"{directory}: cannot be made: {error.strerror}",
            "run it as root, or name a directory that you may write",
        ) from error
    closed = first_closed(directory)
    if closed:
        raise ConfigError(
            f"{closed}: other users cannot enter it, so the instance and its users"
            f" could not read {directory}",
            f"name a directory elsewhere, such as /etc/flux/burst, or run"
            f" `chmod o+x {closed}`",
        )


def _hand_over(ready: InitializedLead, user: str) -> None:
    """Set the modes of the files that were written, and give the user the certificate.

    If root runs this, everything else stays root's: the owner of the instance has no
    reason to change it. Raises ConfigError.
    """
    files = ready.files
    top, private = files.config.parent, files.certificate
    written = {files.config, files.resources, ready.settings, *ready.loaded}
    inner = {path for file in written for path in file.parents}
    try:
        for path in written | {path for path in inner if top in path.parents}:
            may_run = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if may_run else 0o644)
        if not os.geteuid():
            entry = pwd.getpwnam(user)
            # In a directory of another user, a link could name a file of root.
            os.chown(private, entry.pw_uid, entry.pw_gid, follow_symlinks=False)
    except OSError as error:
        raise ConfigError(
            f"{error.filename}: its owner or mode cannot be set: {error.strerror}",
            f"run it as root, or as {user} in a directory of its own",
        ) from error


def root_commands(directory: Path, choice: SystemChoice) -> Iterator[tuple[str, ...]]:
    """Yield what root has to run before the instance can start, in this order."""
    own = directory / "flux"
    for target in choice.security.wanted:
        yield (*_PLACE, str(own / staged_name(target)), str(target))
    imp = str(choice.install.imp)
    # chown first, since it clears the setuid bit.
    yield ("chown", "root:root", imp)
    yield ("chmod", "4755", imp)
    for name in (BROKER_UNIT, DAEMON_UNIT):
        yield install_unit(own / name)


def install_unit(unit: Path) -> tuple[str, ...]:
    """Return the command that installs a unit of systemd."""
    return (*_PLACE, str(unit), str(UNITS / unit.name))


def run_as_root(commands: Iterator[tuple[str, ...]]) -> None:
    """Run what `root_commands` returns. Raises ConfigError."""
    if os.geteuid():
        raise ConfigError(
            "only root can install these files", "leave --install out, or run as root"
        )
    for command in commands:
        try:
            run(command)
        except ProviderError as error:
            raise ConfigError(
                f"`{shlex.join(command)}`: {error.what}",
                "fix the cause, then run the command again with --force",
            ) from error
