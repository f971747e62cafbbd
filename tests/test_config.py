# SPDX-License-Identifier: MIT
import math
import os
import tomllib

import pytest

from burst.config import PolicyRule, Seconds, effective, load, parse, read_toml
from burst.errors import ConfigError


def test_an_empty_file_is_the_defaults():
    assert parse({}, "x") == parse({"lead": {}, "providers": {}}, "x")


def test_a_file_is_read_with_units(tmp_path):
    path = tmp_path / "burst.toml"
    # Editors of Windows begin a file so.
    path.write_text(
        '\ufeff[deadlines]\njoin = "90s"\nidle = "inf"\n'
        '[lead]\nslots = ["burst-0-[0-3]"]\n'
        '[providers.here]\ntype = "local"\nmax_nodes = 4\n'
    )

    settings = load(path)

    assert settings.deadlines.join == Seconds(90)
    assert settings.deadlines.idle == math.inf
    assert str(settings.provision_limit("here")) == "15m"
    assert settings.lead.slots == ("burst-0-[0-3]",)
    assert settings.providers["here"].type == "local"
    assert settings.providers["here"].options == {"max_nodes": 4}


LEASE_TEXT = (
    "must be longer than deadlines.drain; a burst is drained that long before its lease"
    " ends"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("limits.max_node = 1", "no such key; did you mean max_nodes?"),
        (
            "lead.zzz = 1",
            "no such key; known keys are address, owner, port, service, slots, uri",
        ),
        ("limit = {}", "no such key; did you mean limits?"),
        (
            "zzz = 1",
            "no such key; known keys are budget, daemon, deadlines, ensemble, guests,"
            " http, intake, lead, limits, notify, plan, policy, prices, providers",
        ),
        ("ensembel = {}", "no such key; did you mean ensemble?"),
        ('limits.max_nodes = "3"', "Expected whole number, got text in quotes"),
        ("plan.share = 1", "Expected true or false, got whole number"),
        (
            'deadlines.join = "5x"',
            "not a duration: '5x' (such as 90s, 10m, 1.5h, 2d, inf)",
        ),
        ("deadlines.join = 5", 'expected a duration such as "10m", got 5'),
        (
            'intake.mode = "x"',
            'unknown value \'x\'; it is one of "hold", "queue", "scheduler"',
        ),
        # A table some of whose keys have a new name.
        ("limits = 3", "expected a table [limits]"),
        ("lead.port = 99999", "99999 is out of range; at least 0, at most 65535"),
        (
            'lead.owner = "Site_A"',
            "'Site_A' cannot be an owner tag; at most 40 lower-case letters, digits and"
            " dashes, with no dash first or last",
        ),
        ("limits.max_nodes = -1", "-1 is out of range; at least 0"),
        (
            'daemon.observe = "1m"',
            "is gone; remove it: a provider with live bursts is asked five times as"
            " often as cadence says; set cadence",
        ),
        ('deadlines.lease = "10m"', LEASE_TEXT),
        ('deadlines.drain = "inf"\ndeadlines.lease = "10d"', LEASE_TEXT),
        ("providers = 1", "expected tables [providers.NAME]"),
        ('limits.cooldown = "inf"', "inf is out of range; at least 0s, at most 36500d"),
        ('deadlines.join = "0"', "0s is out of range; at least 100ms"),
        ('deadlines.run = "0"', "0s is out of range; at least 100ms"),
        (
            'providers.a.type = "local"\nproviders.a.provision = "0"',
            "0s is out of range; at least 100ms",
        ),
        ('intake.queue = ""', "Expected text in quotes of length >= 1"),
        ("providers.a = 1", "expected a table; write [providers.a]"),
        (
            "providers.A_b = {}",
            "not a name for a provider; use at most 63 lower-case letters, digits and"
            " -, as it becomes a label",
        ),
        (
            f"providers.{64 * 'a'} = {{}}",
            "not a name for a provider; use at most 63 lower-case letters, digits and"
            " -, as it becomes a label",
        ),
    ],
)
def test_a_wrong_key_is_told_where_and_what_would_be_right(text, told):
    """By the name of the last key of the text."""
    key = text.splitlines()[-1].partition(" = ")[0]
    with pytest.raises(ConfigError) as caught:
        parse(tomllib.loads(text), "x")

    assert str(caught.value) == f"x: {key}: {told}"


def test_a_provider_has_a_type():
    with pytest.raises(ConfigError, match=r"x: providers\.a\.type: is missing; name a"):
        parse({"providers": {"a": {}}}, "x")


def test_draining_without_a_deadline_needs_no_lease():
    found = parse({"deadlines": {"drain": "inf"}}, "x").deadlines
    assert (found.drain, found.lease) == (math.inf, math.inf)


