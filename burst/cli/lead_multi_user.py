# SPDX-License-Identifier: MIT
"""`burst lead init --multi-user`: its options, and what root has to do after it."""

from __future__ import annotations

import pwd
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from burst.flux_setup.setup_files import IntakeChoice
from burst.kits.path_rights import first_changeable
from burst.lead_setup.flux_install import find_install
from burst.lead_setup.init_lead import InitializedLead
from burst.lead_setup.intake_files import SystemChoice, find_security
from burst.lead_setup.lead_plan import LeadPlan
from burst.lead_setup.system_lead import find_owner, root_commands
from burst.model.ranks import parse_hostlist

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_PLACES = (
    click.option(
        "--user",
        default="flux",
        show_default=True,
        help="User that runs the brokers of a system instance, and the daemon.",
    ),
    click.option(
        "--rundir",
        type=_PATH,
        default="/run/flux",
        show_default=True,
        help="Directory in which a system instance has its socket.",
    ),
    click.option(
        "--statedir",
        type=_PATH,
        default="/var/lib/flux",
        show_default=True,
        help="Directory in which a system instance keeps its state.",
    ),
)
_OPTIONS = (
    click.option(
        "--multi-user",
        is_flag=True,
        help="Make a system instance: other users submit jobs, which run as these"
        " users. Needs flux-security. See docs/multi-user.md.",
    ),
    click.option(
        "--imp",
        type=_PATH,
        help="With --multi-user: path of the IMP. Default: flux-imp of the installed"
        " Flux.",
    ),
    click.option(
        "--install",
        is_flag=True,
        help="With --multi-user, as root: also install the units and flux-security's"
        " files, and make the IMP setuid. Default: only print the commands for root.",
    ),
)


def multi_user_options(command: _Command) -> _Command:
    """Add the options to `burst lead init`."""
    for option in reversed((*_OPTIONS, *_PLACES)):
        command = option(command)
    return command


def place_options(command: _Command) -> _Command:
    """Add the options for the owner and the directories of a system instance."""
    for option in reversed(_PLACES):
        command = option(command)
    return command


def system_choice(
    choice: IntakeChoice, plan: LeadPlan, options: Mapping[str, Any]
) -> SystemChoice:
    """Return what the options ask for. Raises ConfigError if it cannot work here."""
    places = find_owner(
        options["user"], options["rundir"].absolute(), options["statedir"].absolute()
    )
    install = find_install(options["imp"])
    return SystemChoice(
        intake=choice.intake,
        policy=choice.policy,
        local_queue=choice.local_queue,
        places=places,
        install=install,
        security=find_security(install, places.user),
        own=parse_hostlist(plan.hosts),
        provider=options["provider"],
    )


def warn_of_program(user: str) -> Iterator[str]:
    """Yield a warning if others can change what burst.service runs as this user."""
    owner = pwd.getpwnam(user).pw_uid
    paths = (Path(sys.executable), Path(__file__).parents[1])
    for part in dict.fromkeys(first_changeable(path, owner) for path in paths):
        if part:
            yield f"warning: {part} can be changed by users other than root and {user},"
            yield f"and burst.service runs {sys.executable} -m burst as {user}."
            yield "Install burst where only root writes, and run it from there."


def tell_root(
    ready: InitializedLead, choice: SystemChoice, *, installed: bool
) -> Iterator[str]:
    """Yield what root has to do before the instance can start, and how it starts."""
    for path in choice.security.kept:
        yield f"kept {path}  (of flux-security; it already has what is needed)"
    if choice.security.by_hand:
        yield "\nThese files are the site's. No user's job starts without this:\n"
        yield from (f"    {line}" for line in choice.security.by_hand)
    commands = root_commands(ready.files.config.parent, choice)
    yield "\nInstalled as root:\n" if installed else "\nAs root, install:\n"
    yield from (f"    {shlex.join(command)}" for command in commands)
    yield "\nAs root, start munge, the lead and the daemon, now and at each boot:\n"
    yield "    systemctl daemon-reload"
    yield "    systemctl enable --now munge flux burst"
    yield "\nEach shell that submits or lists burst jobs needs, such as from a file in"
    yield "/etc/profile.d:\n"
    for name, value in {"FLUX_URI": ready.files.uri, **ready.environment}.items():
        yield f"    export {name}={shlex.quote(value)}"
    settings = str(ready.settings)
    yield f"\nThen, as {choice.places.user}:\n"
    yield f"    {shlex.join(['burst', 'doctor', '-c', settings])}"
