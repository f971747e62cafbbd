# SPDX-License-Identifier: MIT
"""Each key of burst.toml that a page names with its table, or shows, exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from burst.config import Settings, parse
from burst.config.convert import Table
from tests.docs.doc_pages import PAGES, TOP

_TABLES = ("lead", "daemon", "intake", "plan", "guests", "deadlines", "http", "notify")
_SHOWN = {*_TABLES, "prices", "budget", "policy"}
_PROVIDERS = {name: {"type": "any"} for name in ("gke", "kube", "local")}
_BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.M | re.S)
_NAMED = re.compile(rf"`\[({'|'.join(_TABLES)})\] (\w+)")


def unknown_keys(text: str) -> list[str]:
    """Return what a page names and no table has, as `[table] key`."""
    settings = Settings()
    return [
        f"[{table}] {key}"
        for table, key in _NAMED.findall(" ".join(text.split()))
        if not _is_key(getattr(settings, table), key)
    ]


def _is_key(table: Table, key: str) -> bool:
    return key in table.__struct_fields__ and key not in table.retired


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_each_key_that_is_named_exists(page: Path) -> None:
    assert unknown_keys(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_the_tables_that_are_shown_are_read(page: Path) -> None:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        tables = tomllib.loads(block)
        shown = {name: tables[name] for name in tables.keys() & _SHOWN}
        parse({**shown, "providers": _PROVIDERS}, str(page))


def test_a_key_that_is_gone_is_found() -> None:
    text = "set `[deadlines] idle`, and `[deadlines]\nreservation = 3`"
    text += " or `[deadlines] rejoin`"
    assert unknown_keys(text) == ["[deadlines] reservation", "[deadlines] rejoin"]
