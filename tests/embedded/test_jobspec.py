# SPDX-License-Identifier: MIT
"""What is read of a jobspec."""

from __future__ import annotations

from typing import Any

import pytest
from burst_embedded.job import parse_command
from burst_embedded.wire import RunTasks

from burst.errors import JobspecError
from tests.embedded.jobspecs import Wanted, build_jobspec


def test_the_command_is_read_with_its_surroundings() -> None:
    system = {"cwd": "/tmp", "environment": {"A": "b"}}
    order = parse_command(build_jobspec(["echo", "x"], Wanted(), system))
    assert order == RunTasks(0, (), ("echo", "x"), "/tmp", {"A": "b"})


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
