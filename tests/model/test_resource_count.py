# SPDX-License-Identifier: MIT
"""Counts of resources: the bound that Flux has. Their forms: test_flux_oracle.py."""

from typing import Any

import pytest

from burst.model.resource_count import least_count


@pytest.mark.parametrize("form", [int, str, "{}+".format, lambda n: {"min": n}])
def test_a_count_is_an_int_of_c(form: Any) -> None:
    assert least_count(form(2**31 - 1)) == 2**31 - 1
    with pytest.raises(ValueError, match="larger than Flux supports"):
        least_count(form(2**31))
