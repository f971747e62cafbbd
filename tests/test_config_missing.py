# SPDX-License-Identifier: MIT
"""Keys that a table lacks are told at once, each with what it is for; and keys that it
does not have, with those that were meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import pytest

from burst.config import convert
from burst.config.convert import KeyProblem
from burst.config.key_docs import key_docs


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    size: int
    """GKE's machine type ([gke.md](gke.md)). Its text goes on."""
    name: str


class Outer(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    uri: str
    """Of the other instance:
    by socket."""
    from_: Annotated[str, msgspec.Meta(min_length=1)]
    """A host; its name."""
    inner: Mapping[str, Inner] = {}
    each: tuple[Inner, ...] = ()
    maybe: Inner | None = None
    port: int = 1


class More(Outer, frozen=True, kw_only=True):
    time: int
    """How long."""


FULL: dict[str, Any] = {"uri": "a", "from": "b"}
SIZE_AND_NAME = "size, name are missing; set size (GKE's machine type (gke.md)), name"


@pytest.mark.parametrize(
    ("table", "key", "told"),
    [
        (
            {},
            "",
            "uri, from are missing; set uri (of the other instance), from (a host)",
        ),
        ({"uri": "a"}, "", "from is missing; set from (a host)"),
        (FULL | {"inner": {"a": {"size": 1, "name": "x"}, "b": {}}}, "inner.b", ""),
        (FULL | {"each": [{"size": 1, "name": "x"}, {}]}, "each[1]", ""),
        (FULL | {"maybe": {}}, "maybe", ""),
    ],
)
def test_all_keys_that_a_table_lacks_are_told(
    table: dict[str, Any], key: str, told: str
) -> None:
    with pytest.raises(KeyProblem) as raised:
        convert(Outer, table, "x")
    where = f"x: {key}: " if key else "x: "
    assert str(raised.value) == where + (told or SIZE_AND_NAME)
    assert raised.value.key == key


@pytest.mark.parametrize(
    ("inside", "key"),
    [
        ({"inner": {"b": {"sise": 1}}}, "inner.b.sise"),
        ({"each": [{"sise": 1}]}, "each[0].sise"),
        ({"maybe": {"sise": 1}}, "maybe.sise"),
    ],
)
def test_an_unknown_key_of_any_table_is_told_with_the_one_that_was_meant(
    inside: dict[str, Any], key: str
) -> None:
    with pytest.raises(
        KeyProblem, match=r"no such key; did you mean size\?$"
    ) as raised:
        convert(Outer, FULL | inside, "x")
    assert raised.value.key == key


def test_inherited_keys_are_told_too() -> None:
    with pytest.raises(KeyProblem, match=r"uri, from, time are .*, time \(how long\)$"):
        convert(More, {}, "x")


def test_what_is_wrong_otherwise_is_told_as_before() -> None:
    with pytest.raises(KeyProblem, match="x: port: Expected whole number"):
        convert(Outer, {**FULL, "port": "1"}, "x")
    assert convert(Outer, {**FULL, "maybe": None}, "x").maybe is None


def test_of_a_class_without_source_no_meaning_is_known() -> None:
    made = msgspec.defstruct("made", [("uri", str)])
    assert key_docs(made) == {}
    with pytest.raises(KeyProblem, match=r"uri is missing; set uri$"):
        convert(made, {}, "x")
