# SPDX-License-Identifier: MIT
"""What becomes of a burst whose pods a cluster denies, by the events of its Job."""

import pytest

from burst.kits.pods.status.warnings import warnings_by_object
from burst.provider import Failure, Phase
from tests.kits.admission_texts import LACKS, RULES
from tests.kits.seen_pods import RUNNING, about, look, pod, thing


@pytest.mark.parametrize(("denial", "rule", "advice"), RULES)
def test_pods_that_a_rule_forbids_are_refused_at_once(
    denial: str, rule: str, advice: str
) -> None:
    event = {
        "metadata": {"creationTimestamp": "1970-01-01T00:16:40Z"},
        "involvedObject": {"kind": "Job", "name": "b"},
        "reason": "FailedCreate",
        "message": f"Error creating: {denial}",
        "type": "Warning",
    }
    warnings = warnings_by_object([event])
    seen = look(thing("Job"), warnings=warnings)
    assert (seen.phase, seen.failure) == (Phase.FAILED, Failure.REFUSED)
    assert seen.why.startswith("pods cannot be made: FailedCreate: Error creating: ")
    assert rule in seen.why
    assert advice in seen.why
    assert "not usable by" not in seen.why
    assert "Requested by" not in seen.why
    assert {follower.phase for follower in seen.followers} == {Phase.FAILED}
    # A burst of which something runs has a minute.
    soon = look(thing("Job"), pod(0, **RUNNING), warnings=warnings)
    assert soon.phase is Phase.PENDING
    assert rule in soon.why


@pytest.mark.parametrize("denial", LACKS)
def test_what_does_not_exist_fails_the_burst_after_a_minute(denial: str) -> None:
    words = f"FailedCreate: Error creating: {denial}"
    late = look(thing("Job"), warnings=about("Job", "b", words))
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.OTHER)
    assert late.why == f"for 100 s, pods cannot be made: {words}"
    assert {follower.phase for follower in late.followers} == {Phase.FAILED}
    soon = look(thing("Job"), warnings=about("Job", "b", words, "1970-01-01T00:16:00Z"))
    assert (soon.phase, soon.why) == (Phase.PENDING, f"pods cannot be made: {words}")


def test_a_rule_that_forbids_a_pod_that_is_made_anew_ends_the_burst_later() -> None:
    words = f"FailedCreate: Error creating: {RULES[3][0]}"
    up = pod(0, **RUNNING)
    up["metadata"]["creationTimestamp"] = "1970-01-01T00:01:00Z"
    late = look(thing("Job"), up, warnings=about("Job", "b", words))
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.REFUSED)
    assert late.why.startswith("for 100 s, pods cannot be made: ")


def test_a_pod_that_has_failed_does_not_hide_why_the_next_is_missing() -> None:
    words = "FailedCreate: exceeded quota: small"
    # The kubelet ends it, and its object stays until the Job is deleted.
    evicted = pod(1, phase="Failed", reason="Evicted", message="low on memory")
    objects = thing("Job"), pod(0, **RUNNING), evicted
    warnings = about("Job", "b", words, "1970-01-01T00:16:00Z")
    soon = look(*objects, warnings=warnings)
    assert (soon.phase, soon.why) == (Phase.PENDING, f"pods cannot be made: {words}")
    late = look(*objects, warnings=warnings, schedule=39)
    assert (late.phase, late.failure) == (Phase.FAILED, Failure.CAPACITY)
    # Nothing is missing once there is another pod.
    again = pod(1, **RUNNING)
    again["metadata"]["name"] = "p1-again"
    assert look(*objects, again, warnings=warnings, schedule=39).phase is Phase.RUNNING
