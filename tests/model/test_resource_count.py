# SPDX-License-Identifier: MIT
"""Counts of resources: the bound that Flux has. Their forms: test_flux_oracle.py."""

from typing import Any

import pytest

from burst.model.resource_count import fluxion_reads, read_count


@pytest.mark.parametrize("form", [int, str, "{}+".format, lambda n: {"min": n}])
def test_a_count_is_an_int_of_c(form: Any) -> None:
    assert read_count(form(2**31 - 1)) == (2**31 - 1, False)
    with pytest.raises(ValueError, match="larger than Flux supports"):
        read_count(form(2**31))


@pytest.mark.parametrize(
    ("count", "least", "discrete"),
    [
        ({"min": 2, "max": 8, "operator": "*", "operand": 2}, 2, True),
        ("2-8:2", 2, True),
        ("2-8:2:^", 2, True),
        ("3,7-9", 3, True),
        ({"min": 2, "max": 8, "operator": "+", "operand": 1}, 2, False),
        ({"min": 2}, 2, False),
        ("2-8:1", 2, False),
        ("2-8", 2, False),
        ("[4]", 4, False),
    ],
)
def test_a_count_by_steps_or_in_a_set_is_discrete(
    count: object, least: int, discrete: bool
) -> None:
    assert read_count(count) == (least, discrete)


@pytest.mark.parametrize(
    ("count", "reads"),
    [
        *((1, True), ("1", True), ("1-2", False), ("1+", False), ("[1]", False)),
        *(({"min": 1}, True), ({"min": 1, "max": 2}, False)),
        ({"min": 1, "max": 8, "operator": "*", "operand": 2}, True),
    ],
)
def test_fluxion_reads_numbers_and_whole_ranges(count: object, reads: bool) -> None:
    """As Fluxion itself does: tests/flux/test_fluxion.py."""
    assert fluxion_reads(count) is reads
