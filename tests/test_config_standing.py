# SPDX-License-Identifier: MIT
"""`[[providers.NAME.standing]]` of the settings file."""

from __future__ import annotations

from typing import Any

import pytest

from burst.config import StandingNodes, load, parse
from burst.errors import ConfigError


def test_a_file_has_standing_minimums(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text(
        '[providers.gke]\ntype = "gke"\nproject = "p"\n'
        "[[providers.gke.standing]]\nnodes = 2\n"
        '[[providers.gke.standing]]\nnodes = 4\noffer = "n2"\n'
        'hours = ["Mo-Fr 8-18", "Sa 22-6"]\n'
    )

    table = load(path).providers["gke"]

    assert table.standing == (
        StandingNodes(nodes=2),
        StandingNodes(nodes=4, offer="n2", hours=("Mo-Fr 8-18", "Sa 22-6")),
    )
    assert table.options == {"project": "p"}, "the plug-in has nothing of them"


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        ({"nodes": 2}, ": expected tables; write [[providers.gke.standing]]"),
        ([3], " 1: expected a table"),
        ([{"nodes": 2}, {"hours": "8-18"}], " 2: nodes is"),
        ([{"nods": 2}], " 1: nods: no such key; did you mean nodes?"),
        ([{"nodes": 0}], " 1: nodes: 0 is out of range; at least 1;"),
        (
            [{"nodes": 1, "hours": "Mo-Fr"}, {"nodes": 1, "hours": "8-"}],
            " 2: hours: not hours of the week: '8-'",
        ),
        (
            [{"nodes": 1, "hours": []}],
            " 1: hours: is empty; leave the key out",
        ),
    ],
)
def test_what_is_wrong_is_told(standing: Any, told: str):
    with pytest.raises(ConfigError) as error:
        parse({"providers": {"gke": {"type": "gke", "standing": standing}}}, "x")
    assert str(error.value).startswith(f"x: providers.gke.standing{told}")
