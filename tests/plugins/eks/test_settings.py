# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "eks"`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from burst_eks.provider import EksProvider
from burst_eks.provider_type import TYPE
from burst_eks.settings import EksSettings

from burst.config import convert, parse
from burst.errors import ConfigError
from burst.model.shape import Shape
from burst.provider_type import NodesRequest, TableRequest
from tests.plugins.eks.moto_eks import MotoEks

PAGE = (Path(__file__).parents[3] / "docs" / "eks.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"region": ""}, "region: Expected text in quotes of length >= 1"),
        ({"cluster": ""}, "cluster: Expected text in quotes of length >= 1"),
        ({"node_role": "nodes"}, "node_role: Expected text in quotes matching regex"),
        ({"subnets": []}, "subnets: Expected list of length >= 1"),
        ({"offers": {}}, "offers: Expected"),
        (
            {"offers": {"n": {"instance_types": [], "cores": 1, "max_nodes": 1}}},
            "instance_types: Expected list of length >= 1",
        ),
        ({"aws_secret_access_key": "x"}, "aws_secret_access_key"),
    ],
)
def test_a_wrong_key_is_named(eks: MotoEks, table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        eks.settings(**table)


def test_the_table_of_the_page_is_read() -> None:
    text = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    table = parse(tomllib.loads(text), "docs/eks.md").providers["eks"]
    assert table.type == "eks"
    found = convert(EksSettings, table.options, "providers.eks")
    assert found.offers["spot"].spot


def test_the_table_that_lead_init_writes_works_once_it_is_filled_in() -> None:
    shape = Shape(8)
    nodes = NodesRequest(name="nodes", shape=shape, nodes=4)
    text = TYPE.table_template(TableRequest(each=(nodes,), total=8))
    filled = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    settings = tomllib.loads(filled)
    assert settings["deadlines"]["lease"] == "24h"
    table = settings["providers"]["eks"]
    assert table.pop("type") == "eks"
    found = EksProvider("eks", convert(EksSettings, table, "providers.eks"), "owner-a")
    (offer,) = found.offers()
    assert (offer.shape, offer.max_nodes) == (shape, 4)
