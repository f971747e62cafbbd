# SPDX-License-Identifier: MIT
"""Each knob of FakeProvider does what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.errors import InsufficientCapacity, NotFound, Refused, Transient
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Failure, Phase, Provider
from burst.testing import (
    FakeCloud,
    FakeProvider,
    FakeSettings,
    ProviderCall,
    example_lead,
    example_spec,
    isolate,
)
from tests.support.waiting import HANG_S


@pytest.fixture
def spec(tmp_path: Path) -> BurstSpec:
    return example_spec(example_lead(tmp_path), 0, "nodes", nodes=3)


@pytest.fixture
def fake() -> FakeProvider:
    return FakeProvider()


def phases(fake: FakeProvider) -> list[Phase]:
    return [status.phase for status in fake.observe()]


def only(fake: FakeProvider) -> BurstStatus:
    (status,) = fake.observe()
    return status


def test_it_is_a_provider(fake: FakeProvider) -> None:
    assert isinstance(fake, Provider)


def test_it_records_calls_with_those_that_raise(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.next_offers_error = Transient("busy")
    with pytest.raises(Transient):
        fake.offers()
    fake.provision(spec)
    fake.observe()
    fake.reap(spec.burst_id)
    assert fake.calls == [
        ProviderCall("offers"),
        ProviderCall("provision", spec.burst_id),
        ProviderCall("observe"),
        ProviderCall("reap", spec.burst_id),
    ]


CALLS: dict[str, Callable[[FakeProvider, BurstSpec], Any]] = {
    "offers": lambda fake, spec: fake.offers(),
    "provision": lambda fake, spec: fake.provision(spec),
    "observe": lambda fake, spec: fake.observe(),
    "reap": lambda fake, spec: fake.reap(spec.burst_id),
}


@pytest.mark.parametrize("method", CALLS)
def test_the_next_error_is_raised_once_and_nothing_is_done(
    method: str, fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.provision(spec)
    setattr(fake, f"next_{method}_error", InsufficientCapacity("none left"))
    with pytest.raises(InsufficientCapacity, match="none left"):
        CALLS[method](fake, spec)
    assert phases(fake) == [Phase.RUNNING]
    CALLS[method](fake, spec)


@pytest.mark.parametrize("method", CALLS)
def test_with_bad_credentials_everything_is_refused(
    method: str, spec: BurstSpec
) -> None:
    fake = FakeProvider(settings=FakeSettings(credentials="bad"))
    with pytest.raises(Refused, match="good credentials"):
        CALLS[method](fake, spec)


@pytest.mark.parametrize("method", CALLS)
def test_a_hanging_call_returns_when_it_is_let_go(
    method: str, fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.provision(spec)
    fake.hang = threading.Event()
    worker = threading.Thread(target=CALLS[method], args=(fake, spec))
    worker.start()
    worker.join(0.05)
    assert worker.is_alive()
    fake.hang.set()
    worker.join(HANG_S)
    assert not worker.is_alive()


def test_an_answer_that_is_lost_comes_after_the_deed(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.next_answer_lost = True
    with pytest.raises(Transient):
        fake.provision(spec)
    assert phases(fake) == [Phase.RUNNING]
    fake.next_answer_lost = True
    with pytest.raises(Transient):
        fake.reap(spec.burst_id)
    with pytest.raises(NotFound):
        fake.reap(spec.burst_id)


def test_half_built_it_makes_the_rest_the_next_time(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.build_only = 2
    with pytest.raises(Transient):
        fake.provision(spec)
    assert [f.phase for f in only(fake).followers] == [
        Phase.RUNNING,
        Phase.RUNNING,
        Phase.PENDING,
    ]
    fake.provision(spec)
    assert fake.cloud.count(spec.burst_id) == 3
    assert phases(fake) == [Phase.RUNNING]


def test_delays_are_counted_in_calls(fake: FakeProvider, spec: BurstSpec) -> None:
    fake.listed_after, fake.starts_after = 2, 1
    fake.ends_after, fake.listed_still = 2, 1
    fake.provision(spec)
    seen = [phases(fake) for _ in range(5)]
    assert seen == [[], [], [Phase.PENDING], [Phase.RUNNING], [Phase.RUNNING]]
    fake.reap(spec.burst_id)
    seen = [phases(fake) for _ in range(3)]
    assert seen == [[Phase.ENDING], [Phase.ENDING], []]
    with pytest.raises(NotFound):
        fake.reap(spec.burst_id)


def test_reaping_alone_ends_a_burst_too(fake: FakeProvider, spec: BurstSpec) -> None:
    fake.ends_after = 2
    fake.provision(spec)
    for left in (3, 3, 0):
        fake.reap(spec.burst_id)
        assert fake.cloud.count(spec.burst_id) == left


@pytest.mark.parametrize(("only_these", "running"), [(0, 0), (2, 2), (None, 3)])
def test_only_some_followers_may_ever_start(
    only_these: int | None, running: int, fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.starts_only = only_these
    fake.provision(spec)
    fake.observe()
    assert len(fake.running()) == running
    assert phases(fake) == [Phase.RUNNING if running == 3 else Phase.PENDING]


def test_a_failure_says_why_and_leaves_things_to_reap(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.provision(spec)
    fake.fail(spec.burst_id, "out of stock", Failure.CAPACITY)
    status = only(fake)
    assert (status.phase, status.why) == (Phase.FAILED, "out of stock")
    assert status.failure is Failure.CAPACITY
    assert fake.cloud.count(spec.burst_id) == 3


def test_what_is_lost_is_gone_without_a_word(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.provision(spec)
    fake.lose(spec.burst_id, [spec.hosts[1]])
    fake.observe()
    assert set(fake.running()) == {spec.hosts[0], spec.hosts[2]}
    fake.lose(spec.burst_id)
    assert fake.observe() == []
    with pytest.raises(NotFound):
        fake.reap(spec.burst_id)


def test_followers_are_known_by_host(fake: FakeProvider, spec: BurstSpec) -> None:
    fake.provision(spec)
    assert fake.cloud.followers() == dict.fromkeys(spec.hosts, spec.burst_id)


def test_who_leaves_is_listed_in_order(fake: FakeProvider, spec: BurstSpec) -> None:
    fake.ends_after = 9
    fake.provision(spec)
    hosts, ranks = spec.hosts[:1], spec.ranks[:1]
    fake.resize(msgspec.structs.replace(spec, hosts=hosts, ranks=ranks))
    assert [follower.host for follower in only(fake).followers] == list(spec.hosts)


def test_a_burst_that_is_reaped_is_not_made_anew(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.ends_after = 5
    fake.provision(spec)
    fake.reap(spec.burst_id)
    with pytest.raises(Transient, match="being reaped"):
        fake.provision(spec)


def test_other_hosts_under_a_known_id_are_refused(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    fake.provision(spec)
    other = msgspec.structs.replace(spec, hosts=("x",), ranks=(1,))
    with pytest.raises(Refused, match="other hosts"):
        fake.provision(other)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (FakeSettings(capacity=2), InsufficientCapacity),
        (FakeSettings(max_nodes=2), InsufficientCapacity),
        (FakeSettings(shape=Shape(0)), Refused),
    ],
)
def test_what_it_does_not_have_it_does_not_sell(
    settings: FakeSettings, error: type[Exception], spec: BurstSpec
) -> None:
    fake = FakeProvider(settings=settings)
    with pytest.raises(error):
        fake.provision(spec)
    assert fake.observe() == []


def test_owners_and_names_share_a_cloud_and_its_capacity_only(
    spec: BurstSpec, tmp_path: Path
) -> None:
    cloud = FakeCloud()
    settings = FakeSettings(capacity=4)
    FakeProvider("a", settings, "one", cloud).provision(spec)
    other = example_spec(example_lead(tmp_path, "two"), 1, "nodes")
    for name, owner in (("b", "one"), ("a", "two")):
        stranger = FakeProvider(name, settings, owner, cloud)
        assert stranger.observe() == []
        with pytest.raises(NotFound):
            stranger.reap(spec.burst_id)
        with pytest.raises(InsufficientCapacity, match="1 nodes are free"):
            stranger.provision(other)


def test_a_program_is_seen_to_run_and_then_to_have_ended(spec: BurstSpec) -> None:
    fake = FakeProvider(settings=FakeSettings(modes=("isolated",)))
    fake.runs_for, fake.ends_with = 1, 3
    fake.provision(isolate(spec))
    fake.provision(isolate(spec))
    seen = [only(fake).instance for _ in range(2)]
    assert all(seen)
    assert [s.exit_status for s in seen if s] == [None, 3]
    assert [s.output for s in seen if s] == ["", "done\n"]
    assert fake.cloud.begun == [spec.burst_id]


def test_it_makes_isolated_bursts_only_where_it_sells_them(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    with pytest.raises(Refused, match="no isolated bursts"):
        fake.provision(isolate(spec))
