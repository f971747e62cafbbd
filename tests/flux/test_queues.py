# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
from typing import Any

import pytest

from burst.errors import Unreadable
from burst.flux.queues import read_queues
from burst.flux.rpc import RpcClient
from burst.model.lead import QueueView
from tests.flux.fake_handle import FakeHandle, Fault

STATUS = "job-manager.queue-status"
STOPPED = {"enable": True, "start": False, "stop_reason": "no starts today"}
DISABLED = {"enable": False, "start": True, "disable_reason": "no bursts today"}


LIST = "job-manager.queue-list"


def client(answers: Any, names: list[str]) -> RpcClient:
    handle = FakeHandle({STATUS: answers, LIST: lambda _: {"queues": names}})
    return RpcClient(handle.as_handle())


def test_each_queue_is_asked_by_its_name() -> None:
    named = {"long": STOPPED, "burst": DISABLED}
    found = read_queues(client(lambda payload: named[payload["name"]], [*named]))
    assert found == {
        "long": QueueView(started=False, reason="no starts today"),
        "burst": QueueView(enabled=False, reason="no bursts today"),
    }


def test_the_queue_without_a_name_is_asked_where_there_is_no_other() -> None:
    asked: list[Any] = []

    def status(payload: Any) -> dict[str, Any]:
        asked.append(payload)
        return {"enable": True, "start": True}

    assert read_queues(client(status, [])) == {"": QueueView()}
    assert asked == [{}]


def test_a_queue_that_is_gone_is_left_out_and_silence_is_unreadable() -> None:
    assert read_queues(client(lambda _: Fault(errno.EINVAL), ["old"])) == {}
    with pytest.raises(Unreadable):
        read_queues(client(lambda _: Fault(errno.ENOSYS), ["old"]))
