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
from tests.flux.fake_handle import Answer, FakeHandle, Fault


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
    if refused:
        with pytest.raises(ConfigError, match="cannot change the constraints"):
            check(mode, table, answer)
    else:
        check(mode, table, answer)


@pytest.mark.parametrize(
    ("mode", "frobnicator", "says"),
    [
        ("hold", {}, "the burst frobnicator is not loaded"),
        ("hold", {"mode": "queue"}, "has mode = 'queue' instead"),
        ("hold", {"mode": "hold", "any_job": True}, "has any_job = True instead"),
        ("hold", {"mode": "hold", "share_users": True}, "has share_users = True"),
        ("queue", {"mode": "queue"}, "has queue = '' instead"),
    ],
)
def test_a_lead_with_guests_has_to_keep_them_apart(
    mode: Any, frobnicator: dict[str, Any], says: str
) -> None:
    table = {"plugins": [NAME], "burst": frobnicator} if frobnicator else {}
    with pytest.raises(ConfigError, match=says) as raised:
        check(mode, table)
    assert "share_users = true" in str(raised.value)


def check(mode: Any, table: dict[str, Any], answer: Answer = None) -> None:
    """Check a lead whose frobnicator has this table."""
    config = {"ingest": {"frobnicator": table}}
    answers = {"config.get": lambda _: config, POST: lambda _: answer}
    client = RpcClient(FakeHandle(answers).as_handle())
    check_users_apart(client, IntakeSettings(mode=mode))
