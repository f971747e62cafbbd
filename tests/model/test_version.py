# SPDX-License-Identifier: MIT
import pytest

from burst.model.version import major_minor


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.88.0", (0, 88)),
        ("0.88.0-12-gabc1234", (0, 88)),
        ("0.9", (0, 9)),
        ("1.0rc1", (1, 0)),
    ],
)
def test_major_and_minor_count(text, numbers):
    assert major_minor(text) == numbers


@pytest.mark.parametrize("text", ["", "0", "x.88", "v0.88.0", ".88", "0."])
def test_anything_else_is_no_version(text):
    with pytest.raises(ValueError, match="not a version of Flux"):
        major_minor(text)
