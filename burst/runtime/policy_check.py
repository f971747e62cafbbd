# SPDX-License-Identifier: MIT
"""`burst policy check`: which rule takes which job, and what would happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from burst.config import PolicyRule, Settings, parse
from burst.config.money import parse_budgets
from burst.config.policy import parse_policy
from burst.core import job_report
from burst.core.jobs.job_rules import JobRules
from burst.core.jobs.refusal_cache import without_refusals
from burst.core.jobs.rule_warnings import find_rule_warnings, named_users
from burst.core.tick import run_tick
from burst.runtime.engine_config import find_userids
from burst.runtime.snapshot import Snapshot

Row = dict[str, Any]


JUDGED = (
    "plan",
    "policy",
    "budget",
    "prices",
    "intake",
    "limits",
    "deadlines",
    "providers",
)
"""The tables of a file by which jobs are judged."""


def with_rules(settings: Settings, tables: Mapping[str, Any], where: str) -> Settings:
    """Return the settings with what another file's tables have in their place.

    A file with providers is a daemon's settings file: all its tables in JUDGED count,
    with defaults for what it leaves out. Of a file without providers, `[plan] worth`
    and the rules count, and the budgets if it has some. Raises ConfigError.
    """
    replace = msgspec.structs.replace
    if tables.get("providers"):
        found = parse(tables, where)
        return replace(settings, **{name: getattr(found, name) for name in JUDGED})
    other = parse({"plan": tables.get("plan", {})}, where)
    plan = replace(settings.plan, worth=other.plan.worth)
    providers = settings.providers
    rules = parse_policy(tables.get("policy", ()), plan.worth, tuple(providers), where)
    budgets = settings.budget
    if "budget" in tables:
        budgets = parse_budgets(tables["budget"], providers, where)
    return replace(settings, plan=plan, policy=rules, budget=budgets)


def check_policy(snapshot: Snapshot, settings: Settings) -> Row:
    """Return what these settings' rules would decide now; nothing is done.

    `rules` has each rule and how many of the jobs it takes, `jobs` each job that waits
    and its rule, `warnings` sentences on rules that may not do what was meant.
    """
    world, now = snapshot.world, snapshot.now
    userids = find_userids(named_users(settings))
    world = msgspec.structs.replace(world, userids=userids)
    cache = without_refusals(snapshot.refusal_cache)
    made = run_tick(snapshot.records, world, settings, now, cache)
    jobs = world.lead.jobs if world.lead else {}
    rules = JobRules(world, settings, now)
    rows: list[Row] = []
    for job, decision in made.decisions.items():
        rule = rules.rule(jobs[job]) or settings.rules[-1]
        rows.append({**job_report.job_row(jobs[job], decision), "rule": rule.name})
    warnings = list(find_rule_warnings(settings, userids, world.identity.queues))
    return {
        "rules": [_rule_row(rule, rows) for rule in settings.rules],
        "jobs": rows,
        "warnings": warnings,
        "trouble": world.trouble,
    }


def check_rules(settings: Settings) -> Row:
    """Return what `check_policy` returns, for the rules alone: without any job."""
    userids = find_userids(named_users(settings))
    return {
        "rules": [_rule_row(rule, []) for rule in settings.rules],
        "jobs": [],
        "warnings": list(find_rule_warnings(settings, userids)),
        "trouble": "",
    }


def _rule_row(rule: PolicyRule, jobs: list[Row]) -> Row:
    """Return one rule, and what it would do with the jobs."""
    verdicts = Counter(job["verdict"] for job in jobs if job["rule"] == rule.name)
    match = msgspec.structs.asdict(rule.match)
    return {
        "name": rule.name,
        "match": {key: value for key, value in match.items() if value is not None},
        "worth": rule.worth,
        "takes": verdicts.total(),
        "verdicts": dict(verdicts),
    }
