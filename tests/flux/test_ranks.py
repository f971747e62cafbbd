# SPDX-License-Identifier: MIT
from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest.mock import ANY

import pytest
from msgspec.structs import replace

from burst.errors import Denied, Unreadable
from burst.flux.loop import Loop
from burst.flux.node_set import parse_nodes
from burst.flux.ranks import ResourceWatcher, read_ranks
from burst.flux.rpc import RpcClient
from burst.flux.scheduler_status import GRANT_DEADLINE_S, LostFrees, SchedulerStatus
from burst.model.lead import LeadView
from burst.model.shape import Shape
from tests.flux.fake_handle import Answer, FakeHandle, Fault
from tests.flux.rank_answers import ALL, NOTHING, resources, status
from tests.support.waiting import HANG_S

OURS = {"name": "sched-burst", "path": "/a/b.py", "services": ["sched"]}


def sched(allocated: Any = NOTHING, down: Any = NOTHING) -> dict[str, Any]:
    return {"all": ALL, "down": down, "allocated": allocated}


def fake(**services: Any) -> FakeHandle:
    """Return a broker of these services: `_` stands for a dot, `__` for a dash."""
    answers = {
        "resource.status": status(),
        "sched.resource-status": sched(),
        "resource.sched-status": sched(),
        "job-manager.resource-status": {"allocated": NOTHING},
    }
    for name, answer in services.items():
        answers[name.replace("__", "-").replace("_", ".")] = answer
    return FakeHandle({topic: constant(it) for topic, it in answers.items()})


def constant(answer: Any) -> Callable[[Any], Answer]:
    return answer if callable(answer) else lambda _: answer


def client(**services: Any) -> RpcClient:
    return RpcClient(fake(**services).as_handle())


def read(asked: RpcClient) -> LeadView:
    return read_ranks(asked, SchedulerStatus())


def test_shapes_are_counted_by_rank():
    nodes = parse_nodes(ALL)
    assert [nodes.shape(rank) for rank in range(5)] == [
        Shape(2, 0),
        Shape(4, 1),
        Shape(4, 1),
        Shape(4, 1),
        Shape(0, 0),
    ]
    assert nodes.ranks == {0, 1, 2, 3}


def test_sets_that_overlap_count_once():
    nodes = parse_nodes(resources(("1", "0-1", "")), resources(("1", "1-2", "")))
    assert nodes.shape(1) == Shape(3)


def test_allocated_is_what_either_of_scheduler_and_job_manager_says():
    ranks = read(
        client(
            sched_resource__status=sched(allocated=resources(("1", "0-1", ""))),
            job__manager_resource__status={"allocated": resources(("1-2", "1", "0"))},
        )
    )
    assert ranks.allocated == {1, 2}
    assert ranks.free == {0: Shape(2), 1: Shape(2), 2: Shape(3), 3: Shape(4, 1)}


def test_what_the_scheduler_alone_has_for_too_long_is_no_jobs_but_not_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [100.0]
    clock = partial(now.__getitem__, 0)
    status = SchedulerStatus(LostFrees(clock=clock), clock)
    given = {"": resources(("1-2", "0-1", "0"))}
    of_jobs = resources(("2", "0", "0"))
    asked = client(
        sched_resource__status=lambda _: sched(allocated=given[""]),
        job__manager_resource__status={"allocated": of_jobs},
        module_list={"mods": [OURS]},
        sched__burst_stats__get={"policy": "fifo"},
    )

    def after(seconds: float) -> LeadView:
        now[0] += seconds
        return read_ranks(asked, status)

    first = after(0)
    assert first.allocated == {1, 2}
    assert first.granting == {1: Shape(2, 1), 2: Shape(1)}
    assert after(GRANT_DEADLINE_S) == replace(first, read_at=ANY)
    lost = after(0.1)
    assert lost.allocated == {2}
    assert lost.unfreed == {1, 2}
    assert lost.granting == {}
    assert lost.free == first.free
    assert after(1) == replace(lost, read_at=ANY)
    [warning] = [record.getMessage() for record in caplog.records]
    assert "cores of ranks 1-2 allocated for 1m" in warning
    assert "flux module reload --name=sched-burst /a/b.py policy=fifo" in warning
    # Another core of a rank is given to a job that the job manager is to hear of.
    given[""] = resources(("1", "0-2", "0"))
    assert after(1).granting == {1: Shape(1, 1)}
    # The scheduler was loaded again: what it gives then is new.
    given[""] = NOTHING
    assert after(1).allocated == {2}
    given[""] = resources(("1", "0-1", ""))
    assert after(1).granting == {1: Shape(2)}


def test_a_drain_of_which_the_scheduler_never_hears_is_unreadable() -> None:
    asked = client(resource_status=status(drain={"2": {"reason": "x"}}))
    now = [0.0]
    known = SchedulerStatus(clock=partial(now.__getitem__, 0), heard_deadline_s=5.0)
    assert read_ranks(asked, known).allocated == {2}
    now[0] = 6.0
    with pytest.raises(Unreadable, match="not learned that 2 is drained"):
        read_ranks(asked, known)


def test_a_drained_rank_that_is_not_the_schedulers_is_no_matter():
    drain = {"7": {"reason": "excluded long ago"}}
    assert read(client(resource_status=status(drain=drain))).drained


@pytest.mark.parametrize(
    ("service", "fault", "error"),
    [
        ("resource_status", Fault(errno.ENOSYS), Unreadable),
        ("sched_resource__status", Fault(errno.ENOSYS), Unreadable),
        ("sched_resource__status", Fault(errno.EPERM), Denied),
        ("job__manager_resource__status", Fault(errno.ENOSYS), Unreadable),
        ("job__manager_resource__status", Fault(errno.EINVAL), Unreadable),
        ("resource_status", Fault(errno.EPROTO), Unreadable),
    ],
)
def test_what_does_not_answer_is_said(service, fault, error):
    with pytest.raises(error):
        read(client(**{service: fault}))


class TestBell:
    @pytest.fixture
    def broker(self) -> FakeHandle:
        return FakeHandle({})

    @pytest.fixture
    def rings(self, broker: FakeHandle) -> Iterator[threading.Semaphore]:
        rings = threading.Semaphore(0)
        loop = Loop(broker.as_handle(), "test")
        begun = threading.Event()
        broker.services["resource.journal"] = lambda _: begun.set()
        ResourceWatcher(loop, rings.release).start()
        assert begun.wait(HANG_S)
        yield rings
        loop.close()

    def test_it_rings_on_each_event_and_after_a_loss(
        self, broker: FakeHandle, rings: threading.Semaphore
    ) -> None:
        begun = threading.Semaphore(0)
        broker.services["resource.journal"] = lambda _: begun.release()
        broker.push("resource.journal", "unloaded", errno.ENODATA)
        assert rings.acquire(timeout=HANG_S)
        assert begun.acquire(timeout=HANG_S)
        broker.push("resource.journal", {"events": [{"name": "drain"}]})
        assert rings.acquire(timeout=HANG_S)
