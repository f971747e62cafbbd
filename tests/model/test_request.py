# SPDX-License-Identifier: MIT
from typing import Any

import pytest

from burst.errors import JobspecError
from burst.model.request import (
    BurstPreferences,
    ResourceRequest,
    is_burstable,
    parse_attributes,
    parse_bank,
    parse_duration,
    parse_name,
    parse_preferences,
    parse_queue,
    parse_request,
)
from tests.builders import slots, whole


def vertex(kind: str, count: Any = 1, *below: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "count": count, "with": list(below), **more}


def jobspec(*resources: Any, **system: Any) -> dict[str, Any]:
    return {"resources": list(resources), "attributes": {"system": system}}


def on_nodes(nodes: int, slots: int) -> ResourceRequest:
    return ResourceRequest(nodes=nodes, slots=slots, cores_per_slot=1)


NO_BANKS = (7, ["a"], "x" * 65, "a b", "\n")
CORE = vertex("core")
SLOT = vertex("slot", 1, CORE)


@pytest.mark.parametrize(
    ("resources", "request_"),
    [
        ([SLOT], slots(1)),
        ([vertex("slot", 9, vertex("core", 2), vertex("gpu", 1))], slots(9, 2, 1)),
        ([vertex("node", 3, vertex("slot", 2, CORE))], on_nodes(3, 6)),
        ([vertex("node", 3, SLOT, exclusive=True)], whole(3)),
        ([vertex("slot", 4, CORE, exclusive=True)], whole(4)),
        ([vertex("rack", 2, vertex("node", 3, SLOT))], on_nodes(6, 6)),
        ([vertex("slot", 2, vertex("fpga", 3, CORE), {"count": 1})], slots(2)),
        ([{"type": "slot", "with": [CORE]}], slots(1)),
    ],
)
def test_resources_are_counted(resources, request_):
    assert parse_request(jobspec(*resources)) == request_


@pytest.mark.parametrize(
    ("count", "least"),
    [
        (4, 4),
        ("4", 4),
        ("[4]", 4),
        ({"min": 2, "max": 8}, 2),
        ({"min": 2}, 2),
        ({"max": 3}, 1),
        ({"min": 2, "max": 8, "operator": "*", "operand": 2}, 2),
        ({"min": 2, "max": 16, "operator": "^", "operand": 2}, 2),
        ({"min": 1, "max": 9, "operator": "+", "operand": 4}, 1),
        ("2-8", 2),
        ("2-8:2", 2),
        ("2-8:2:*", 2),
        ("2+", 2),
        ("2+:1:+", 2),
        ("3,7-9", 3),
    ],
)
def test_a_range_counts_with_its_least(count, least):
    assert parse_request(jobspec(vertex("slot", count, CORE))).slots == least


@pytest.mark.parametrize(
    "count",
    [
        0,
        -1,
        True,
        None,
        1.5,
        "",
        "x",
        "2]",
        "8-2",
        "2:2",
        "2+:2",
        "0-3",
        ",",
        "3,1",
        "2-8:0",
        {"min": 0},
        {"min": 5, "max": 2},
        {"min": 1, "operand": 2},
        {"min": 1, "max": 8, "operator": "^", "operand": 2},
        {"min": 2, "max": 8, "operator": "*"},
        {"min": 2, "max": 8, "operator": "/", "operand": 2},
        {"min": 1, "max": 200_000, "operand": 2},
        {"min": "x"},
    ],
)
def test_what_is_no_count_is_refused(count):
    with pytest.raises(JobspecError):
        parse_request(jobspec(vertex("slot", count, CORE)))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"resources": None},
        {"resources": ["slot"]},
        jobspec(),
        jobspec(CORE),
        jobspec(vertex("node", 2**20, vertex("slot", 2**20, CORE))),
        jobspec(vertex("slot", 1)),
        jobspec(vertex("slot", 1, vertex("gpu"))),
        {"resources": [SLOT], "attributes": [1]},
    ],
)
def test_what_is_no_jobspec_is_refused(spec):
    with pytest.raises(JobspecError):
        parse_request(spec)


def test_resources_nested_without_end_are_refused():
    deep = SLOT
    for _ in range(200):
        deep = vertex("rack", 1, deep)
    with pytest.raises(JobspecError, match="deeply"):
        parse_request(jobspec(deep))


def test_equal_constraints_make_equal_requests():
    one = jobspec(SLOT, constraints={"and": [{"properties": ["a"]}], "b": 1})
    two = jobspec(SLOT, constraints={"b": 1, "and": [{"properties": ["a"]}]})
    assert parse_request(one) == parse_request(two)
    assert parse_request(one).constraint == '{"and":[{"properties":["a"]}],"b":1}'
    assert hash(parse_request(one)) == hash(parse_request(two))


@pytest.mark.parametrize(
    ("parse", "system", "word"),
    [
        (parse_queue, {"queue": 7}, "queue"),
        (parse_queue, {"queue": ["a"]}, "queue"),
        *((parse_bank, {"bank": bank}, "bank") for bank in NO_BANKS),
        (parse_duration, {"duration": "soon"}, "duration"),
        (parse_duration, {"duration": [1]}, "duration"),
    ],
)
def test_what_is_none_is_refused(parse, system, word):
    with pytest.raises(JobspecError, match=word):
        parse(jobspec(SLOT, **system))


