# SPDX-License-Identifier: MIT
"""For how long jobs are expected to run."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.forecast.history import (
    KINDS_KEPT,
    RUNS_KEPT,
    HistoryRecord,
    JobKind,
    KindRecord,
    RunHistory,
    RunTime,
)

LIMIT = 1000.0
KIND = JobKind(7, "lammps", 4)


def after(*runs: float, kind: JobKind = KIND) -> RunHistory:
    """A history in which jobs of a kind ran for so long."""
    history = RunHistory()
    for run in runs:
        history.add(kind, run)
    return history


def test_without_a_past_the_limit_is_expected() -> None:
    assert RunHistory().expect(KIND, LIMIT) == RunTime(0.0, LIMIT, LIMIT)
    assert RunHistory().expect(KIND, LIMIT, 400.0) == RunTime(0.0, 600.0, 600.0)
    assert RunHistory().expect(KIND, math.inf).expected == math.inf


def test_the_newest_run_counts_most() -> None:
    found = after(100.0, 295.0).expect(KIND, LIMIT)
    assert found.longest == LIMIT
    assert found.expected == pytest.approx(200.0)
    assert after(295.0, 100.0).expect(KIND, LIMIT).expected < 195.5


def test_the_shortest_run_is_a_bound_only_once_there_are_many() -> None:
    assert after(90.0).expect(KIND, LIMIT).shortest == 0.0
    assert after(90.0, 120.0).expect(KIND, LIMIT).shortest == 30.0
    assert after(*[90.0] * 8).expect(KIND, LIMIT).shortest == 70.0
    other = JobKind(KIND.userid, "another", KIND.cores)
    assert after(*[90.0] * 8).expect(other, LIMIT).shortest == 0.0


def test_the_limit_is_never_passed() -> None:
    assert after(5000.0).expect(KIND, LIMIT) == RunTime(0.0, LIMIT, LIMIT)
    assert after(500.0).expect(KIND, LIMIT, 2 * LIMIT) == RunTime(0.0, 0.0, 0.0)


def test_the_part_of_the_limit_counts_where_there_is_one() -> None:
    history = RunHistory()
    history.add(KIND, 30.0, 100.0)
    history.add(KIND, 50.0, 100.0)
    found = history.expect(KIND, LIMIT)
    assert found.longest == LIMIT
    assert found.shortest == pytest.approx(100.0)
    assert found.expected == pytest.approx(1000 * (0.5 + 0.95 * 0.3) / 1.95)
    assert history.expect(KIND, LIMIT, 450.0).expected == pytest.approx(50.0)
    # Without one, seconds do.
    assert history.expect(KIND, math.inf).shortest == 10.0
    history.add(KIND, 900.0)
    assert history.expect(KIND, LIMIT).expected == found.expected


def test_one_that_runs_longer_is_compared_with_those_that_did() -> None:
    history = after(10.0, 10.0, 10.0, 500.0)
    assert history.expect(KIND, LIMIT).expected < 200.0
    assert history.expect(KIND, LIMIT, 400.0) == RunTime(0.0, 100.0, 600.0)
    # Longer than any: as long again.
    assert history.expect(KIND, 5000.0, 600.0) == RunTime(0.0, 600.0, 4400.0)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (JobKind(7, "lammps", 5), 100.0),  # of the same size class
        (JobKind(7, "lammps", 8), 100.0),  # else all of the user
        (JobKind(7, "namd", 4), 100.0),
        (JobKind(8, "lammps", 4), LIMIT),
    ],
)
def test_a_kind_that_is_not_known_is_as_all_of_its_user(other, expected):
    assert after(100.0).expect(other, LIMIT).expected == expected


def test_the_own_kind_counts_before_the_user() -> None:
    history = after(100.0)
    history.add(JobKind(7, "namd", 4), 900.0)
    assert history.expect(KIND, LIMIT).expected == 100.0


def test_it_is_bounded_and_forgets_what_was_not_seen_for_longest() -> None:
    history = after(*[5.0] * 2 * RUNS_KEPT)
    for userid in range(100, 100 + KINDS_KEPT // 2):
        history.add(JobKind(userid, "a", 1), 60.0)
        if userid % 1000 == 0:
            history.add(KIND, 5.0)
    kinds = history.record().kinds
    assert len(kinds) == KINDS_KEPT
    assert max(len(kind.runs) for kind in kinds) == RUNS_KEPT
    assert history.expect(KIND, LIMIT).expected == pytest.approx(5.0)
    assert history.expect(JobKind(100, "a", 1), LIMIT).expected == LIMIT


@given(
    st.lists(
        st.tuples(
            st.builds(
                JobKind, st.integers(0, 3), st.sampled_from("ab"), st.integers(1, 9)
            ),
            st.floats(-1, 1e6),
            st.sampled_from([0.0, 10.0, 1e5, math.inf]),
        )
    ),
    st.floats(0, 1e6) | st.just(math.inf),
    st.floats(0, 1e6),
)
def test_it_is_the_same_after_it_was_stored(runs, limit, elapsed):
    history = RunHistory()
    for kind, seconds, of in runs:
        history.add(kind, seconds, of)
    stored = msgspec.json.encode(history.record())
    read = RunHistory(msgspec.json.decode(stored, type=HistoryRecord))
    assert read.record() == history.record()
    for kind in [*(run[0] for run in runs), KIND]:
        found = read.expect(kind, limit, elapsed)
        assert found == history.expect(kind, limit, elapsed)
        assert 0 <= found.shortest <= found.expected <= found.longest


def test_runs_on_record_that_cannot_be_are_left_out() -> None:
    record = HistoryRecord(
        kinds=(
            KindRecord(7, "", 0, ((-5.0, 0.0), (5.0, -9.0))),
            KindRecord(7, "lammps", 3, tuple((float(n), 0.0) for n in range(50))),
        )
    )
    history = RunHistory(record)
    assert history.expect(JobKind(7, "", 1), LIMIT).expected == LIMIT
    kept = tuple((float(n), 0.0) for n in range(50 - RUNS_KEPT, 50))
    assert history.record().kinds[0].runs == kept
