# SPDX-License-Identifier: MIT
"""Flags of `run-burst` that a provider type brings, as an optional side of a plug-in.

A package names an object such as `RunBurstFlags` under the entry point group
`burst.run_burst_flags`, with the provider's type as its name. `run-burst --help` lists
the flags of all that are installed. It imports the module, so that module should import
no SDK: what is not installed can be told later, with the name of the extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

GROUP = "burst.run_burst_flags"


class ProviderFlag(msgspec.Struct, frozen=True):
    """One flag with a value, such as `--machine-type n2-standard-8`."""

    name: str
    """Without the dashes in front: `machine-type`."""
    help: str
    selects: bool = False
    """Where it is given and `--provider` is not, this type of provider is used."""
    is_file: bool = False
    """The value is the path of a file, which has to exist."""
    ignored: bool = False
    """It is accepted and has no effect; `notes` says why."""


class RunBurstFlags(Protocol):
    """What `run-burst` asks of a provider type."""

    flags: Sequence[ProviderFlag]

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the keys of `[providers.NAME]`, with what the flags say.

        `given` has the values by flag name, `table` what the settings file has, and
        `nodes` is the size of the rank slot. Raises ConfigError.
        """
        ...

    def notes(self, given: Mapping[str, str]) -> Sequence[str]:
        """Return what a user should know before anything is made, a line for each."""
        ...
