# SPDX-License-Identifier: MIT
"""The files that Flux loads for burst, and the directories where Flux looks.

Sources: flux-environment(7) for FLUX_CLI_PLUGINPATH and FLUX_MODPROBE_PATH_APPEND,
flux-jobs(1) for formats, flux-config-ingest(5), flux-config-queues(5), and the search
paths in flux/cli/plugin.py and flux/modprobe.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
import tomli_w

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.kits.program import ask_flux, flux_version
from burst.kits.user_names import own_home
from burst.model.confinement import LENT
from burst.model.version import major_minor

Policy = Literal["fifo", "backfill"]

SCHEDULER = "sched-burst"
LEAD_PIECE = "zz-burst-lead.toml"
"""The lead's piece of configuration; burst.toml is what the daemon reads. Flux reads
files in the order of their names, and if several have a list, the last one counts."""
_OLDEST = (0, 84)
_HEADER = (
    "# SPDX-License-Identifier: MIT\n# Written by `burst setup`; --remove takes it"
)
_PIECE_HEADER = """\
{} out.
#
# Its name sorts last: Flux reads the files of this directory in the order of their
# names, and if several files have the same list, the last one counts. So `plugins`
# below has the list that the site had, with ours at its end. If the site changes its
# own list, run `burst setup` again. `burst doctor` reports a list that lacks ours.

{}"""


class FluxDirectories(msgspec.Struct, frozen=True, kw_only=True):
    """Directories in which Flux finds each kind of file."""

    plugins: Path
    modprobe: Path
    own: Path
    """For files that are named by their paths: scheduler, frobnicator, our list."""
    formats: Path
    config: Path
    environment: Mapping[str, str] = {}
    """Variables to set so that Flux looks in these directories; empty for none."""


class IntakeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The intake mode, and further choices for the files of that mode."""

    intake: IntakeSettings
    policy: Policy = "fifo"
    local_queue: str = ""
    """A queue for all other jobs, if the instance has none yet; empty for none."""
    plugins: tuple[str, ...] = ("defaults", "constraints")
    """The site's frobnicators."""
    limits: Mapping[str, Any] = {}
    """`policy.limits` of the site's default queue, whose burst jobs go to ours."""
    verify: Mapping[str, str] = {}
    """Keys to add to the site's `[resource.verify]`; empty for none."""
    share_users: bool = False
    """`[plan] share_users`."""


def system_directories() -> FluxDirectories:
    """Return the directories of the Flux on PATH. Raises ConfigError without one."""
    confdir = Path(ask_flux("flux", "config", "builtin", "confdir").strip())
    return FluxDirectories(
        plugins=confdir / "cli" / "plugins",
        modprobe=confdir / "modprobe",
        own=confdir / "burst",
        formats=Path("/etc/xdg/flux"),
        config=confdir / "system" / "conf.d",
    )


def user_directories(environment: Mapping[str, str] = os.environ) -> FluxDirectories:
    """Return the directories of one user, by the XDG base directories."""
    home = own_home(environment)
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    places = single_directory(data / "burst" / "flux")
    kept = {k: v for k, v in places.environment.items() if k != "XDG_CONFIG_DIRS"}
    return msgspec.structs.replace(places, formats=config / "flux", environment=kept)


def single_directory(directory: Path) -> FluxDirectories:
    """Return subdirectories of one directory, and variables that name them to Flux."""
    directory = directory.absolute()
    return FluxDirectories(
        plugins=directory / "cli" / "plugins",
        modprobe=directory / "modprobe",
        own=directory,
        formats=directory / "xdg" / "flux",
        config=directory / "conf.d",
        environment={
            "FLUX_CLI_PLUGINPATH": str(directory / "cli" / "plugins"),
            "FLUX_MODPROBE_PATH_APPEND": str(directory / "modprobe"),
            "XDG_CONFIG_DIRS": f"{directory / 'xdg'}:/etc/xdg",
        },
    )


