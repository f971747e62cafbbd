# SPDX-License-Identifier: MIT
from typing import Any

from burst.core.jobs.rules import marking
from tests.builders import settings


def jobspec(**system: Any) -> dict[str, Any]:
    return {"attributes": {"system": {"duration": 60.0, **system}}}


def test_no_rule_marks_jobs() -> None:
    assert marking(settings(policy=[{"worth": 0.1}]).rules, {}) is None


def test_jobs_that_a_marking_rule_matches_at_some_time_may_burst() -> None:
    rules = settings(
        policy=[
            {"match": {"queue": "gpu"}, "worth": 0.1},
            {"match": {"queue": "gpu", "user": ["7"], "hours": "Mo 8-9"}, "mark": True},
            {"match": {"name": "big*", "nodes": "4-8"}, "mark": True},
        ]
    ).rules
    may_burst = marking(rules, {})
    assert may_burst is not None
    assert may_burst(7, jobspec(queue="gpu"))
    assert not may_burst(8, jobspec(queue="gpu"))
    assert may_burst(8, jobspec(job={"name": "bigger"}))
    assert not may_burst(7, jobspec())


def test_a_job_without_a_bank_may_be_of_any_by_its_user_s_default() -> None:
    may_burst = marking(
        settings(policy=[{"match": {"bank": "physics"}, "mark": True}]).rules, {}
    )
    assert may_burst is not None
    assert may_burst(1, jobspec(bank="physics"))
    assert may_burst(1, jobspec())
    assert not may_burst(1, jobspec(bank="maths"))


def test_a_jobspec_that_cannot_be_read_may_not() -> None:
    may_burst = marking(settings(policy=[{"mark": True}]).rules, {})
    assert may_burst is not None
    assert may_burst(1, jobspec())
    assert not may_burst(1, jobspec(queue=["odd"]))
