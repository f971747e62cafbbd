# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
from typing import Any

import pytest

from burst.errors import Unreadable
from burst.flux.queues import read_queues
from burst.flux.rpc import RpcClient
from tests.flux.fake_handle import FakeHandle, Fault

STATUS = "job-manager.queue-status"
STOPPED = {"enable": True, "start": False, "stop_reason": "no starts today"}
DISABLED = {"enable": False, "start": True, "disable_reason": "no bursts today"}


LIST = "job-manager.queue-list"


def client(answers: Any, names: list[str]) -> RpcClient:
    handle = FakeHandle({STATUS: answers, LIST: lambda _: {"queues": names}})
    return RpcClient(handle.as_handle())


def test_a_queue_that_is_gone_is_left_out_and_silence_is_unreadable() -> None:
    assert read_queues(client(lambda _: Fault(errno.EINVAL), ["old"])) == {}
    with pytest.raises(Unreadable):
        read_queues(client(lambda _: Fault(errno.ENOSYS), ["old"]))
