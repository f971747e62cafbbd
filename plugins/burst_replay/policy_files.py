# SPDX-License-Identifier: MIT
"""The files of `burst replay --policy`, and the site that each of them describes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from burst.cli.listing import money
from burst.config import Seconds, Settings, load
from burst.core.standing import StandingMinimum
from burst.core.worth.budget import budget_warnings
from burst.core.worth.rule_warnings import find_rule_warnings, named_users
from burst.core.worth.rules import RuleSet
from burst.errors import BurstError, ConfigError
from burst.model.fsd import format_fsd
from burst.model.scheduler import Order
from burst.provider import Offer
from burst.runtime.engine_config import find_userids
from burst.runtime.provider_registry import load_providers
from burst_replay.policies import AT_ONCE, NEVER, Policy, worth_policy
from burst_replay.site import NO_FILE, Site, sold_offers
from burst_replay.trace import Machine, Trace


class SiteOptions(msgspec.Struct, frozen=True):
    """The options for bought nodes, times in seconds; None for the file's value."""

    boot: float | None
    teardown: float
    idle: float | None
    price: float | None
    order: Order


class PolicyFiles:
    """The files, and the policies that are tried. A file without providers uses the
    nodes of the first file that has some, and so do policies without a file.
    """

    def __init__(
        self, files: Sequence[Path], options: SiteOptions, machine: Machine
    ) -> None:
        """Read them. Raises ConfigError."""
        self._options = options
        self._machine = machine
        self._files = {path: load(path) for path in files}
        self._sites = {
            path: self._with_providers(path, settings)
            for path, settings in self._files.items()
            if settings.providers
        }
        first = next(iter(self._sites.values()), None)
        self._usual = first or self._site(NO_FILE, {})

    def policies(
        self, trace: Trace, worths: Sequence[float]
    ) -> Iterator[tuple[Policy, Site]]:
        """Yield each policy, each name once, with its site."""
        usual, its = self._usual, self._usual.settings
        free = msgspec.structs.replace(its, budget=())
        without = msgspec.structs.replace(usual, settings=free)
        for policy in (NEVER, AT_ONCE, *map(worth_policy, dict.fromkeys(worths))):
            yield policy, without
        for path, settings in self._files.items():
            rules = RuleSet(settings.rules, userids_of(settings, trace))
            site = self._sites.get(path, usual)
            if site is usual:
                # Only the rules and the budgets of a file without providers count.
                mixed = msgspec.structs.replace(its, budget=settings.budget)
                site = msgspec.structs.replace(usual, settings=mixed)
            yield Policy(str(path), rules), site

    def warnings(self, trace: Trace) -> Iterator[str]:
        """Yield warnings about rules and budgets that may not mean what they say."""
        for path, settings in self._files.items():
            # The intake of a lead does not matter: all jobs may burst in a replay.
            intake = msgspec.structs.replace(settings.intake, any_job=True, mode="hold")
            alone = msgspec.structs.replace(settings, intake=intake)
            userids = userids_of(settings, trace)
            # A rule for a user that the log does not name is reported after the replay.
            of_host = userids if trace.numbers_of_host else None
            found = find_rule_warnings(alone, of_host)
            for text in (
                *found,
                *budget_warnings(settings.budget, userids, trace.started),
                *_left_out(settings, trace),
            ):
                yield f"{path}: {text}"

    def _with_providers(self, path: Path, settings: Settings) -> Site:
        site = self._site(settings, _offers(path, settings))
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

    def _site(self, settings: Settings, offers: Mapping[str, Sequence[Offer]]) -> Site:
        """Return the site by the options and, where they are not set, the settings."""
        options, deadlines = self._options, settings.deadlines
        if options.idle is not None:
            idle = Seconds(options.idle)
            deadlines = msgspec.structs.replace(deadlines, idle=idle)
        return Site(
            machine=self._machine,
            order=options.order,
            settings=msgspec.structs.replace(settings, deadlines=deadlines),
            offers=sold_offers(settings, offers, options.price, options.boot),
            teardown=options.teardown,
        )


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


def _offers(path: Path, settings: Settings) -> Mapping[str, Sequence[Offer]]:
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


def userids_of(settings: Settings, trace: Trace) -> Mapping[str, int]:
    """Return the numbers of the users that rules name, if the trace knows them."""
    if trace.numbers_of_host:
        return find_userids(named_users(settings))
    return trace.users
