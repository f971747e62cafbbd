# SPDX-License-Identifier: MIT
"""Facts to findings: whether Flux would drain followers that are as they should be."""

from typing import Any

import pytest

from burst.doctor.check_resources import check_resources
from tests.builders import settings
from tests.doctor.reading import NOTE, WRONG, check_told

LOCAL = {"local": {"type": "local"}}


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ({}, 'default = "allow-extra", gpu = "ignore", hostname = "ignore"'),
        ({"verify": True}, '[resource.verify] default = "strict", hostname = "ignore"'),
        ({"verify": {}}, '[resource.verify] hostname = "ignore"'),
        ({"verify": {"default": "allow-extra"}}, "[resource.verify] hostname"),
        ({"verify": False}, ""),
        ({"verify": {"default": "ignore"}}, ""),
        ({"verify": {"default": "ignore", "hostname": "ignore"}}, ""),
        ({"noverify": True}, ""),
    ],
)
def test_hosts_of_another_name_are_not_drained(
    table: dict[str, Any], advice: str
) -> None:
    found = check_resources({"resource": table}, settings(providers=LOCAL))
    check_told(found, ([WRONG] if advice else []), advice)
    assert list(check_resources({"resource": table}, settings())) == []


def test_a_path_that_flux_does_not_read_is_told() -> None:
    both = {"path": "/etc/R", "config": [{"hosts": "a"}]}
    check_told(check_resources({"resource": both}, settings()), [NOTE], "does not read")


@pytest.mark.parametrize("default", [{}, {"default": "allow-extra"}])
def test_own_nodes_of_another_name_are_told(default: dict[str, str]) -> None:
    config = {"resource": {"verify": {**default, "hostname": "ignore"}}}
    (found,) = check_resources(config, settings(providers=LOCAL))
    assert found.level is NOTE
    assert "would not drain an own node that has another's name" in found.what
    assert found.advice.startswith("followers of provider local need it; once there")
    (found,) = check_resources(config, settings())
    assert found.level is NOTE
    assert found.advice.startswith("no provider needs it any more: run `burst")
