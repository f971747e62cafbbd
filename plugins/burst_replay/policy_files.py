# SPDX-License-Identifier: MIT
"""The files of `burst replay --policy`, and the site that each of them describes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from burst.cli.listing import money
from burst.config import Settings, load
from burst.core.jobs.rule_warnings import find_rule_warnings, named_users
from burst.core.jobs.rules import RuleSet
from burst.core.money.budget import budget_warnings
from burst.core.standing import StandingMinimum
from burst.errors import BurstError, ConfigError
from burst.model.fsd import format_fsd
from burst.provider import Offer
from burst.runtime.engine_config import find_userids
from burst.runtime.provider_registry import load_providers
from burst_replay.policies import AT_ONCE, NEVER, Policy, worth_policy
from burst_replay.site import NO_FILE, Site, SiteOptions
from burst_replay.trace import Trace


def read_policies(
    paths: Sequence[Path], options: SiteOptions, trace: Trace, worths: Sequence[float]
) -> list[tuple[Policy, Site]]:
    """Return the policies that are tried, each name once, with the site of each.

    A file without providers uses the nodes of the first file that has some, and so do
    policies without a file. Prints what of a file counts otherwise than it may seem.
    Raises ConfigError.
    """
    files = {path: load(path) for path in paths}
    sites = {
        path: _with_providers(path, settings, options)
        for path, settings in files.items()
        if settings.providers
    }
    usual = next(iter(sites.values()), None) or options.site(NO_FILE, {})
    without = usual.with_budget(())
    found = [
        (policy, without)
        for policy in (NEVER, AT_ONCE, *map(worth_policy, dict.fromkeys(worths)))
    ]
    for path, settings in files.items():
        userids = _userids_of(settings, trace)
        rules = RuleSet(settings.rules, userids)
        # Only the rules and the budgets of a file without providers count.
        site = sites.get(path) or usual.with_budget(settings.budget)
        found.append((Policy(str(path), rules), site))
        for text in _warnings(settings, trace, userids):
            click.echo(f"{path}: {text}", err=True)
    return found


def _warnings(
    settings: Settings, trace: Trace, userids: Mapping[str, int]
) -> Iterator[str]:
    """Yield warnings about rules and budgets that may not mean what they say."""
    # The intake of a lead does not matter: all jobs may burst in a replay.
    intake = msgspec.structs.replace(settings.intake, any_job=True, mode="hold")
    alone = msgspec.structs.replace(settings, intake=intake)
    # A rule for a user that the log does not name is reported after the replay.
    yield from find_rule_warnings(alone, userids if trace.numbers_of_host else None)
    yield from budget_warnings(settings.budget, userids, trace.started)
    yield from _left_out(settings, trace)


def _with_providers(path: Path, settings: Settings, options: SiteOptions) -> Site:
    """Return the site that a file describes, and print how nodes are bought there."""
    site = options.site(settings, read_offers(path, settings))
    idle, first = site.settings.deadlines.idle, site.offers[0]
    if math.isinf(idle):
        raise ConfigError(
            f"{path}: deadlines.idle: inf: no burst would end", "give --idle"
        )
    of = f" ({first.key})" if first.offer.name else ""
    click.echo(
        f"{path}: a node-hour costs {money(first.offer.price)}{of}, nodes are"
        f" online in {format_fsd(first.offer.join_time)}, idle bursts stay"
        f" {format_fsd(idle)}",
        err=True,
    )
    selling = {each.provider for each in site.offers}
    for name, provider in settings.providers.items():
        if provider.enabled and name not in selling:
            text = f"nothing of provider {name} is bought, as no offer is known"
            advice = f'give the price of one: [prices] "{name}.OFFER"'
            click.echo(f"{path}: {text}; {advice}", err=True)
    return site


def _left_out(settings: Settings, trace: Trace) -> Iterator[str]:
    """Yield what settings ask for that a replay of this trace leaves out."""
    asking = [rule.name for rule in settings.policy if rule.match.attribute is not None]
    if asking and not trace.has_attributes:
        yield (
            "rules left out, as the log has no attributes of jobs: "
            f"{', '.join(asking)}; what they change is not in the figures"
        )
    for name, provider in settings.providers.items():
        for table in provider.standing if provider.enabled else ():
            text = StandingMinimum(name, table).text()
            yield f"standing minimum left out: {text}; its nodes are not in the figures"


def read_offers(path: Path, settings: Settings) -> Mapping[str, Sequence[Offer]]:
    """Return the offers of a file's plug-ins, without asking a cloud for them."""
    known: dict[str, Sequence[Offer]] = {}
    for name, table in settings.providers.items():
        alone = msgspec.structs.replace(settings, providers={name: table})
        try:
            for provider in load_providers(alone, "replay").values():
                known[name] = provider.offers()
        except BurstError as error:
            click.echo(f"{path}: offers are not known: {error}", err=True)
    return known


def _userids_of(settings: Settings, trace: Trace) -> Mapping[str, int]:
    """Return the numbers of the users that rules name, if the trace knows them."""
    if trace.numbers_of_host:
        return find_userids(named_users(settings))
    return trace.users