def check_flux_version(intake: IntakeSettings) -> None:
    """Raise ConfigError if the Flux on PATH is too old for the intake mode."""
    version = flux_version("flux")
    if intake.mode == "scheduler" and major_minor(version) < _OLDEST:
        raise ConfigError(
            f"the flux on PATH is {version}; {SCHEDULER} needs the scheduler classes of"
            " 0.84 or later",
            "update flux-core, or choose --mode hold or queue",
        )


def make_files(places: FluxDirectories, choice: IntakeChoice) -> dict[Path, str]:
    """Return the content of each file, by its path."""
    made = {
        places.plugins / "burst.py": read_shipped("cli-burst.py"),
        places.own / "frob-burst.py": read_shipped("frob-burst.py"),
        places.formats / "flux-jobs.burst.toml": read_shipped("flux-jobs.burst.toml"),
        places.config / LEAD_PIECE: _PIECE_HEADER.format(
            _HEADER, tomli_w.dumps(lead_tables(places, choice))
        ),
    }
    if choice.intake.mode == "scheduler":
        script = places.own / f"{SCHEDULER}.py"
        beside = (f"{SCHEDULER}-jobs.py", f"{SCHEDULER}-leases.py")
        for path in (script, *map(script.with_name, beside)):
            made[path] = read_shipped(path.name)
        made[places.modprobe / "rc1.d" / "burst.py"] = read_shipped("rc1-burst.py")
        made[places.modprobe / "modprobe.d" / "burst.toml"] = _as_file(
            _module(script, choice.policy)
        )
    return made


def lead_tables(places: FluxDirectories, choice: IntakeChoice) -> dict[str, Any]:
    """Return the tables that the lead's configuration needs for the intake mode."""
    intake = choice.intake
    own: dict[str, Any] = {
        "any_job": intake.any_job,
        "share_users": choice.share_users,
        "mode": intake.mode,
        "property": LENT,
    }
    tables: dict[str, Any] = {}
    if intake.mode == "queue":
        own |= {"queue": intake.queue, "ready": intake.ready}
        names = (intake.queue, intake.ready)
        policy = {"policy": {"limits": choice.limits}} if choice.limits else {}
        tables["queues"] = {name: {"requires": [LENT], **policy} for name in names}
        if choice.local_queue:
            # It gets all nodes that are not lent, whatever properties they have.
            tables["queues"][choice.local_queue] = {"requires": [f"^{LENT}"]}
            defaults = {"system": {"queue": choice.local_queue}}
            tables["policy"] = {"jobspec": {"defaults": defaults}}
    if intake.mode == "scheduler":
        tables["burst"] = {"scheduler": True}
    if choice.verify:
        tables["resource"] = {"verify": dict(choice.verify)}
    # Ours is last: it lets burst jobs have lent nodes beside those of their queue, and
    # for that `constraints` must have added the constraint of the queue before.
    needed = ["constraints"] if intake.mode == "queue" else []
    plugins = dict.fromkeys([*choice.plugins, *needed])
    listed = [*plugins, str(places.own / "frob-burst.py")]
    tables["ingest"] = {"frobnicator": {"plugins": listed, "burst": own}}
    return tables


def read_shipped(name: str) -> str:
    """Return a file that comes with this package for Flux to load."""
    return (files("burst") / "flux_setup" / "files" / name).read_text()


def _module(script: Path, policy: Policy) -> dict[str, Any]:
    return {
        "modules": [
            {
                "name": SCHEDULER,
                "module": str(script),
                "provides": ["sched", "feasibility"],
                "after": ["job-manager", "resource"],
                "requires": ["job-manager", "resource"],
                "ranks": "0",
                # Lower than Flux's own: rc1-burst.py chooses it if it is wanted.
                "priority": 30,
                "args": [f"policy={policy}", f"lent={LENT}"],
            }
        ]
    }


def _as_file(tables: Mapping[str, Any]) -> str:
    return f"{_HEADER} out.\n\n{tomli_w.dumps(tables)}"