@pytest.mark.parametrize(
    ("system", "seconds"),
    [({}, 0.0), ({"duration": None}, 0.0), ({"duration": 90}, 90.0)],
)
def test_duration(system, seconds):
    assert parse_duration(jobspec(SLOT, **system)) == seconds


MANY = {"provider": "gke", "max-price": 1, "wait": 0, "where": "spread", "urgency": 7}
MANY |= {"of-others": [1]}


def test_a_bank_is_read():
    assert parse_bank(jobspec(SLOT, bank="physics")) == "physics"
    assert parse_bank(jobspec(SLOT, bank="x" * 64)) == "x" * 64
    assert parse_bank(jobspec(SLOT)) == ""


@pytest.mark.parametrize(
    ("written", "wish"),
    [
        ({}, BurstPreferences()),
        (None, BurstPreferences()),
        ({"provider": None, "wait": None}, BurstPreferences()),
        ({"mode": "isolated"}, BurstPreferences(mode="isolated")),
        ({"tag": "sweep/a"}, BurstPreferences(tag="sweep/a")),
        (MANY, BurstPreferences("gke", 1.0, 0.0, "spread", 7)),
    ],
)
def test_wishes_are_read(written, wish):
    assert parse_preferences(jobspec(SLOT, burst=written)) == wish
    for plain in ({}, jobspec(SLOT)):
        assert parse_preferences(plain) == BurstPreferences()


@pytest.mark.parametrize(
    "written",
    [
        "gke",
        {"max-price": -1},
        {"max-price": "1"},
        {"max-price": True},
        {"wait": -1},
        {"where": "here"},
        {"urgency": 32},
        {"urgency": 1.5},
        {"provider": 7},
        {"mode": "apart"},
    ],
)
def test_a_wish_that_cannot_be_read_is_refused(written):
    with pytest.raises(JobspecError, match=r"system\.burst cannot be read"):
        parse_preferences(jobspec(SLOT, burst=written))


@pytest.mark.parametrize("key", ["provider", "tag"])
@pytest.mark.parametrize(
    "text", ["gke\x1b[2J", "a\nb", "a\x9b2J", "a\u202e", "a\ud800"]
)
def test_a_name_that_cannot_be_shown_is_refused_and_not_repeated(key, text):
    with pytest.raises(JobspecError) as refused:
        parse_preferences({"attributes": {"system": {"burst": {key: text}}}})
    assert "characters that cannot be shown" in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        (jobspec(SLOT, burstable=True), True),
        (jobspec(SLOT, burstable=1), True),
        (jobspec(SLOT, burstable=False), False),
        (jobspec(SLOT), False),
        ({}, False),
        ({"attributes": None}, False),
        ({"attributes": {"system": [1]}}, False),
    ],
)
def test_burstable_is_an_attribute_that_is_true(spec, may):
    assert is_burstable(spec) is may


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (slots(1), "1 slot of 1 core"),
        (slots(2, 2, 1), "2 slots of 2 cores, 1 GPU"),
        (whole(1, slots=4, gpus_per_slot=2), "1 whole node, 4 slots of 1 core, 2 GPUs"),
        (on_nodes(2, 2), "2 nodes, 2 slots of 1 core"),
    ],
)
def test_a_request_reads_as_words(request_, text):
    assert str(request_) == text


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"attributes": {"system": {"job": {"name": "train"}}}}, "train"),
        ({"tasks": [{"command": ["/usr/bin/app", "-n"]}]}, "app"),
        ({"tasks": [{"command": "app"}], "attributes": {}}, "app"),
        ({"attributes": {"system": {"job": {"name": 7}}}, "tasks": []}, ""),
        ({"attributes": {"system": {"job": 7}}}, ""),
        ({}, ""),
        ({"attributes": {"system": {"job": {"name": "a" * 300}}}}, "a" * 255),
    ],
)
def test_a_job_has_the_name_that_flux_jobs_shows(spec, name):
    assert parse_name(spec) == name


def test_attributes_that_rules_may_ask_for_are_texts() -> None:
    spec = jobspec(
        SLOT,
        burstable=True,
        project="alpha",
        cost={"center": 7, "deep": {"er": {"est": {"of": 1}}}},
        duration=60,
        listed=[1],
        long="x" * 300,
        off=False,
    )
    assert parse_attributes(spec) == {
        "burstable": "true",
        "project": "alpha",
        "cost.center": "7",
        "off": "false",
    }
    assert parse_attributes({}) == {}
    assert parse_attributes({"attributes": {"system": [1]}}) == {}
    many = jobspec(SLOT, **{f"a{n}": n for n in range(99)})
    assert len(parse_attributes(many)) == 32


def test_preferences_take_providers_that_user_and_rule_allow() -> None:
    assert BurstPreferences().takes("gke")
    assert not BurstPreferences("kube").takes("gke")
    assert not BurstPreferences(allowed=("kube",)).takes("gke")
    assert BurstPreferences("gke", allowed=("kube", "gke")).takes("gke")
    found = parse_preferences(jobspec(SLOT, burst={"wanted": True, "allowed": ["a"]}))
    assert (found.wanted, found.allowed) == (True, ())
