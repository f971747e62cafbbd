# SPDX-License-Identifier: MIT
"""Each key of burst.toml that a page names with its table, or shows, exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from burst.config import Settings, parse
from burst.config.convert import Table
from burst.provider_type import installed_types
from tests.docs.doc_pages import PAGES, TOP

_TABLES = ("lead", "daemon", "intake", "plan", "guests", "deadlines", "http", "notify")
_TOML = re.compile(r"^```toml\n(.*?)^```", re.M | re.S)
_NAMED = re.compile(rf"`\[({'|'.join(_TABLES)})\] (\w+)")


def unknown_keys(text: str) -> list[str]:
    """Return what a page names and no table has, as `[table] key`."""
    settings = Settings()
    return [
        f"[{table}] {key}"
        for table, key in _NAMED.findall(" ".join(text.split()))
        if not _is_key(getattr(settings, table), key)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_the_settings_of_a_page_are_read(page: Path) -> None:
    for text in _TOML.findall(page.read_text(encoding="utf-8")):
        tables = tomllib.loads(text)
        if tables.keys() <= set(Settings.__struct_fields__):
            # A page may leave out what others tell.
            given = tables.get("providers", {})
            names = (*installed_types(), *given)
            known = {name: {"type": "local"} | given.get(name, {}) for name in names}
            parse({**tables, "providers": known}, str(page))


def _is_key(table: Table, key: str) -> bool:
    return key in table.__struct_fields__ and key not in table.retired


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_each_key_that_is_named_exists(page: Path) -> None:
    assert unknown_keys(page.read_text(encoding="utf-8")) == []


def test_a_key_that_is_gone_is_found() -> None:
    text = "set `[deadlines] idle`, and `[deadlines]\nreservation = 3`"
    text += " or `[deadlines] rejoin`"
    assert unknown_keys(text) == ["[deadlines] reservation", "[deadlines] rejoin"]
