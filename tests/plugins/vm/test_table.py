# SPDX-License-Identifier: MIT
"""The tables of docs/vm.md, and that which `burst lead init` writes."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

from burst_vm.provider_type import TYPE
from burst_vm.settings import VmSettings

from burst.config import convert, parse
from burst.model.shape import Shape
from burst.provider_type import NodesRequest, TableRequest

PAGE = (Path(__file__).parents[3] / "docs/vm.md").read_text()


def test_the_tables_of_the_page_are_read_and_a_lease_ends() -> None:
    texts = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    found = [
        convert(VmSettings, table.options, "vm")
        for text in texts
        if "[providers." in text
        for table in parse(tomllib.loads(text), "docs/vm.md").providers.values()
    ]
    assert [each.driver for each in found] == ["ec2", "azure_arm"]
    assert math.isfinite(found[0].lifetime)


def test_the_table_that_lead_init_writes_works_once_it_is_filled_in() -> None:
    nodes = NodesRequest(name="nodes", shape=Shape(8), nodes=4)
    text = TYPE.table_template(TableRequest(each=(nodes,), total=8))
    filled = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    table = tomllib.loads(filled)["providers"]["vm"]
    assert table.pop("type") == "vm"
    found = convert(VmSettings, table, "vm")
    assert found.offers["nodes"].max_nodes == 4
    assert math.isfinite(found.lifetime)
