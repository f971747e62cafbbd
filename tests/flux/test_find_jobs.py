# SPDX-License-Identifier: MIT
"""Jobs are found by their names, however many jobs the instance has."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from burst.errors import LeadError
from burst.flux.job_requests import find_jobs
from burst.flux.rpc import RpcClient
from burst.lead import NewJob
from tests.contract.submitting import ids, jobspec
from tests.flux.fake_handle import Answer, FakeHandle, Fault
from tests.flux_pool import FluxPool

JOBS = 20
COMPARISONS = 40
"""More than one name needs, and far fewer than all names at once."""


@pytest.mark.flux
def test_many_names_are_found_among_many_jobs(flux_pool: FluxPool) -> None:
    names = [f"step-{number}" for number in range(JOBS)]
    with flux_pool.lend() as instance:
        instance.reload_config({"job-list": {"max_comparisons": COMPARISONS}})
        with closing(instance.lead()) as lead:
            new = [NewJob(jobspec(name, "true"), urgency=0) for name in names]
            made = ids(lead.submit_jobs(new))
            wanted = dict(zip(names, made, strict=True))
            others = [f"other-{number}" for number in range(180)]
            assert lead.find_jobs([*names, *others]) == wanted


def test_a_request_has_one_name_and_a_failure_is_no_answer() -> None:
    def answer(asked: Any) -> Answer:
        (name,) = asked["constraint"]["name"]
        if name == "fails":
            return Fault(22, "Excessive comparisons made")
        return {"jobs": [{"id": 3, "name": name}, {"id": 5, "name": name}]}

    client = RpcClient(FakeHandle({"job-list.list": answer}).as_handle())
    assert find_jobs(client, ["a", "b"]) == {"a": 5, "b": 5}
    assert find_jobs(client, []) == {}
    with pytest.raises(LeadError, match="Excessive"):
        find_jobs(client, ["a", "fails"])
