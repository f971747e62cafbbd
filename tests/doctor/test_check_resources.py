# SPDX-License-Identifier: MIT
"""Facts to findings: whether Flux would drain followers that are as they should be."""

from typing import Any

import pytest

from burst.doctor.check_config import check_resources
from tests.builders import settings
from tests.doctor.reading import NOTE, WRONG, levels, said

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
def test_followers_on_a_host_of_another_name_are_not_to_be_drained(
    table: dict[str, Any], advice: str
) -> None:
    found = list(check_resources({"resource": table}, settings(providers=LOCAL)))
    assert levels(found) == ([WRONG] if advice else [])
    assert advice in said(found)
    assert list(check_resources({"resource": table}, settings())) == []


def test_a_path_that_flux_does_not_read_is_told() -> None:
    both = {"path": "/etc/R", "config": [{"hosts": "a"}]}
    (found,) = check_resources({"resource": both}, settings())
    assert found.level is NOTE
    assert "does not read" in found.what


@pytest.mark.parametrize("default", [{}, {"default": "allow-extra"}])
def test_own_nodes_of_another_name_that_flux_would_not_notice_are_told(
    default: dict[str, str],
) -> None:
    config = {"resource": {"verify": {**default, "hostname": "ignore"}}}
    (found,) = check_resources(config, settings(providers=LOCAL))
    assert found.level is NOTE
    assert "would not drain an own node that has the name of another" in found.what
    assert found.advice.startswith("followers of provider local need it; once there")
    (found,) = check_resources(config, settings())
    assert found.level is NOTE
    assert found.advice.startswith("no provider needs it any more: run `burst")
