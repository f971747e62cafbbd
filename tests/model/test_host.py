# SPDX-License-Identifier: MIT
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.model.host import dns_label, is_host_name, is_loopback


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("burst-0-3", True),
        ("A.example.org", True),
        ("9", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("", False),
        ("a..b", False),
        ("a_b", False),
        ("-a", False),
        ("a-", False),
        ("a\n", False),
        (".".join(["x" * 63] * 4), False),
    ],
)
def test_host_names_are_dns_labels(name: str, valid: bool) -> None:
    assert is_host_name(name) == valid


@pytest.mark.parametrize(
    ("text", "longest", "label"),
    [
        ("Node_7.example", 63, "node-7-example"),
        ("a--b", 63, "a--b"),
        ("--", 63, "lead"),
        ("abc-def", 4, "abc"),
    ],
)
def test_a_label_is_made_of_any_text(text: str, longest: int, label: str) -> None:
    assert dns_label(text, "lead", longest) == label


@given(st.text(), st.integers(min_value=1, max_value=63))
def test_what_is_made_is_a_label(text: str, longest: int) -> None:
    label = dns_label(text, "x", longest)
    assert is_host_name(label)
    assert len(label) <= longest
    assert "." not in label
    assert dns_label(label, "x", longest) == label


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("::1%lo", True),
        ("localhost", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_loopback_is_told_without_a_lookup(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback
