# SPDX-License-Identifier: MIT
"""Which rule decides on a job."""

import math
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from burst.config import PolicyRule
from burst.core.jobs.rule_warnings import covers, find_rule_warnings, named_users
from burst.core.jobs.rules import JobFacts, RuleSet, read_match
from tests.builders import settings

# Thursday, 1970-01-01 0:00 UTC.
DAY = 86400.0
HOUR = 3600.0
JOB = JobFacts(
    userid=1001,
    user="ann",
    queue="gpu",
    bank="physics",
    name="train-7",
    attributes={"project": "alpha", "spare": "false"},
    nodes=4,
    duration=2 * HOUR,
)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def rules(*matches: dict[str, Any]) -> tuple[PolicyRule, ...]:
    return settings(policy=[{"match": match} for match in matches]).rules


def takes(match: dict[str, Any], job: JobFacts = JOB, now: float = 0.0) -> bool:
    return RuleSet(rules(match)).find(job, now).name == "policy-1"


@pytest.mark.parametrize(
    ("match", "taken"),
    [
        ({}, True),
        ({"queue": "gpu"}, True),
        ({"queue": ["cpu", "gpu"]}, True),
        ({"queue": ""}, False),
        ({"nodes": 4}, True),
        ({"nodes": "1-4"}, True),
        ({"nodes": "<4"}, False),
        ({"nodes": ">=5"}, False),
        ({"duration": "<2h"}, False),
        ({"duration": "<=2h"}, True),
        ({"duration": "1h-3h"}, True),
        ({"duration": ">2h"}, False),
        ({"user": "ann"}, True),
        ({"user": ["bob", 1001]}, True),
        ({"user": "1001"}, True),
        ({"user": "bob"}, False),
        ({"bank": "physics"}, True),
        ({"bank": ["art"]}, False),
        ({"attribute": "project"}, True),
        ({"attribute": "project=alpha"}, True),
        ({"attribute": ["project=beta", "project=alpha"]}, True),
        ({"attribute": "project=beta"}, False),
        ({"attribute": "spare"}, False),
        ({"attribute": "spare=false"}, True),
        ({"attribute": "other"}, False),
        ({"name": "train-*"}, True),
        ({"name": ["a", "TRAIN-7"]}, False),
        ({"queue": "gpu", "nodes": "1-8", "user": "bob"}, False),
    ],
)
def test_a_job_has_to_fit_every_key(match: dict[str, Any], taken: bool) -> None:
    assert takes(match) is taken


def test_a_job_without_a_time_limit_is_longer_than_any() -> None:
    endless = JobFacts(nodes=1)
    assert takes({"duration": ">100d"}, endless)
    assert not takes({"duration": "1h-100d"}, endless)


def test_users_are_compared_by_number_where_it_is_known() -> None:
    by_number = JobFacts(userid=1002, nodes=1)
    found = RuleSet(rules({"user": "eve"}), {"eve": 1002})
    assert found.find(by_number, 0.0).name == "policy-1"
    unknown = RuleSet(rules({"user": "eve"}))
    assert unknown.find(by_number, 0.0).name == "default"


@pytest.mark.parametrize(
    ("hours", "now", "open_"),
    [
        ("Th 0-1", 0.0, True),
        ("Th 0-1", HOUR, False),
        ("Mo-Fr 8-18", 8 * HOUR, True),
        ("Mo-Fr 8-18", 18 * HOUR - 1, True),
        ("Mo-Fr 8-18", 18 * HOUR, False),
        ("Sa,Su", 2 * DAY, True),
        ("Sa,Su", 4 * DAY, False),
        ("We 22-6", 5 * HOUR, True),
        ("Su 22-6", 4 * DAY + 5 * HOUR, True),
        ("Su 22-6", 4 * DAY + 6 * HOUR, False),
        (["Fr", "8:30-8:45"], 8.6 * HOUR, True),
    ],
)
def test_hours_are_those_of_this_host(hours: Any, now: float, open_: bool) -> None:
    assert takes({"hours": hours}, now=now) is open_


def test_hours_follow_the_time_zone() -> None:
    os.environ["TZ"] = "XYZ-2"
    time.tzset()
    assert takes({"hours": "2-3"}, now=0.0)
    assert not takes({"hours": "0-1"}, now=0.0)


def test_the_next_change_of_hours_is_known() -> None:
    found = RuleSet(rules({"hours": "8:30-18"}, {"hours": "Fr"}))
    assert found.next_change(30.5) == 8.5 * HOUR
    assert found.next_change(8.5 * HOUR) == 18 * HOUR
    assert found.next_change(18 * HOUR) == DAY
    for always in ({"nodes": 1}, {"hours": "0-24"}):
        assert RuleSet(rules(always)).next_change(0.0) == math.inf
    # On a Sunday, 1970-03-29, clocks are set forward.
    os.environ["TZ"] = "CET-1CEST,M3.5.0,M10.5.0/3"
    time.tzset()
    assert found.next_change(86 * DAY + 20 * HOUR) == 87 * DAY + 6.5 * HOUR


def test_rules_are_open_by_their_hours() -> None:
    found = RuleSet(rules({"hours": "0-1"}))
    assert found.open_at(0.0) != found.open_at(HOUR)


@pytest.mark.parametrize(
    ("tables", "leaves"),
    [
        ({}, True),
        ({"plan": {"worth": 0.05}}, False),
        ({"policy": [{"name": "a"}]}, False),
    ],
)
def test_rules_that_change_nothing_are_known(tables, leaves):
    assert RuleSet(settings(**tables).rules).leaves_all is leaves


def test_the_last_rule_has_to_take_all() -> None:
    with pytest.raises(AssertionError, match="all jobs"):
        RuleSet(rules({"queue": "x"})[:1]).find(JOB, 0.0)


words = st.sampled_from(["a", "b", "c"])
match_tables = st.fixed_dictionaries(
    {},
    optional={
        "queue": st.lists(words, min_size=1, max_size=2),
        "bank": words,
        "nodes": st.sampled_from([1, 2, "1-2", "2-3", "<3", ">1", ">=2"]),
        "duration": st.sampled_from(["<2h", "<=2h", "1h-2h", ">1h", ">=2h"]),
        "user": st.lists(st.sampled_from(["ann", 1, 2]), min_size=1, max_size=2),
        "attribute": st.sampled_from(["x", "y", "x=1", "x=0", "y=1"]),
        "name": st.sampled_from(["a", "a*", "*", "b?", "ab"]),
        "hours": st.sampled_from(["0-12", "0-6", "Th", "We-Fr 0-12", "22-6"]),
    },
)
facts = st.builds(
    JobFacts,
    userid=st.integers(1, 3),
    user=st.sampled_from(["ann", "bob"]),
    queue=words,
    bank=words,
    name=st.sampled_from(["a", "ab", "b", "bc"]),
    attributes=st.dictionaries(
        st.sampled_from(["x", "y"]), st.sampled_from(["0", "1", "2"])
    ),
    nodes=st.integers(1, 4),
    duration=st.sampled_from([0.0, HOUR, 2 * HOUR, 3 * HOUR]),
)


@examples(deadline=None)
@given(st.lists(match_tables, max_size=4), facts, st.integers(0, 7 * 24))
def test_the_first_rule_that_fits_decides(matches, job, hour):
    now = hour * HOUR
    alone = [takes(match, job, now) for match in matches]
    expected = f"policy-{alone.index(True) + 1}" if any(alone) else "default"
    assert RuleSet(rules(*matches)).find(job, now).name == expected


@examples(deadline=None)
@given(match_tables, match_tables, facts, st.integers(0, 7 * 24))
def test_what_is_covered_never_takes_a_job(first, second, job, hour):
    earlier, later = (rule.match for rule in rules(first, second)[:2])
    if covers(read_match(earlier), read_match(later)):
        assert takes(first, job, hour * HOUR) or not takes(second, job, hour * HOUR)


@pytest.mark.parametrize(
    ("first", "second", "covered"),
    [
        ({}, {"queue": "a"}, True),
        ({"queue": ["a", "b"]}, {"queue": "b", "nodes": 1}, True),
        ({"queue": "a"}, {}, False),
        ({"user": [1, "ann"]}, {"user": "ann"}, True),
        ({"nodes": "1-8"}, {"nodes": "2-4"}, True),
        ({"nodes": "2-4"}, {"nodes": "1-8"}, False),
        ({"duration": "<=2h"}, {"duration": "<2h"}, True),
        ({"duration": "<2h"}, {}, False),
        ({"hours": "8-18"}, {"hours": "Mo-Fr 9-17"}, True),
        ({"hours": "8-18"}, {}, False),
        ({"attribute": "x"}, {"attribute": "x=1"}, True),
        ({"attribute": "x"}, {"attribute": "x=0"}, False),
        ({"attribute": "x=1"}, {"attribute": "x"}, False),
        ({"attribute": "x=1"}, {}, False),
        ({"attribute": ["x", "y"]}, {"attribute": "y"}, True),
        ({"name": "a*"}, {"name": "abc"}, True),
        ({"name": "a*"}, {"name": "ab*"}, False),
        ({"name": ["a*", "b"]}, {"name": ["b", "a*"]}, True),
        ({"name": "*"}, {}, True),
        ({"name": "a"}, {}, False),
    ],
)
def test_rules_that_an_earlier_one_covers(first, second, covered):
    earlier, later = (read_match(rule.match) for rule in rules(first, second)[:2])
    assert covers(earlier, later) is covered


def test_what_may_not_be_meant_is_told_with_what_to_do() -> None:
    found = settings(
        policy=[
            {"match": {"user": ["ann", "bob", 7]}},
            {"match": {"queue": ["gpu", "cpu", ""]}, "mark": True},
            {"name": "late", "match": {"user": "bob"}},
        ]
    )
    assert named_users(found) == {"ann", "bob"}
    assert list(find_rule_warnings(found, {"bob": 8}, ["cpu", "debug"])) == [
        "policy policy-1 is for user ann, whom this host does not know",
        "policy policy-2 is for queue gpu; the lead's queues are: cpu, debug",
        "policy policy-2 marks jobs, but [intake] any_job is false: the frobnicator of"
        " burst setup keeps jobs without the attribute off lent nodes; set any_job ="
        " true and run burst setup again",
        "policy late takes no job, as policy-1 before it takes all of them: put it"
        " before policy-1, or remove it",
    ]


def test_what_cannot_be_known_is_not_doubted() -> None:
    found = settings(
        intake={"any_job": True},
        policy=[{"match": {"user": "ann", "queue": "gpu"}, "mark": True}],
    )
    assert list(find_rule_warnings(found)) == []
    assert list(find_rule_warnings(found, {"ann": 1}, [])) == [
        "policy policy-1 is for queue gpu; the lead's queues are: none"
    ]


def test_in_mode_queue_worth_changes_nothing() -> None:
    (warning,) = find_rule_warnings(
        settings(intake={"mode": "queue"}, policy=[{"worth": 1.0}])
    )
    assert warning.startswith("in [intake] mode queue, worth changes nothing")
    assert not list(find_rule_warnings(settings(intake={"mode": "queue"})))