def test_a_file_that_is_not_there_or_not_toml(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_toml(tmp_path / "none.toml")
    path = tmp_path / "bad.toml"
    path.write_text("a = ")
    path.chmod(0)
    # Root may read any file.
    before = os.geteuid()
    os.seteuid(before or 65534)
    try:
        with pytest.raises(ConfigError, match=r"denied; .* let this user read it"):
            read_toml(path)
    finally:
        os.seteuid(before)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"bad.toml: not TOML: Invalid value"):
        read_toml(path)
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="not TOML"):
        load(path)


def test_effective_settings_say_where_they_come_from():
    standing = [{"nodes": 2}, {"nodes": 1, "hours": "8-18"}]
    tables = {
        "deadlines": {"join": "1m"},
        "providers": {
            "a": {
                "type": "local",
                "enabled": False,
                "max_nodes": 2,
                "standing": standing,
            }
        },
        "policy": [{"name": "a", "match": {"queue": "gpu"}, "worth": 0.2}, {}],
        "budget": [{"limit": 10, "match": {"bank": "physics"}}],
        "prices": {"a.n2": 2.5},
    }

    listed = {
        key: (value, source)
        for key, value, source in effective(parse(tables, "f"), tables, "f")
    }

    assert (
        listed.items()
        >= {
            "deadlines.join": (Seconds(60), "f"),
            "deadlines.drain": (Seconds(1800), "default"),
            "providers.a.provision": (Seconds(900), "default"),
            "providers.a.type": ("local", "f"),
            "providers.a.enabled": (False, "f"),
            "providers.a.max_nodes": (2, "f"),
            "providers.a.standing.1.nodes": (2, "f"),
            "providers.a.standing.1.offer": ("", "default"),
            "providers.a.standing.2.hours": ("8-18", "f"),
            "policy.a.match.queue": ("gpu", "f"),
            "policy.a.worth": (0.2, "f"),
            "policy.a.mark": (False, "default"),
            "policy.policy-2.worth": (0.0, "default"),
            "budget.1.limit": (10.0, "f"),
            "budget.1.match.bank": ("physics", "f"),
            "budget.1.per": ("month", "default"),
            "prices.a.n2": (2.5, "f"),
        }.items()
    )
    assert not {"policy.policy-2.match", "deadlines.rejoin"} & listed.keys()


