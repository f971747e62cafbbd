# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
from typing import Any

import msgspec
import pytest

from burst.errors import LeadError
from burst.flux.job_requests import read_ended
from burst.flux.rpc import RequestFailed, RpcClient, ServiceMissing
from burst.model.jobid import JobId
from tests.flux.fake_handle import Answer, FakeHandle, Fault

GETATTR = "job-manager.getattr"
KEPT = {"eventlog": [{"name": "clean"}], "jobspec": {"version": 1}}
RAN, WAITED, PURGED, UNREAD = map(JobId, (1, 2, 3, 4))


def client(trouble: Fault | None = None) -> RpcClient:
    """Return a client of a job manager that keeps jobs RAN and WAITED."""

    def answer(asked: Any) -> Answer:
        job, (first, *_) = asked["id"], asked["attrs"]
        if job == UNREAD:
            return trouble
        if job == PURGED:
            return Fault(errno.EINVAL, "unknown job")
        if first != "R":
            return KEPT
        return {"R": {"version": 1}} if job == RAN else Fault(errno.ENOENT, "R is NULL")

    return RpcClient(FakeHandle({GETATTR: answer}).as_handle())


def test_jobs_are_read_with_their_allocation_and_purged_ones_are_left_out() -> None:
    found = read_ended(client(), [PURGED, WAITED, RAN])
    assert {job: msgspec.json.decode(text) for job, text in found.items()} == {
        RAN: {**KEPT, "R": {"version": 1}},
        WAITED: KEPT,
    }


@pytest.mark.parametrize(
    ("errnum", "kind"), [(errno.ENOSYS, ServiceMissing), (errno.ENOMEM, RequestFailed)]
)
def test_a_job_that_cannot_be_read_now_is_not_taken_to_be_purged(
    errnum: int, kind: type[LeadError]
) -> None:
    with pytest.raises(kind):
        read_ended(client(Fault(errnum)), [RAN, UNREAD])
