# SPDX-License-Identifier: MIT
"""Standing minimums: when they hold, what counts, and which bursts they keep."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st

from burst.config import Settings
from burst.core.burst_requests import keep_minimums
from burst.core.money.ledger import open_entry
from burst.core.records import Records, Transaction
from burst.core.standing import (
    describe_renewal,
    is_needed,
    minimums_at,
    nodes_needed_of,
    stands,
)
from burst.core.world import ProviderView
from burst.model.burst import (
    ISOLATED_STEM,
    Burst,
    BurstId,
    Isolated,
    Resize,
    State,
    Tag,
)
from tests.builders import but, offer, settings, view, world
from tests.lifecycles import LEASE

DAY = 86400
MONDAY = 4 * DAY
"""The first Monday of the epoch, at 0:00 UTC."""
NEW_YEAR = 1767225600
"""2026-01-01 in UTC."""


@pytest.fixture(autouse=True)
def clock_of_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Clocks are changed on the last Sundays of March and October."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def kept(*tables: Mapping[str, object], **changes: object) -> Settings:
    provider = {"type": "fake", "standing": list(tables), **changes}
    return settings(providers={"p": provider})


def minimums(its: Settings, at: float) -> list[int]:
    return [each.table.nodes for each in minimums_at(its, at)]


def burst(
    name: str, nodes: int = 2, state: State = State.ONLINE, **lease: object
) -> Burst:
    hosts = tuple(f"burst-0-{n}" for n in range(nodes))
    fields = {"provider": "p", "offer": "o", "standing": "2 nodes of p", **lease}
    made = but(
        LEASE, id=BurstId(name), hosts=hosts, ranks=tuple(range(nodes)), **fields
    )
    return Burst(lease=made, state=state)


def records(*bursts: Burst) -> Records:
    return Records(bursts={each.id: each for each in bursts})


@pytest.mark.parametrize(
    ("name", "lease", "made"),
    [
        ("burst-0-a", {}, 1),
        ("burst-0-a", {"offer": "x"}, 3),
        ("burst-0-a", {"provider": "q"}, 3),
        (f"{ISOLATED_STEM}-a", {}, 3),
    ],
)
def test_of_a_burst_whose_record_cannot_be_read_the_entry_tells(
    name: str, lease: dict[str, Any], made: int
) -> None:
    its = burst(name, **lease).lease
    lost = Records(
        unreadable={f"burst/{name}": "?"},
        entries={its.id: open_entry(its, MONDAY, {}, MONDAY)},
    )
    site = kept({"nodes": 3, "offer": "o"})
    seen = world(view(), p=(offer("o"),))
    tx = Transaction(lost, seen, site, MONDAY)
    why = keep_minimums(tx)
    assert [b.lease.nodes for b in tx.live] == [made]
    assert bool(why) is (made == 1)


def test_what_the_provider_does_not_show_yet_may_be_a_burst_of_the_record() -> None:
    lost = Records(unreadable={"burst/burst-0-a": "?"})
    views = {"p": ProviderView(offers=(offer("o"),))}
    seen, site = but(world(view()), providers=views), kept({"nodes": 2})
    for records, made in ((lost, False), (Records(), True)):
        tx = Transaction(records, seen, site, MONDAY)
        keep_minimums(tx)
        assert bool(tx.bursts) is made


@pytest.mark.parametrize(
    ("hours", "within", "out"),
    [
        ([], [0, 12.5, 167], []),
        (["Mo-Fr 8-18"], [8, 17.99, 24 * 4 + 8], [7.99, 18, 24 * 5 + 9]),
        (["Fr 22-6"], [24 * 4 + 22, 24 * 5 + 5.9], [24 * 4 + 5, 24 * 5 + 6]),
        (["Su 22-6"], [24 * 6 + 23, 5.9], [6, 24 * 6 + 21]),
        (["Sa", "Mo 8-9"], [24 * 5, 24 * 6 - 0.1, 8.5], [9, 24 * 6]),
    ],
)
def test_a_minimum_holds_in_its_hours(hours, within, out):
    its = kept({"nodes": 2, **({"hours": hours} if hours else {})})
    here = MONDAY - 3600
    assert all(minimums(its, here + 3600 * hour) == [2] for hour in within)
    assert all(minimums(its, here + 3600 * hour) == [] for hour in out)
    assert minimums(kept({"nodes": 2}, enabled=False), MONDAY) == []


@tried(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    begin=st.integers(0, 23),
    length=st.integers(1, 23),
    at=st.integers(NEW_YEAR, NEW_YEAR + 365 * DAY),
)
def test_hours_are_those_of_the_wall_clock(begin: int, length: int, at: int) -> None:
    """Also across midnight, and on the days on which clocks are changed."""
    its = kept({"nodes": 1, "hours": f"{begin}-{(begin + length) % 24 or 24}"})
    clock = time.localtime(at)
    since = (clock.tm_hour * 60 + clock.tm_min - begin * 60) % (24 * 60)
    assert bool(minimums(its, at)) == (since < length * 60)


def test_on_the_night_on_which_clocks_go_back_an_hour_counts_twice() -> None:
    its = kept({"nodes": 1, "hours": "2-3"})
    # From 2:59 CEST to 2:00 CET on 2026-10-25, which is 1:00 UTC.
    back = NEW_YEAR + (31 + 28 + 31 + 30 + 31 + 30 + 31 + 31 + 30 + 24) * DAY + 3600
    found = [minimums(its, back + n * 1800) for n in (-3, -2, -1, 0, 1, 2)]
    assert found == [[], [1], [1], [1], [1], []]


def test_what_counts_are_live_bursts_that_any_job_may_have() -> None:
    (minimum,) = minimums_at(kept({"nodes": 9, "offer": "o"}), MONDAY)
    assert minimum.text() == "9 nodes of p/o"
    comes = burst("c", state=State.PROVISION, userids=(1,))
    counts = [burst("a"), burst("b", 3, standing=""), comes]
    does_not = [
        burst("d", state=State.DRAIN),
        burst("e", state=State.INACTIVE),
        burst("f", provider="q"),
        burst("g", offer="other"),
        burst("h", tag=Tag("t", 1)),
        burst("i", isolated=Isolated(kind="interactive")),
        burst("j", requester=7),
    ]
    assert minimum.missing(records(*counts, *does_not)) == 2
    lost = but(burst("k"), quarantined="odd")
    assert minimum.missing(records(*counts, lost)) == 0, "it may still be paid for"
    (any_offer,) = minimums_at(kept({"nodes": 9, "hours": ["0-24"]}), MONDAY)
    assert any_offer.text() == "9 nodes of p, 0-24"
    assert any_offer.missing(records(*counts, *does_not)) == 0


def tick(known: Records, its: Settings) -> Transaction:
    """The transaction of a tick with these records and settings."""
    return Transaction(known, world(view()), its, MONDAY)


def test_a_burst_is_kept_while_others_are_too_few() -> None:
    its = kept({"nodes": 4})
    one, other = burst("a"), burst("b")
    both = records(one, other)
    assert is_needed(tick(both, its), one)
    third = records(one, other, burst("c"))
    assert not is_needed(tick(third, its), one)
    for_jobs = records(one, other, burst("c", standing=""))
    assert is_needed(tick(for_jobs, its), one), "it ends as its jobs do"
    broken = but(burst("c"), quarantined="odd")
    assert is_needed(tick(records(one, other, broken), its), one)
    assert not is_needed(tick(both, its), burst("d", standing=""))
    assert not is_needed(tick(both, settings()), one)
    assert not is_needed(tick(both, kept({"nodes": 4, "offer": "x"})), one)
    assert nodes_needed_of(tick(both, its), one) == 2
    resize = Resize(kind="shrink", nodes=1, before=2, since=MONDAY)
    shrinks = records(one, but(other, resize=resize))
    assert nodes_needed_of(tick(shrinks, its), one) == 3


@given(
    nodes=st.lists(st.integers(1, 4), max_size=6),
    wanted=st.lists(st.integers(1, 12), min_size=1, max_size=3),
)
def test_idle_bursts_end_until_just_the_minimum_is_left(nodes, wanted):
    its = kept(*({"nodes": most} for most in wanted))
    live = {BurstId(f"b{n}"): burst(f"b{n}", size) for n, size in enumerate(nodes)}
    for name in list(live):
        if not is_needed(tick(Records(bursts=live), its), live[name]):
            del live[name]
    left = sum(each.lease.nodes for each in live.values())
    assert left >= min(max(wanted), sum(nodes))
    known = Records(bursts=live)
    assert all(is_needed(tick(known, its), each) for each in live.values())


def test_it_is_said_of_a_burst_that_it_stands() -> None:
    its = kept({"nodes": 2, "offer": "o", "hours": "8-18"})
    noon, night = MONDAY + DAY / 2, MONDAY
    assert stands(burst("a").lease, its, noon)
    assert not stands(burst("a").lease, its, night)
    assert not stands(burst("a", standing="").lease, its, noon)
    assert not stands(burst("a", offer="x").lease, its, noon)


def test_it_is_said_that_another_burst_takes_its_place() -> None:
    its = kept({"nodes": 2, "offer": "o"})
    ends = burst("a", state=State.DRAIN)
    assert describe_renewal(tick(records(ends), its), ends.id) == (
        "another burst is made in its place for the standing minimum of 2 nodes of"
        " p/o; to end that, remove it from [providers.p], and burst reload"
    )
    assert not describe_renewal(tick(records(ends, burst("b")), its), ends.id)
    assert not describe_renewal(tick(records(), its), ends.id)
