# SPDX-License-Identifier: MIT
"""The optional interface by which a provider's package adds flags to `run-burst`.

The package registers an object that implements `RunBurstFlags` as an entry point of the
group `burst.run_burst_flags`, named as the provider's type. `run-burst --help` lists
the flags of all installed packages. It imports the module, so the module should import
no SDK: that an SDK is not installed is an error only once the provider is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from burst.model.shape import Shape

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
    """The flags of one provider type, and what their values mean."""

    flags: Sequence[ProviderFlag]

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the keys of `[providers.NAME]`, with what the flags say.

        `given` has the values by flag name, `table` what the settings file has, and
        `nodes` is the size of the rank slot. Raises ConfigError.
        """
        ...

    def notes(
        self, given: Mapping[str, str], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """Return what a user should know before anything is made, a line for each.

        `options` is what that method returned.
        """
        ...


@runtime_checkable
class TableTemplate(Protocol):
    """An optional interface of the same object: the table for `burst lead init`."""

    def table_template(self, kind: str, shape: Shape, nodes: int) -> str:
        """Return the text of `[providers.KIND]`, as TOML.

        What a site has to fill in is a comment. `shape` is what R declares for the
        nodes of rank slots, `nodes` how many the largest slot has. Raises ConfigError.
        """
        ...
