# SPDX-License-Identifier: MIT
"""A job whose events become unreadable while it is given its result."""

from __future__ import annotations

from typing import Any

from burst.flux.finish_job import POST, finish_job
from burst.flux.rpc import RpcClient
from burst.model.jobid import JobId
from tests.flux.fake_handle import FakeHandle

HELD = {"timestamp": 1.0, "name": "priority", "context": {"priority": 0}}


def test_its_prolog_is_closed_and_the_result_is_left_to_an_exception() -> None:
    posted: list[str] = []
    logs: list[Any] = [[HELD], "not events"]

    def post(event: Any) -> dict[str, Any]:
        posted.append(event["name"])
        return {}

    services = {
        "job-manager.getattr": lambda _: {"eventlog": logs.pop(0)},
        "config.get": lambda _: {},
        "kvs.commit": lambda _: {},
        POST: post,
    }
    client = RpcClient(FakeHandle(services).as_handle())
    assert not finish_job(client, JobId(1), 0, "")
    assert posted == ["set-flags", "prolog-start", "prolog-finish"]
