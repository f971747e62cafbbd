# SPDX-License-Identifier: MIT
"""The table of a provider that `burst lead init` writes into burst.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from burst.errors import ConfigError
from burst.lead_setup.lead_plan import NO_PROVIDER
from burst.provider_type import (
    TableRequest,
    installed_types,
    package_errors,
    provider_type,
)

_NONE = """\
# Set up a provider here. Without one, no burst can be made.
# [providers.NAME]
# type = "TYPE"
"""
_KEY = re.compile(r"# ([a-z_]+) = ")


def provider_table(kind: str, wanted: TableRequest) -> str:
    """Return the table of an installed type of provider, or of `none`.

    Raises ConfigError.
    """
    if kind == NO_PROVIDER:
        return _NONE
    known = installed_types()
    if kind not in known:
        raise ConfigError(
            f"there is no provider of type {kind}",
            "there are " + ", ".join(sorted({NO_PROVIDER, *known})),
        )
    type_ = provider_type(kind)
    source = type(type_).__module__
    with package_errors(f"{source}: the table of provider type {kind} cannot be made"):
        text = type_.table_template(wanted)
        _check(text, kind)
    if not text:
        raise ConfigError(
            f"providers of type {kind} have no table to start from",
            f"use --provider {NO_PROVIDER}, and write the table by hand",
        )
    return text


def _check(text: str, kind: str) -> None:
    """Raise ValueError unless the text is empty or TOML with this provider's table."""
    if not text:
        return
    table = tomllib.loads(text).get("providers", {}).get(kind, {})
    if table.get("type") != kind:
        raise ValueError(f"it is not a table [providers.{kind}] with that type")


def tell_to_fill_in(settings: Path, kind: str, text: str) -> str:
    """Return a line that says what a person has to fill in; empty for nothing.

    `text` was written to `settings`; see `ProviderType.table_template`.
    """
    keys = ", ".join(dict.fromkeys(_keys_to_fill_in(text)))
    return f"fill in {keys} of [providers.{kind}] in {settings}" if keys else ""


def _keys_to_fill_in(text: str) -> Iterator[str]:
    asked = listed = False
    for line in text.splitlines():
        key = _KEY.match(line)
        if line.startswith("# Fill in"):
            asked, listed = True, False
        elif asked and key:
            listed = True
            yield key[1]
        elif listed or not line.startswith("#"):
            asked = listed = False
