# SPDX-License-Identifier: MIT
"""What one burst costs: each node-second is counted once, and the kinds are the sum."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.money import ledger
from burst.core.money.ledger import (
    MOST_SHARES,
    OTHERS,
    STANDING,
    Costs,
    Payer,
    Share,
    Use,
)
from burst.core.money.money import Money, price_of, to_units
from burst.model.jobid import JobId
from tests.builders import T0, but
from tests.lifecycles import LEASE

HOUR = 3600.0
PRICE = Money(2_000_000)
ANN, BEN = Payer(1, "physics"), Payer(2, "maths")
JOB, OTHER = JobId(1), JobId(2)


def entry(payers=None, until=T0 + HOUR, lease=LEASE):
    payers = {JOB: ANN} if payers is None else payers
    priced = but(lease, price=to_units(PRICE))
    return ledger.open_entry(priced, until, payers, T0)


def lived(*steps, payers=None):
    """An entry after steps of seconds, use and whether it is online, and the time."""
    found, now = entry(payers), T0
    for seconds, use, joined in steps:
        found = ledger.count(found, use, now, joined=joined)
        now += seconds
    return found, now


def settled(*steps, payers=None):
    return ledger.settle(*lived(*steps, payers=payers))


WHOLE_LIFE = (
    (HOUR, Use("boot"), False),
    (HOUR, Use("idle"), True),
    (HOUR, Use("idle", busy=1, jobs=((JOB, 1),)), True),
    (HOUR, Use("teardown"), False),
)


def test_a_fee_is_paid_once_for_all_nodes_and_reserved():
    lease = but(LEASE, fee=0.1)
    assert lease.nodes == 2
    found = entry(lease=lease)
    hour = 2 * PRICE + 100_000
    assert found.reserved == hour
    assert ledger.extend(found, T0 + 2 * HOUR, {}).reserved == 2 * hour
    later = ledger.outlive(found, T0 + HOUR + 1)
    assert later.grown == math.ceil(hour * (later.until - T0 - HOUR) / HOUR)
    for seconds, use, joined in WHOLE_LIFE:
        found = ledger.count(found, use, found.at, joined=joined)
        found = ledger.count(found, Use(), found.at + seconds, joined=joined)
    assert ledger.settle(found, found.at).costs.total == 4 * hour


def test_each_hour_of_a_node_is_what_it_did():
    found = settled(*WHOLE_LIFE)
    unit = int(PRICE)
    costs = Costs(*map(Money, (unit, 3 * unit, 2 * unit, 2 * unit, 0)))
    assert found.costs == costs
    assert found.costs.total == 8 * unit
    assert found.costs.wasted == 7 * unit
    assert found.shares == (Share(ANN, JOB, HOUR),)
    assert (found.made, found.ended) == (T0, T0 + 4 * HOUR)


def test_what_never_joined_is_paid_as_long_as_its_provider_showed_it():
    found = settled(
        (HOUR, Use("boot"), False),
        (HOUR, Use("boot", shown=1), False),
        (HOUR, Use("teardown", shown=2), False),
    )
    assert found.costs == Costs(never_joined=Money(3 * PRICE))


def test_what_nobody_saw_costs_nothing():
    assert settled((HOUR, Use("boot"), False)).costs == Costs()
    assert settled((HOUR, Use(), False)).costs == Costs()


def test_a_reservation_is_for_all_nodes_and_is_no_less_than_what_was_paid():
    assert entry().reserved == 2 * PRICE
    assert settled(*WHOLE_LIFE).reserved == 8 * PRICE


def test_a_burst_that_outlives_its_reservation_has_more_reserved():
    found = entry()
    assert ledger.outlive(found, T0 + HOUR) is found
    late = ledger.outlive(found, T0 + 2 * HOUR)
    assert late.until == T0 + 2 * HOUR + 600
    assert late.reserved == found.reserved + late.grown
    assert late.grown == price_of(2 * (HOUR + 600), PRICE)


def test_a_further_job_has_more_reserved_and_is_one_of_the_payers():
    found = entry()
    assert ledger.extend(found, T0, {JOB: ANN}) is found
    more = ledger.extend(found, T0 + 3 * HOUR, {OTHER: BEN})
    assert more.reserved == 6 * PRICE
    assert more.grown == 0
    assert more.payers == {ANN, BEN}
    later = ledger.extend(more, T0 + HOUR, {JobId(3): BEN})
    assert (later.until, later.reserved) == (more.until, more.reserved)


def test_a_burst_that_was_requested_is_its_jobs_once_it_has_some():
    lease = but(LEASE, userids=())
    found = entry({}, lease=lease)
    assert found.payers == {Payer()}
    assert ledger.extend(found, T0, {JOB: ANN}).payers == {ANN}


def test_a_burst_of_which_only_the_users_are_known_is_theirs():
    lease = but(LEASE, userids=(1, 2))
    assert entry({}, lease=lease).payers == {Payer(1), Payer(2)}


def test_the_time_of_a_shared_node_is_shared_out():
    both = Use("idle", busy=1, jobs=((JOB, 1), (OTHER, 1)))
    found = settled((HOUR, both, True), payers={JOB: ANN, OTHER: BEN})
    assert [share.node_seconds for share in found.shares] == [HOUR / 2, HOUR / 2]
    costs = ledger.by_payer(found.shares, found.costs)
    assert costs[ANN] == costs[BEN]
    assert costs[ANN].plus(costs[BEN]) == found.costs


def test_a_clock_that_goes_back_counts_nothing_twice():
    found, _ = lived((HOUR, Use("boot"), False))
    back = ledger.count(found, Use("idle"), T0 - HOUR, joined=True)
    assert back.at == T0
    done = ledger.settle(back, T0 - HOUR)
    assert done.costs == Costs()


def others(found, running, payers):
    """On how many nodes jobs of each payer run that have no share of their own."""
    own = {share.job for share in found.shares}
    rest = {job: payer for job, payer in payers.items() if job not in own}
    return ledger.others_of(found, running, rest)


def test_each_payer_pays_for_jobs_that_run_and_have_no_share_of_their_own():
    jobs = {JobId(n): ANN for n in range(40)} | {JobId(n): BEN for n in range(40, 80)}
    found = entry(jobs)
    nodes = tuple((job, 1) for job in jobs)
    rest = others(found, nodes, jobs)
    assert dict(rest) == {ANN: 40, BEN: 24}
    use = Use(phase="idle", busy=4, jobs=nodes, others=rest)
    row = ledger.settle(ledger.count(found, use, T0, joined=True), T0 + HOUR)
    parts = ledger.by_payer(row.shares, row.costs)
    assert parts[ANN].work == parts[BEN].work > 0


def test_jobs_of_payers_that_are_not_known_one_by_one_are_theirs_together():
    jobs = {JobId(n): Payer(n) for n in range(60)}
    running = [(JobId(0), 1), (JobId(30), 2), (JobId(99), 1)]
    assert others(entry(jobs), running, jobs) == ((Payer(0), 1), (OTHERS, 2))


def test_jobs_are_many_and_shares_are_few():
    jobs = {JobId(n): ANN if n % 2 else BEN for n in range(1, 500)}
    found = entry(jobs)
    assert len(found.shares) <= MOST_SHARES
    assert found.payers == {ANN, BEN}
    one = ledger.extend(found, T0, {JobId(n): ANN for n in range(500, 900)})
    assert len(one.shares) <= MOST_SHARES


def test_users_may_be_more_than_are_known_one_by_one():
    found = entry({JobId(n): Payer(n) for n in range(1, 500)})
    assert len(found.shares) <= MOST_SHARES
    assert OTHERS in found.payers


def test_the_time_of_jobs_that_are_merged_stays():
    use = Use("idle", busy=1, jobs=((JOB, 1),))
    found, now = lived((HOUR, use, True))
    found = ledger.count(found, Use("idle"), now, joined=True)
    more = ledger.extend(found, T0, {JobId(n): BEN for n in range(2, 99)})
    assert sum(s.node_seconds for s in more.shares if s.payer == ANN) == HOUR


USES = st.builds(
    Use,
    phase=st.sampled_from(["", "boot", "idle", "teardown"]),
    busy=st.integers(0, LEASE.nodes),
    jobs=st.sampled_from(
        [(), ((JOB, 1),), ((JOB, 1), (OTHER, 2)), ((JOB, 2), (JobId(9), 1))]
    ),
    shown=st.integers(0, LEASE.nodes),
)
STEPS = st.lists(st.tuples(st.floats(-10, 1e6), USES, st.booleans()), max_size=12)


@given(STEPS, st.integers(0, 10**9).map(Money))
def test_work_idle_boot_teardown_and_never_joined_are_the_total(steps, price):
    found, now = lived(*steps, payers={JOB: ANN, OTHER: BEN})
    found = but(found, price=price)
    done = ledger.settle(found, now)
    kinds = msgspec.structs.astuple(done.costs)
    assert all(kind >= 0 for kind in kinds)
    assert sum(kinds) == done.costs.total <= done.reserved
    parts = ledger.by_payer(done.shares, done.costs)
    assert sum(part.total for part in parts.values()) == done.costs.total
    for index, kind in enumerate(kinds):
        assert kind == sum(msgspec.structs.astuple(p)[index] for p in parts.values())


@given(STEPS)
def test_no_node_second_is_counted_twice(steps):
    done = settled(*((max(0.0, s), use, True) for s, use, _ in steps))
    paid = 0.0
    for seconds, use, _ in steps:
        nodes = LEASE.nodes if use.phase else use.busy
        paid += nodes * max(0.0, seconds)
    assert math.isclose(done.costs.total, price_of(paid, PRICE), abs_tol=2)
    used = sum(share.node_seconds for share in done.shares)
    assert used <= paid + 1e-3


@pytest.mark.parametrize("value", [entry(), settled(*WHOLE_LIFE)])
def test_what_is_written_reads_the_same(value):
    text = msgspec.json.encode(value)
    assert msgspec.json.decode(text, type=type(value)) == value


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(0, 4000), st.booleans()),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([0.0, 0.25]),
)
def test_of_a_burst_that_grows_and_shrinks_each_size_is_paid_for_its_time(steps, fee):
    lease = but(LEASE, fee=fee)
    found, now = entry(until=T0 + 4 * HOUR, lease=lease), T0
    found = ledger.count(found, Use("idle"), now, joined=True)
    nodes, node_seconds = lease.nodes, 0
    for size, seconds, longer in steps:
        if size != nodes:
            found, nodes = ledger.resize(found, size, now), size
        if longer:
            found = ledger.extend(found, now + 5 * HOUR, {})
        found = ledger.outlive(found, now)
        node_seconds, now = node_seconds + nodes * seconds, now + seconds
    found = ledger.outlive(found, now)
    row = ledger.settle(found, now)
    wanted = (node_seconds * PRICE + (now - T0) * fee * 1_000_000) / HOUR
    assert row.costs.total == pytest.approx(wanted, abs=1)
    assert row.costs.total == row.costs.idle
    assert row.reserved == found.reserved, "it was reserved before it was spent"


def test_nodes_that_come_and_leave_are_not_idle():
    found = ledger.count(entry(), Use("idle"), T0, joined=True)
    found = ledger.resize(found, 4, T0)
    use = Use("idle", busy=1, boot=1, absent=1)
    found = ledger.count(found, use, T0, joined=True)
    found = ledger.count(found, Use("idle", busy=1, teardown=2), T0 + HOUR, joined=True)
    spent = ledger.settle(found, T0 + 2 * HOUR).costs
    assert (spent.work, spent.idle) == (2 * PRICE, 2 * PRICE)
    assert (spent.boot, spent.teardown) == (PRICE, 2 * PRICE)


def test_what_is_reserved_falls_by_what_a_shrink_saves():
    found = ledger.resize(entry(until=T0 + 2 * HOUR), 4, T0 + HOUR)
    assert found.reserved == 2 * 2 * PRICE + 2 * PRICE
    found = ledger.resize(found, 1, T0 + 1.5 * HOUR)
    # It was not counted as there: an entry counts from when it is used.
    assert found.reserved <= 2 * 2 * PRICE + 2 * PRICE
    assert found.reserved >= PRICE // 2


def test_a_standing_minimum_pays_for_all_but_the_work_of_jobs():
    lease = but(LEASE, standing="2 nodes of p")
    found = entry({}, lease=lease)
    assert found.shares == (Share(STANDING),)
    assert entry({}).shares == (Share(Payer()),)
    found = ledger.count(found, Use("idle"), T0, joined=True)
    found = ledger.extend(found, T0, {JOB: ANN, OTHER: BEN})
    both = Use("idle", busy=2, jobs=((JOB, 1), (OTHER, 1)))
    found = ledger.count(found, both, T0 + HOUR, joined=True)
    found = ledger.count(found, Use("idle"), T0 + 2 * HOUR, joined=True)
    row = ledger.settle(found, T0 + 4 * HOUR)
    assert ledger.by_payer(row.shares, row.costs) == {
        STANDING: Costs(idle=Money(6 * PRICE)),
        ANN: Costs(work=PRICE),
        BEN: Costs(work=PRICE),
    }
