# SPDX-License-Identifier: MIT
"""A site's labels on what a burst is made of."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.kits.pods.names import is_label_value
from burst.kits.pods.template.object_labels import check_labels, labels_for, make_valid
from burst.kits.pods.template.render import render
from burst.provider import BurstSpec
from burst.testing import isolate
from tests.kits.pods import SETTINGS, TAGS, replace
from tests.support.own_name import OWN_NAME

LABELS = {
    "app.kubernetes.io/name": "flux-burst",
    "example.org/user": "{user}",
    "example.org/account": "{bank}.{queue}",
}


@pytest.mark.parametrize("form", ["job", "operator", "isolated"])
def test_all_that_is_made_has_them_and_no_selector(spec: BurstSpec, form: Any) -> None:
    if form == "isolated":
        spec, form = isolate(spec), "job"
    spec = replace(spec, userids=(os.geteuid(),), banks=("chem",), queues=("batch",))
    site = {
        "app.kubernetes.io/name": "flux-burst",
        "example.org/user": OWN_NAME,
        "example.org/account": "chem.batch",
    }
    labelled = replace(SETTINGS, form=form, object_labels=LABELS)
    made = render(spec, labelled, TAGS, 0)
    plain = render(spec, replace(labelled, object_labels={}), TAGS, 0)
    assert len(made) >= 3
    for thing, without in zip(made, plain, strict=True):
        own = TAGS.labels(spec.burst_id)
        assert thing["metadata"]["labels"].items() >= (own | site).items()
        for old, new in pods_of(without, thing):
            assert new == {**site, **old}
        if thing["kind"] == "Service":
            assert thing["spec"] == without["spec"]


def pods_of(before: Any, after: Any) -> list[tuple[Any, Any]]:
    """Return the labels of the pods that an object makes, before and after."""
    if before["kind"] == "Job":
        both = [each["spec"]["template"]["metadata"] for each in (before, after)]
        return [(both[0]["labels"], both[1]["labels"])]
    if before["kind"] == "MiniCluster":
        both = [each["spec"] for each in (before, after)]
        return [
            (both[0]["pod"]["labels"], both[1]["pod"]["labels"]),
            (both[0]["jobLabels"], both[1]["jobLabels"]),
        ]
    return []


def test_what_is_several_or_none_is_said_so(spec: BurstSpec) -> None:
    several = replace(spec, userids=(0, 54321), banks=("a", "b"))
    found = labels_for({"a": "{user}", "b": "{bank}", "c": "{queue}"}, several)
    assert found == {"a": "several", "b": "several", "c": "none"}
    # A person has requested it ahead of jobs, and that is the instance's owner.
    assert labels_for({"a": "{user}"}, replace(spec, userids=())) == {"a": OWN_NAME}
    assert labels_for({"a": "{user}"}, replace(spec, userids=(54321,))) == {
        "a": "54321"
    }


@given(st.text())
def test_any_text_becomes_a_value(text: str) -> None:
    assert is_label_value(make_valid(text))
    assert make_valid(text) == text or not is_label_value(text)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"burst.flux-framework.org/owner": "x"}, "is reserved for burst"),
        ({"job-name": "x"}, "is reserved for the Job"),
        ({"kueue.x-k8s.io/queue-name": "x"}, "use queue"),
        ({"Not A Key": "x"}, "is not a valid key of a label"),
        ({"UPPER/key": "x"}, "is not a valid key of a label"),
        ({"a": "{nobody}"}, "in braces, use one of {user}, {bank}, {queue}"),
        ({"a": "{user"}, "in braces, use one of"),
        ({"a": "{}"}, "in braces, use one of"),
    ],
)
def test_what_cannot_be_a_label_is_refused(labels: dict[str, str], words: str) -> None:
    (told,) = check_labels(labels)
    assert words in told
    with pytest.raises(ValueError, match="object_labels"):
        replace(SETTINGS, object_labels=labels)
