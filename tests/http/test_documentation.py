# SPDX-License-Identifier: MIT
"""docs/monitoring.md says of paths, settings and notices what the code does."""

import re
from pathlib import Path

import msgspec

from burst.config import HttpSettings, NotifySettings
from burst.http.daemon_routes import daemon_routes
from burst.runtime.daemon_state import DaemonState
from burst.runtime.notifier import LEAD_LOST
from burst.runtime.tally import Tally

TOP = Path(__file__).parents[2]
TEXT = (TOP / "docs" / "monitoring.md").read_text("utf-8")


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table whose first column has that title."""
    lines = TEXT.splitlines()
    (head,) = (n for n, line in enumerate(lines) if line.startswith(f"| {title} |"))
    found = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def test_the_table_has_each_route() -> None:
    routes = daemon_routes(DaemonState(Tally()))
    assert [row[0] for row in rows("path")] == [f"`{route.path}`" for route in routes]


def test_each_setting_is_told() -> None:
    for table in (HttpSettings, NotifySettings):
        for field in msgspec.structs.fields(table):
            assert f"\n{field.name} = " in TEXT or f"`{field.name}`" in TEXT


def test_the_table_has_each_kind_of_notice() -> None:
    code = (TOP / "burst" / "core" / "notices.py").read_text("utf-8")
    made = set(re.findall(r'id=f"([a-z]+)/', code))
    made |= {"halt", "budget-warn", "budget-spent", LEAD_LOST}
    assert {row[0].strip("`").partition("/")[0] for row in rows("notice")} == made
