# SPDX-License-Identifier: MIT
"""Looks for the files that `burst setup` installs, where Flux looks for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from burst.doctor.calls import try_call
from burst.doctor.facts import InstalledFacts, OwnHostFacts, ReadFailure
from burst.flux.bindings import find_program
from burst.flux.frobnicator import NAME, is_disabled
from burst.flux.identity import BootInfo
from burst.flux_setup.running_instance import RunningInstance
from burst.flux_setup.setup_files import (
    read_shipped,
    single_directory,
    system_directories,
    user_directories,
)
from burst.kits.program import run
from burst.model.confinement import LENT
from burst.model.lead import LeadIdentity
from burst.model.ranks import format_hostlist, format_idset

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


_FILE, _TABLE = "file", "table"
# A configuration that is no file, such as one on the command line, is not compared.
_SCRIPT = f"""\
[ -r "$0" ] || echo {_FILE}
place=$(flux getattr config.path) || exit 0
cat "$place" "$place"/*.toml 2>/dev/null | grep -qF "$0" || echo {_TABLE}
"""


def read_own_hosts(
    uri: str,
    instance: RunningInstance,
    lead: LeadIdentity,
    ask: Callable[[Sequence[str]], str] = run,
) -> OwnHostFacts | ReadFailure | None:
    """Return which hosts lack the frobnicator; None if no host has to have it.

    The own hosts other than that of rank 0 are asked for what Flux loads there: each
    broker reads the files of its own host, and takes jobs that are submitted there.

    Only the owner of the instance may ask. `ask` runs a program.
    """
    ours = (each for each in instance.frobnicators if os.path.basename(each) == NAME)
    path = next(filter(os.path.isabs, ours), "")
    others = instance.online - lead.properties.get(LENT, frozenset()) - {0}
    if not path or not others or is_disabled(instance.config):
        return None
    at = ["env", f"FLUX_URI={uri}"] if uri else []
    where = [find_program(), "exec", "-n", "-l", "-r", format_idset(others)]
    said = try_call(lambda: ask([*at, *where, "sh", "-c", _SCRIPT, path]))
    if isinstance(said, ReadFailure):
        return said
    return OwnHostFacts(
        path=path,
        without_file=_hosts(said, _FILE, lead.hosts),
        without_table=_hosts(said, _TABLE, lead.hosts),
    )


def _hosts(said: str, word: str, hosts: Sequence[str]) -> str:
    """Return the hosts whose rank said this word, in lines `RANK: WORD`."""
    pairs = (line.split(": ", 1) for line in said.splitlines() if ": " in line)
    ranks = sorted(int(rank) for rank, told in pairs if told == word)
    return format_hostlist(hosts[rank] for rank in ranks)
