# SPDX-License-Identifier: MIT
"""Looks for the files that `burst setup` installs, where Flux looks for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from burst.doctor.calls import try_call
from burst.doctor.facts import InstalledFacts, ReadFailure
from burst.flux.boot_info import BootInfo
from burst.flux.frobnicator import NAME
from burst.flux_setup.running_instance import RunningInstance
from burst.flux_setup.setup_files import (
    read_shipped,
    single_directory,
    system_directories,
    user_directories,
)

# Files that `burst setup` installs for users' commands, and the variables that name
# their directories.
_PLUGIN, _PLUGINS = "burst.py", "FLUX_CLI_PLUGINPATH"
_FORMAT, _FORMATS = "flux-jobs.burst.toml", "XDG_CONFIG_DIRS"
# Kubernetes sets it in each container.
_IN_POD = "KUBERNETES_SERVICE_HOST"


def frobnicators_here(
    boot: BootInfo | ReadFailure,
    instance: RunningInstance | ReadFailure,
    host: str,
    environment: Mapping[str, str],
) -> list[str]:
    """Return the frobnicators of the lead that are files of this host, `host`.

    Empty if rank 0, which loads them, is on another host, or is not known. A pod's
    broker has a container, and so files, of its own.
    """
    if isinstance(boot, ReadFailure) or isinstance(instance, ReadFailure):
        return []
    names = {name.partition(".")[0] for name in (host, *boot.nodelist[:1])}
    here = bool(boot.nodelist) and len(names) == 1
    return instance.frobnicators if here and _IN_POD not in environment else []


def read_installed(
    environment: Mapping[str, str],
    beside: Sequence[Path] = (),
    frobnicators: Sequence[str] = (),
) -> InstalledFacts:
    """Look for the files of `burst setup` where Flux looks for them.

    A file that Flux does not find is looked for in the directories `beside`, to which
    `burst lead init` and `burst setup --dir` write, and in that of the user.
    `frobnicators` is the lead's list, if it loads them on this host; those without a
    path are Flux's own.
    """
    system = try_call(system_directories)
    named = environment.get(_PLUGINS, "")
    plugins = named.split(":")
    user = user_directories(environment)
    formats = [str(user.formats)]
    dirs = environment.get(_FORMATS) or "/etc/xdg"
    formats += [f"{directory}/flux" for directory in dirs.split(":")]
    if not isinstance(system, ReadFailure):
        plugins.append(str(system.plugins))
    plugin = _first(plugins, _PLUGIN)
    jobs_format = _first(formats, _FORMAT)
    places = [*map(single_directory, beside), user]
    exports = {}
    there = _first([str(place.plugins) for place in places], _PLUGIN)
    if there and not plugin:
        exports[_PLUGINS] = ":".join(filter(None, [str(Path(there).parent), named]))
    there = _first([str(place.formats) for place in places], _FORMAT)
    if there and not jobs_format:
        exports[_FORMATS] = f"{Path(there).parents[1]}:{dirs}"
    paths = [name for name in frobnicators if os.path.isabs(name)]
    ours = [(plugin, "cli-burst.py")] if plugin else []
    ours += [(path, NAME) for path in paths if os.path.basename(path) == NAME]
    return InstalledFacts(
        plugin=plugin,
        jobs_format=jobs_format,
        exports=exports,
        lacking=tuple(path for path in paths if not _is_readable(path)),
        outdated=tuple(path for path, shipped in ours if _differs(path, shipped)),
    )


def _is_readable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.R_OK)


def _differs(path: str, shipped: str) -> bool:
    """Tell whether a file can be read and is not the one that comes with us."""
    if not _is_readable(path):
        return False
    return Path(path).read_bytes() != read_shipped(shipped).encode()


def _first(directories: Sequence[str], name: str) -> str:
    paths = (Path(directory) / name for directory in directories if directory)
    return next((str(path) for path in paths if path.exists()), "")
