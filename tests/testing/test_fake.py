# SPDX-License-Identifier: MIT
"""What FakeProvider does, as far as no test that uses it would fail without it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from burst.errors import InsufficientCapacity, NotFound, Refused, Transient
from burst.model.shape import Shape
from burst.provider import BurstSpec, BurstStatus, Phase
from burst.testing import (
    FakeCloud,
    FakeProvider,
    FakeSettings,
    ProviderCall,
    example_lead,
    example_spec,
    isolate,
)


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


def test_it_makes_isolated_bursts_only_where_it_sells_them(
    fake: FakeProvider, spec: BurstSpec
) -> None:
    with pytest.raises(Refused, match="no isolated bursts"):
        fake.provision(isolate(spec))
