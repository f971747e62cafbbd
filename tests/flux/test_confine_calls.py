# SPDX-License-Identifier: MIT
"""What is asked of Flux to confine jobs, and before jobs of guests are let in."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.errors import ConfigError
from burst.flux.confine import confine_jobs
from burst.flux.finish_job import POST
from burst.flux.frobnicator import NAME, check_users_apart
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId
from tests.flux.fake_handle import FakeHandle, Fault


def test_a_jobspec_that_cannot_be_read_keeps_no_other_job_back() -> None:
    posted: list[int] = []
    plain: dict[str, Any] = {"jobspec": {"attributes": {"system": {}}}}
    answers: dict[int, Any] = {1: {"jobspec": 7}, 2: Fault(errno.ENOENT, "gone")}

    def post(event: dict[str, Any]) -> dict[str, Any]:
        posted.append(event["id"])
        return {}

    getattr_ = {"job-manager.getattr": lambda asked: answers.get(asked["id"], plain)}
    client = RpcClient(FakeHandle({**getattr_, POST: post}).as_handle())
    lent = {JobId(number): frozenset({2}) for number in (1, 2, 3)}
    failures = confine_jobs(client, lent)
    assert posted == [3]
    assert failures.keys() == {1, 2}
    assert "its jobspec cannot be read" in failures[JobId(1)]


@pytest.mark.parametrize(
    ("mode", "answer", "refused"),
    [
        ("hold", Fault(errno.ENOENT), False),
        ("hold", Fault(errno.ENOSYS), True),
        ("scheduler", Fault(errno.ENOSYS), False),
    ],
)
def test_only_a_scheduler_of_ours_needs_no_change_of_constraints(
    mode: Any, answer: Fault, refused: bool
) -> None:
    table = {"plugins": [NAME], "burst": {"mode": mode}}
    broker = FakeHandle(
        {
            "config.get": lambda _: {"ingest": {"frobnicator": table}},
            POST: lambda _: answer,
        }
    )
    client, intake = RpcClient(broker.as_handle()), IntakeSettings(mode=mode)
    if refused:
        with pytest.raises(ConfigError, match="cannot change the constraints"):
            check_users_apart(client, intake)
    else:
        check_users_apart(client, intake)
