# SPDX-License-Identifier: MIT
"""Asks the own hosts of the lead, other than that of rank 0, for what Flux loads there.

Each broker reads the files of its own host, and takes jobs that are submitted there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from burst.doctor.calls import try_call
from burst.doctor.facts import OwnHostFacts, ReadFailure
from burst.flux.bindings import find_program
from burst.flux.frobnicator import NAME, is_disabled
from burst.flux_setup.running_instance import RunningInstance
from burst.kits.program import run
from burst.model.confinement import LENT
from burst.model.lead import LeadIdentity
from burst.model.ranks import format_hostlist, format_idset

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
