# SPDX-License-Identifier: MIT
"""Jobspecs: built as flux submit builds them, and read."""

from __future__ import annotations

from typing import Any

import pytest
from burst_embedded.jobspec import (
    Command,
    Wanted,
    build_jobspec,
    parse_command,
    parse_requires,
    parse_setattr,
    set_attribute,
)

from burst.errors import JobspecError
from burst.model.request import (
    ResourceRequest,
    parse_request,
)


@pytest.mark.parametrize(
    ("wanted", "request_"),
    [
        (Wanted(), ResourceRequest(nodes=0, slots=1, cores_per_slot=1)),
        (Wanted(slots=3, cores=2), ResourceRequest(nodes=0, slots=3, cores_per_slot=2)),
        (
            Wanted(nodes=4),
            ResourceRequest(nodes=4, slots=4, cores_per_slot=1, exclusive=True),
        ),
        (
            Wanted(nodes=2, slots=6, cores=2, gpus=1),
            ResourceRequest(nodes=2, slots=6, cores_per_slot=2, gpus_per_slot=1),
        ),
    ],
)
def test_resources_are_read_as_they_were_meant(
    wanted: Wanted, request_: ResourceRequest
) -> None:
    assert parse_request(build_jobspec(["true"], wanted, {})) == request_


@pytest.mark.parametrize("slots", [3, 1])
def test_slots_that_do_not_spread_evenly_are_refused(slots: int) -> None:
    with pytest.raises(JobspecError, match="evenly"):
        build_jobspec(["true"], Wanted(nodes=2, slots=slots), {})


def test_the_command_is_read_with_its_surroundings() -> None:
    system = {"cwd": "/tmp", "environment": {"A": "b"}}
    command = parse_command(build_jobspec(["echo", "x"], Wanted(), system))
    assert command == Command(("echo", "x"), "/tmp", {"A": "b"})


@pytest.mark.parametrize(
    "change",
    [
        {"tasks": []},
        {"tasks": [{"command": ["x"], "slot": "task"}]},
        {"tasks": [{"command": ["x"], "count": {"per_slot": 2}}]},
        {"tasks": [{"command": ["x"], "count": {"total": 2}}]},
        {"tasks": [{"command": [], "count": {"per_slot": 1}}]},
        {"tasks": [{"command": "x", "count": {"per_slot": 1}}]},
        {"tasks": [{"command": [1], "count": {"per_slot": 1}}]},
        {"tasks": None},
        {"attributes": {}},
        {"attributes": {"system": {"environment": {"A": 1}}}},
        {"attributes": {"system": {"cwd": 1}}},
    ],
)
def test_a_command_that_cannot_be_read_is_refused(change: dict[str, Any]) -> None:
    jobspec = {**build_jobspec(["true"], Wanted(), {}), **change}
    with pytest.raises(JobspecError):
        parse_command(jobspec)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("burstable", ("burstable", True)),
        ("burstable=", ("burstable", "")),
        ("burst.provider=local", ("burst.provider", "local")),
        ("n=3", ("n", 3)),
        ("o={}", ("o", {})),
        ("eq=a=b", ("eq", "a=b")),
    ],
)
def test_setattr(text: str, expected: tuple[str, Any]) -> None:
    assert parse_setattr(text) == expected


def test_dotted_keys_are_set_under_system() -> None:
    system: dict[str, Any] = {"burst": {"old": 1}}
    set_attribute(system, "burst.provider", "local")
    set_attribute(system, "system.a.b", 1)
    set_attribute(system, "attributes.system.c", 2)
    assert system == {"burst": {"old": 1, "provider": "local"}, "a": {"b": 1}, "c": 2}
    with pytest.raises(JobspecError, match="value already"):
        set_attribute(system, "c.d", 1)


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("burst", {"properties": ["burst"]}),
        ("^burst", {"properties": ["^burst"]}),
        ("burst,^slow", {"properties": ["burst", "^slow"]}),
    ],
)
def test_requires(text: str, constraint: dict[str, Any]) -> None:
    assert parse_requires(text) == constraint


@pytest.mark.parametrize("text", [" ", "a|b", "(a)", ",", "rank:2"])
def test_requires_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(JobspecError, match="constraint"):
        parse_requires(text)
