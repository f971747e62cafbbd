# SPDX-License-Identifier: MIT
import math

import pytest

from burst.config import Seconds, effective, load, parse, read_toml
from burst.errors import ConfigError


def test_an_empty_file_is_the_defaults():
    assert parse({}, "x") == parse({"lead": {}, "providers": {}}, "x")


def test_a_file_is_read_with_units(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text(
        '[deadlines]\njoin = "90s"\nidle = "inf"\n'
        '[lead]\nslots = ["burst-0-[0-3]"]\n'
        '[providers.here]\ntype = "local"\nmax_nodes = 4\n'
    )

    settings = load(path)

    assert settings.deadlines.join == Seconds(90)
    assert settings.deadlines.idle == math.inf
    assert str(settings.deadlines.provision) == "15m"
    assert settings.lead.slots == ("burst-0-[0-3]",)
    assert settings.providers["here"].type == "local"
    assert settings.providers["here"].options == {"max_nodes": 4}


@pytest.mark.parametrize(
    ("tables", "text"),
    [
        (
            {"limits": {"max_node": 1}},
            "x: limits.max_node: no such key; did you mean max_nodes?",
        ),
        (
            {"lead": {"zzz": 1}},
            "x: lead.zzz: no such key; known keys are address, port, reconnect,"
            " service, slots, uri",
        ),
        (
            {"limits": {"max_nodes": "3"}},
            "x: limits.max_nodes: Expected whole number, got text in quotes",
        ),
        (
            {"plan": {"share": 1}},
            "x: plan.share: Expected true or false, got whole number",
        ),
        (
            {"deadlines": {"join": "5x"}},
            "x: deadlines.join: not a duration: '5x' (such as 90s, 10m, 1.5h, 2d, inf)",
        ),
        (
            {"deadlines": {"join": 5}},
            'x: deadlines.join: expected a duration such as "10m", got 5',
        ),
        (
            {"intake": {"mode": "x"}},
            "x: intake.mode: unknown value 'x'; it is one of"
            ' "hold", "queue", "scheduler"',
        ),
        ({"lead": 3}, "x: lead: expected a table [lead]"),
        (
            {"lead": {"port": 99999}},
            "x: lead.port: 99999 is out of range; at least 0, at most 65535",
        ),
        (
            {"limits": {"max_nodes": -1}},
            "x: limits.max_nodes: -1 is out of range; at least 0",
        ),
        (
            {"daemon": {"observe": "1m"}},
            "x: daemon.observe: longer than daemon.cadence; observe is how often a"
            " busy provider is asked, cadence an idle one",
        ),
        (
            {"deadlines": {"lease": "10m"}},
            "x: deadlines.lease: not longer than deadlines.drain; a burst is drained"
            " that long before its lease ends",
        ),
        (
            {"intake": {"queue": "b", "ready": "b"}},
            "x: intake.ready: b is intake.queue, too; jobs wait in one that is stopped,"
            " and start in the other",
        ),
        (
            {"deadlines": {"drain": "inf", "lease": "10d"}},
            "x: deadlines.lease: not longer than deadlines.drain; a burst is drained"
            " that long before its lease ends",
        ),
        ({"providers": 1}, "x: providers: expected tables [providers.NAME]"),
        (
            {"limits": {"cooldown": "inf"}},
            "x: limits.cooldown: inf is out of range; at least 0, at most 36500d",
        ),
        (
            {"providers": {"a": 1}},
            "x: providers.a: expected a table; write [providers.a]",
        ),
        (
            {"providers": {"A_b": {}}},
            "x: providers.A_b: not a name for a provider; use lower-case letters,"
            " digits and -, as it becomes part of labels",
        ),
        (
            {"providers": {"a": {}}},
            'x: providers.a.type: is missing; such as type = "local"',
        ),
    ],
)
def test_a_wrong_file_is_told_where_and_what_would_be_right(tables, text):
    with pytest.raises(ConfigError) as caught:
        parse(tables, "x")

    assert str(caught.value) == text


def test_draining_without_a_deadline_needs_no_lease():
    found = parse({"deadlines": {"drain": "inf"}}, "x").deadlines
    assert (found.drain, found.lease) == (math.inf, math.inf)


def test_a_file_that_is_not_there_or_not_toml(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("a = ")
    with pytest.raises(ConfigError, match=r"bad.toml: not TOML: Invalid value"):
        read_toml(path)


def test_effective_settings_say_where_they_come_from():
    tables = {
        "deadlines": {"join": "1m"},
        "providers": {"a": {"type": "local", "enabled": False, "max_nodes": 2}},
    }

    listed = {
        key: (value, source)
        for key, value, source in effective(parse(tables, "f"), tables, "f")
    }

    assert listed["deadlines.join"] == (Seconds(60), "f")
    assert listed["deadlines.drain"] == (Seconds(1800), "default")
    assert listed["providers.a.type"] == ("local", "f")
    assert listed["providers.a.enabled"] == (False, "f")
    assert listed["providers.a.max_nodes"] == (2, "f")


def test_a_file_that_is_nested_beyond_reason_is_a_wrong_setting(tmp_path):
    path = tmp_path / "burst.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="not TOML"):
        load(path)