NODES = """(such as 4, "1-8", "<4" or ">=8")"""
HOURS = """(such as "Mo-Fr 8-18", "22-6")"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("match.qeue = 'a'", "no such key; did you mean queue?"),
        ("match.bank = 3", "Expected text in quotes | list, got whole number"),
        (
            "match.user = []",
            "an empty list matches no job; name a user, or leave the key out to match"
            " all",
        ),
        ("match.nodes = '8-1'", f"nothing is within '8-1' {NODES}"),
        ("match.nodes = '<8-9'", f"not a range: '<8-9' {NODES}"),
        ("match.nodes = 'many'", f"not a range: 'many' {NODES}"),
        (
            "match.duration = '<0h'",
            'nothing is within \'<0h\' (such as "<2h", ">=8h" or "1h-8h")',
        ),
        ("match.hours = 'Mo-Fr 8-8'", f"no time is within 'Mo-Fr 8-8' {HOURS}"),
        ("match.hours = ['8-18', '8:60-9']", f"no time is within '8:60-9' {HOURS}"),
        ("match.hours = 'Mx'", "not hours of the week: 'Mx' (such as \"Mo-Fr 8-18\")"),
        ("match.user = ''", "is empty; leave the key out"),
        ("match.name = ['a', '']", "is empty; leave the key out"),
        ("match.attribute = ''", "is empty; leave the key out"),
        ("worth = -0.1", "-0.1 is out of range; from 0 to 1000000"),
        ("worth = 2e6", "2000000.0 is out of range; from 0 to 1000000"),
        ("max_price = inf", "inf is out of range; at least 0"),
        ("wait = 'inf'", 'inf never ends; give a time that does, such as "5m"'),
        (
            "name = 'a b'",
            "'a b' is not a name for a rule; use at most 63 letters, digits, _, - and"
            " .",
        ),
        ("name = 'default'", "there is a rule default already; give it another name"),
        ("providers = ['hree']", "there is no provider hree; did you mean here?"),
        ("providers = ['kube']", "there is no provider kube; the file has here"),
    ],
)
def test_a_wrong_rule_is_told_by_its_place_and_key(text, told):
    key = text.partition(" = ")[0]
    tables = tomllib.loads(f"providers.here.type = 'local'\n[[policy]]\n{text}")
    with pytest.raises(ConfigError) as caught:
        parse(tables, "x")

    assert str(caught.value) == f"x: policy 1: {key}: {told}"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"worth": 1}, "x: policy: expected tables [[policy]]"),
        ([3], "x: policy 1: expected a table; write [[policy]]"),
        ([{}, {"macth": {}}], "x: policy 2: macth: no such key; did you mean match?"),
        (
            [{"name": "a"}, {"name": "a"}],
            "x: policy 2: name: there is a rule a already; give it another name",
        ),
    ],
)
def test_wrong_rules_are_told_by_their_place(policy, text):
    with pytest.raises(ConfigError) as caught:
        parse({"policy": policy}, "x")

    assert str(caught.value) == text


def test_rules_have_a_name_and_a_worth_and_end_with_the_default():
    found = parse(
        {
            "plan": {"worth": 0.05},
            "policy": [{"name": "big", "worth": 0.3}, {"match": {"nodes": 1}}],
        },
        "x",
    )

    names = [(rule.name, rule.worth) for rule in found.rules]

    assert names == [("big", 0.3), ("policy-2", 0.05), ("default", 0.05)]
    assert parse({}, "x").rules == (PolicyRule(name="default", worth=0.0),)
    assert parse({"plan": {"worth": 0.1}}, "x").rules[0].worth == 0.1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "plan.preset = 'frugal'",
            "plan.preset: is gone; write worth in its place: eager is 0, balanced 0.05,"
            " frugal 0.1",
        ),
        ("limits.set_aside = '7m'", "limits.set_aside: is gone; write cooldown"),
        (
            "intake.attribute = 'cloud'",
            "intake.attribute: is gone; remove it: jobs are marked by"
            " --setattr=burstable; cancel waiting jobs that another one marks, as"
            " nothing releases them",
        ),
        (
            "intake.impossible = 'fail'",
            "intake.impossible: is gone; remove it: a job that no offer could ever"
            " serve stays held in mode hold, and fails in the other modes",
        ),
        (
            "intake.local_wait = '7m'",
            "intake.local_wait: is gone; remove it: a job that could start on own nodes"
            " is left to the scheduler for 1m; write wait in a rule of [[policy]] for"
            " another time",
        ),
        ("intake.share = true", "intake.share: is gone; write any_job"),
        (
            "intake.ready = 'soon'",
            "intake.ready: is gone; remove it: the queue has the name of queue, with"
            " -ready at its end",
        ),
        (
            "intake.release_urgency = 20",
            "intake.release_urgency: is gone; remove it: a released job that Flux does"
            " not start gets urgency 31",
        ),
        (
            "lead.reconnect = '1m'",
            "lead.reconnect: is gone; remove it: the daemon tries for 5m to reach a"
            " lead that went away",
        ),
        (
            "daemon.orphans = 'reap'",
            "daemon.orphans: is gone; remove it: burst gc lists orphans, and with --yes"
            " deletes them",
        ),
        (
            "deadlines.rejoin = '1m'",
            "deadlines.rejoin: is gone; remove it: ranks that were lost have 2m to come"
            " back",
        ),
        (
            "deadlines.provision = '1m'",
            "deadlines.provision: is gone; write it as provision under"
            " [providers.NAME], of each provider",
        ),
        (
            "deadlines.agent = '1m'",
            "deadlines.agent: is gone; remove it: an agent may be silent for six times"
            " checkSeconds, and at least for a minute",
        ),
        (
            "[[policy]]\nrace = true",
            "policy 1: race: is gone; remove it: one burst is made, of the first"
            " available offer",
        ),
        (
            "[[policy]]\nover_budget = 'wait'",
            "policy 1: over_budget: is gone; remove it: what would exceed a"
            " budget waits, and shows why",
        ),
        (
            "[providers.gke]\ntype = 'gke'\nusage_factor = 3",
            "providers.gke: usage_factor: is gone; remove it: it changed nothing but a"
            " line that users were shown",
        ),
    ],
)
def test_a_key_that_went_says_what_to_write(text, told):
    with pytest.raises(ConfigError) as caught:
        parse(tomllib.loads(text), "x")

    assert str(caught.value) == f"x: {told}"


def test_the_default_worth_is_in_range():
    assert parse({"plan": {"worth": 1}}, "x").rules[-1].worth == 1.0
    with pytest.raises(ConfigError, match=r"plan\.worth: -1\.0 is out of range"):
        parse({"plan": {"worth": -1.0}}, "x")


def test_a_file_of_rules_only_may_name_providers_that_are_elsewhere():
    assert parse({"policy": [{"providers": ["gke"]}]}, "x").policy[0].providers


def test_jobs_are_marked_in_mode_hold_only():
    for mode in ("queue", "scheduler"):
        tables = {"intake": {"mode": mode}, "policy": [{"mark": True}]}

        with pytest.raises(ConfigError, match="leave mark out, or choose mode hold"):
            parse(tables, "x")
